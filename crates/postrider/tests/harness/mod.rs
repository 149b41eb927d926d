//! What tests of the real binary stand on: the server as a process, a client, a receiver that remembers, and peers from the lab.
#![allow(dead_code, unused_imports, reason = "each test uses its own part of the harness")]

mod api;
mod bench;
mod hooks;
mod mirror;
mod peer;
mod raw_remote;
mod receiver;
mod server;

pub use api::Api;
pub use bench::{Bench, flags};
pub use hooks::{Hooks, PROJECT, Receipt, Remote, verified};
pub use mirror::{Mirror, Mirrored};
pub use peer::Peer;
pub use raw_remote::{Act, RawRemote};
pub use receiver::Receiver;
pub use server::{KEY, Server};

/// A small generator, so that a run replays from its seed.
pub fn pseudo_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}
