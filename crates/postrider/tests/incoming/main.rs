//! Incoming webhooks of the real binary (R12): signed by the providers' own libraries, forwarded, failed, retried, replayed, and killed in between.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

#[path = "../harness/mod.rs"]
mod harness;

#[path = "../cli_parts/mod.rs"]
mod cli_parts;
mod commands;
mod crash;
mod forwards;
mod intake;
mod providers;
mod sender;
mod to_channel;
