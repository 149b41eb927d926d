//! The sender of MLLP connections against receivers that do as they are told. Names in `m01` to `m43` are those of reports from the field.
#![allow(clippy::unwrap_used, reason = "a test")]

mod acks;
mod batches;
mod cases;
mod faults;
mod linear;
mod receiver;
mod sockets;
mod tls;
