//! The pure heart of Postrider: what a delivery is and what happens to it next.
//!
//! Nothing here is async, does I/O, reads a clock or rolls a die: `now` and `roll` are arguments and a `Decision` comes out
//! (law 1 of the architecture). It must not know of stores, sockets, HTTP servers or files.
#![forbid(unsafe_code)]

pub mod health;
pub mod retry_after;
pub mod roll;
pub mod schedule;
pub mod setting;
pub mod status_set;
pub mod time;
pub mod topic;

pub use time::{Timestamp, Wait};
