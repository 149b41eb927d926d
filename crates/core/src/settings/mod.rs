//! The keys of connections as people write them, read into validated settings.
//!
//! All errors are collected, each with its field, what was given and what is allowed (Z03: nothing is clamped in silence). This module
//! must not know of files, lines or environment variables: YAML, API and import hand in a map of JSON values.

pub mod delivery;
mod host;
pub mod keys;
mod ladder;
mod nearest;
mod reader;
pub mod rest;
pub mod security;
mod tls;
mod warnings;

pub use crate::setting::SettingError;
pub(crate) use host::read_host;
pub use keys::{DELIVERY_KEYS, KeyDoc, REST_KEYS, security_keys};
pub use warnings::warnings;

use crate::connection::ConnectionKind;

/// Every key that a connection of this kind takes, its own first.
pub fn keys_of(kind: ConnectionKind) -> impl Iterator<Item = &'static KeyDoc> {
    let own = match kind {
        ConnectionKind::Rest => REST_KEYS,
    };
    own.iter().chain(DELIVERY_KEYS)
}

#[cfg(test)]
mod tests;
