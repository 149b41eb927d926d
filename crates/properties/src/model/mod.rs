//! Second opinions, each written from a definition by plain counting. They must not call what they judge.

pub mod calendar;
pub mod waits;
