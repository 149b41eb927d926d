//! Where deliveries live: the contract that every store keeps, as domain verbs over batches.
//!
//! No SQL and no file shows through the traits, and nothing in them assumes one process or one clock: a store may have many
//! workers, and `now` is always an argument. It must not know of policies: decisions come in as values and are written whole.
#![forbid(unsafe_code)]

mod alerts;
mod allowances;
mod answers;
pub mod audit;
mod calls;
mod configure;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod contract;
pub mod credentials;
mod deferrals;
mod endpoints;
mod error;
mod events;
mod filter;
mod health;
mod histogram;
mod jobs;
mod kept_programs;
mod limits;
pub mod memory;
pub mod moving;
mod people;
mod place;
pub mod postgres;
mod read;
mod records;
mod security;
mod signals;
mod sources;
pub mod sqlite;
mod unclaimed;
mod vitals;
mod workforce;

pub use alerts::{AlertWrite, Alerts};
pub use answers::{Claimed, KeptAnswer, KeyedAnswers};
pub use audit::{AUDIT_RETENTION, AuditActor, AuditEntry, AuditFilter, AuditLog, Change};
pub use calls::{KeyedCalls, Reserved};
pub use configure::{ConfigChange, StoreConfigure};
pub use contract::Store;
pub use credentials::{ApiKey, Credentials, FormerKey, KEYS_MAX, KeyHash};
pub use deferrals::Deferrals;
pub use endpoints::{EndpointKeys, EndpointRow, Endpoints, FormerSigningKey};
pub use error::StoreError;
pub use events::{EventFilter, Events, NewEvent, PublishedEvent, StoredEvent};
pub use filter::{CountColumn, CountRange, DeliveryFilter, TimeColumn, TimeRange};
pub use health::{EndpointHealths, HealthWrite, OffWrite};
pub use histogram::{Histogram, HistogramFigures};
pub use jobs::{Counted, Job, JobItem, JobItems, JobScope, JobStep, JobStepped, Jobs, NewJob, Skipped};
pub use limits::StoreLimits;
pub use memory::MemoryStore;
pub use people::{NewUser, PasswordHash, People, SESSIONS_MAX, Session, TokenHash, USERS_MAX, User, UserChange};
pub use postgres::{Database, PostgresOptions, PostgresStore};
pub use read::{
    Counts, DeadLetterFilter, LOG_RETENTION, PAGE_ROWS_MAX, Page, PageRequest, QueueSummary, Statistics, StoreRead,
};
pub use records::*;
pub use security::SecurityDefinitions;
pub use signals::{Signal, Signals};
pub use sources::{Arrival, Receipt, Received, Renewed, SourceKeys, SourceRow, Sources};
pub use sqlite::{SqliteOptions, SqliteStore};
pub use vitals::{StoreFigures, StoreVitals};
pub use workforce::{Spreading, Workforce};
