//! The pure heart of Postrider: what a delivery is and what happens to it next.
//!
//! Nothing here is async, does I/O, reads a clock or rolls a die: `now` and `roll` are arguments and a `Decision` comes out
//! (law 1 of the architecture). It must not know of stores, sockets, HTTP servers or files.
#![forbid(unsafe_code)]

pub mod access;
pub mod ack;
pub mod alert;
pub mod attempt;
pub mod blocked;
pub mod breaker;
pub mod call;
pub mod challenge;
pub mod channel_path;
pub mod connection;
pub mod decide;
pub mod deferral;
pub mod delivery;
pub mod endpoint;
pub mod envelope;
pub mod explanation;
mod failure;
pub mod fhir;
pub mod flow;
pub mod growth;
pub mod health;
pub mod http_url;
pub mod id;
pub mod job;
pub mod json_text;
pub mod log;
pub mod log_in;
pub mod masking;
pub mod message;
pub mod operational;
pub mod ordering;
pub mod outcome;
pub mod pace;
pub mod path_template;
pub mod person;
pub mod policy;
pub mod quota;
pub mod rate;
pub mod reach;
pub mod readiness;
pub mod remote_news;
mod reply;
pub mod retry_after;
pub mod roll;
pub mod schedule;
mod secret;
pub mod security;
mod setting;
pub mod settings;
pub mod soap;
pub mod source;
pub mod spread;
pub mod status_set;
pub mod subscription;
pub mod success_if;
mod time;
pub mod topic;
pub mod trace;
pub mod verdict;

pub use failure::Failure;
pub use reply::{Answer, NoAnswer, NoAnswerKind, Reply, Said};
pub use secret::{MASK, Secret};
pub use setting::SettingError;
pub use time::{Timestamp, Wait};
