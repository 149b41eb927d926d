//! Configuration files: read, compared with what is there, planned, exported (D18, P04).
//!
//! `read` takes a YAML file apart and says everything that is wrong with it, each with its line. `plan` compares it with the store and gives the
//! difference and the changes that make it true; whoever holds the engine or the store applies those. `export` is the way back. The sections
//! are in `section`, one file each; schema, reference and export are made from the same keys as the reader's messages. This crate must
//! not write to a store, read files, clocks or the environment: all of that is handed in.
#![forbid(unsafe_code)]

mod difference;
pub mod document;
mod emit;
mod environment;
mod export;
mod file;
mod finding;
mod item;
mod plan;
mod reference;
mod schema;
pub mod section;
mod state;

pub use document::Place;
pub use environment::{NO_ENVIRONMENT, names as environment_names};
pub use export::export;
pub use file::{File, FileObject, read};
pub use finding::{FINDINGS_SHOWN_MAX, Finding, Refused};
pub use plan::{Action, Difference, KeyChange, Making, NewSecrets, Plan, plan};
pub use reference::reference;
pub use schema::schema;
pub use section::{Object, SECTIONS, Section, Variant};
pub use state::State;

/// The project that a file is about when it does not say.
pub const DEFAULT_PROJECT: &str = "default";
