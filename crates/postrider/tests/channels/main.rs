//! Channels and their services: the real binary, callers over plain HTTP and SOAP, services in Python and in nothing of ours (Z40-Z46).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

#[path = "../harness/mod.rs"]
mod harness;

mod forwarding;
mod hosting;
mod lab;
mod mllp;
mod python;
mod receiving;
mod refusing;
mod repeats;
mod running;
mod soap;
mod tutorial;
