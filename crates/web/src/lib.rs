//! The HTTP API and the dashboard: their own accept loop, authentication, problems, one file per resource under `api` and one per page under `dashboard`.
//!
//! The API turns requests into calls of the engine and answers into JSON; the dashboard asks the API. It must not know of SQL, of policies or of the wire to remote systems.
#![forbid(unsafe_code)]

pub mod api;
pub mod auth;
pub mod body_view;
mod dashboard;
mod difference;
mod dispatch;
mod edit_text;
mod entrance;
mod front;
mod gate;
mod keyed;
pub mod openapi;
pub mod problem;
mod read;
mod routes;
pub mod server;

pub use api::{ApiOptions, AppState, openapi_document, read_message, router, routes};
pub use auth::{AdminKey, KeyError, ensure_admin_key};
pub use dashboard::site;
pub use entrance::Entrance;
pub use front::Front;
pub use gate::PeerAddress;
pub use problem::{FieldError, Problem};
pub use read::{BodyBounds, Query};
pub use routes::{Needs, PROJECT, Routes, Rule, Rules};
pub use server::{Answering, Answers, BindError, Server, ServerLimits};
