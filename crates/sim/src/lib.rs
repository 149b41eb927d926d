//! The whole engine over simulated time, network and disk: one seed, one run, replayed exactly.
//!
//! ```text
//! seed ─► workload ─► engine ─► faulty store ─► memory or SQLite
//!            │           │            │
//!         ledger      network      crashes
//!            └───────────┴── oracle ──┘
//! ```
//!
//! This crate must not decide anything about deliveries: it drives, breaks and checks.
#![forbid(unsafe_code)]

mod clock;
mod disk;
mod faulty_store;
mod hooks;
mod ledger;
mod network;
pub mod oracle;
mod plan;
mod run;
mod tamper;
mod thief;
mod workload;

pub use oracle::Violation;
pub use plan::{Plan, StoreKind};
pub use run::{Report, run_seed, run_tampered};
pub use tamper::Defect;
