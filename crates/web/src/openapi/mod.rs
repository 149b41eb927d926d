//! The API described by itself: an OpenAPI 3.1 document, generated from the table of routes.
//!
//! A route cannot be added without its `Operation` (`api/docs/`, one file a resource). It must not know how a request is handled.

mod document;
mod keys;
mod operation;
pub mod page;
mod path;
mod schema;
pub mod shapes;
mod tag;

pub use document::document;
pub use keys::{connection, of_key, passed_over, security};
pub use operation::{Describe, Operation};
pub use schema::{Member, Schema, always, optional, rarely, sometimes};
pub use tag::Tag;
