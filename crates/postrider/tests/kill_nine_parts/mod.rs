//! The parts of the kill -9 test: the server as a process, a client, and a receiver that remembers.

mod api;
mod receiver;
mod server;

pub use api::Api;
pub use receiver::Receiver;
pub use server::Server;

/// A small generator, so that a run replays from its seed.
pub fn pseudo_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}
