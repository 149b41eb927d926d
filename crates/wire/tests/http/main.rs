//! The REST sender against real sockets on loopback: a peer that does exactly what a test tells it, good or bad.

mod cases;
mod faults;
mod guarded;
mod pooled;
mod raw_peer;
mod requests;
mod speed;
mod tls;
