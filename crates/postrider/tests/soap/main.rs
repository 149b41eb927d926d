//! SOAP connections of the real binary against services that we did not write: spyne and npm `soap` (Z34, Z01, Z10, Z15).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

#[path = "../harness/mod.rs"]
mod harness;

mod lab;
mod node;
mod scripted;
mod spyne;
mod wsdl;
