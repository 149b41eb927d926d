//! What holds a delivery back, and what the server tells of itself.

mod claims;
mod lab;
mod limits;
mod order;
#[path = "../stage/mod.rs"]
mod stage;
mod telling;
