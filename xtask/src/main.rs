//! The only front door.
fn main() {}
