//! FHIR connections of the real binary against a server that we did not write: @medplum/fhir-router (Z33, Z12, Z31, Z10, Z15).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

#[path = "../harness/mod.rs"]
mod harness;

mod lab;
mod liars;
mod medplum;
mod programs;
mod scripted;
mod secrets;
mod smart;
