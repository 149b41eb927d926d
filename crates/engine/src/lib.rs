//! The shell around the core: takes requests in, attempts them in their turn, and writes every decision.
//!
//! Everything with an `if` about policy is in the core (law 1). The engine must not know of HTTP servers, of SQL, or of bytes on the wire.
#![forbid(unsafe_code)]

mod actor;
mod administration;
mod attempt;
mod audit;
mod call;
mod call_log;
pub mod clock;
mod configuring;
mod connections;
pub mod dice;
mod dispatcher;
mod engine;
mod entry;
mod forwarding;
mod importing;
mod intake;
mod jobs;
mod keyed_calls;
mod keys;
mod lifecycle;
mod maintenance;
mod notifier;
mod operators;
mod options;
mod outbox;
mod plug;
mod projects;
mod refusal;
mod remotes;
mod restoring;
mod runner;
mod securing;
mod securities;
mod settler;
mod shared;
mod spans;
mod tally;
mod topics;
pub mod vault;
mod vitals;
mod wsdl;

pub use actor::Actor;
pub use administration::{NewKey, ShownKey};
pub use clock::{Clock, SystemClock};
pub use dice::{Dice, SystemDice};
pub use engine::{ConnectionRef, Engine, NewConnection, SendOptions, StartError};
pub use importing::configure_store;
pub use jobs::{JobOrder, JobTarget};
pub use keys::{KeyHolder, KeyRefused};
pub use lifecycle::ensure_first_project;
pub use options::{EngineOptions, LadderLimits};
pub use plug::Plug;
pub use refusal::Refusal;
pub use restoring::{Restored, hold_all, resume_held};
pub use securing::{NewSecurity, opened_secrets};
pub use securities::Security;
pub use tally::{Figures, RequestFigures};
pub use vault::{KeyHome, Keyring, MasterKey, Place, Sealed, Vault, VaultError};
pub use vitals::Standing;
pub use wsdl::Description;
