//! Reading requests: bodies within bounds, JSON objects field by field, query strings, ids and names. Everything refused is named.
//!
//! It must not know what a request is for.

mod body;
mod budget;
mod compact;
mod fields;
mod lines;
mod query;
mod segments;

pub use body::{BodyBounds, collect, collect_content};
pub use compact::compact;
pub use fields::{Fields, Given, essence, object_pairs};
pub use lines::Lines;
pub use query::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, Query};
pub use segments::{Segments, decoded, delivery_id};
