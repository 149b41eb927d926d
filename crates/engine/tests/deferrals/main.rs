//! What holds a delivery back, and what the server tells of itself.

mod lab;
#[path = "../stage/mod.rs"]
mod stage;
mod telling;
