//! What can go wrong with the database: it goes away, the network to it is cut or silent, it has no place, somebody keeps a lock. Each test has
//! a PostgreSQL of its own and the real binary.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

#[path = "../harness/mod.rs"]
mod harness;

mod fencing;
mod limits;
mod load;
mod network;
mod outage;
mod plant;
mod pooler;
mod tls;
mod wire;
