//! Transformations: jq programs that people write, run where they can harm nobody.
//!
//! A thread that runs on cannot be ended, and a process can. So programs run in processes of this same binary, which hold nothing: no sockets,
//! no files, no environment, no keys, and at most so much memory and time (`limits`). `pool` keeps a few of them warm and ends one that does
//! not answer; `worker` is what runs in such a process; `program` is jq itself. They must not know what a body is about.
#![forbid(unsafe_code)]

mod confine;
mod frame;
mod limits;
mod pool;
mod program;
mod worker;

pub use limits::TransformLimits;
pub use pool::ProcessPool;
pub use worker::work;
