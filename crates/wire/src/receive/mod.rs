//! Receiving: what listens for other systems, one file per protocol. HTTP is the business of whoever serves it.
//!
//! It must not know what becomes of a message, nor which channel it is for.

pub mod mllp;
