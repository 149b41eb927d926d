//! The REST sender against real sockets on loopback: a peer that does exactly what a test tells it, good or bad.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod auth;
mod cases;
mod faults;
mod guarded;
mod pooled;
mod raw_peer;
mod requests;
mod speed;
mod tls;
