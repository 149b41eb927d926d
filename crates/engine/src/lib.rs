//! The shell around the core: takes requests in, attempts them in their turn, and writes every decision.
//!
//! Everything with an `if` about policy is in the core (law 1). The engine must not know of HTTP servers, of SQL, or of bytes on the wire.
#![forbid(unsafe_code)]

pub mod clock;
pub mod dice;
mod engine;
mod options;
mod refusal;

pub use clock::{Clock, SystemClock};
pub use dice::{Dice, SystemDice};
pub use engine::{ConnectionRef, Engine, NewConnection, SendOptions, StartError};
pub use options::EngineOptions;
pub use refusal::Refusal;
