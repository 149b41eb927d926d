//! The keys of connections as people write them, read into validated settings.
//!
//! All errors are collected, each with its field, what was given and what is allowed (Z03: nothing is clamped in silence). This module
//! must not know of files, lines or environment variables: YAML, API and import hand in a map of JSON values.

mod canonical;
pub mod delivery;
pub mod headers;
mod host;
pub mod keys;
mod ladder;
mod nearest;
pub mod objects;
mod reader;
pub mod rest;
pub mod security;
pub mod subscription;
mod tls;
mod warnings;
pub mod webhook;

pub use crate::setting::SettingError;
pub use canonical::{ALIASES, canonical, differing};
pub(crate) use host::read_host;
pub use keys::{DELIVERY_KEYS, KeyDoc, REST_KEYS, Shape, WEBHOOK_KEYS, security_keys};
pub use nearest::nearest;
pub use subscription::PUSH_KEYS;
pub use warnings::{PASSED_OVER, PASSED_OVER_FAMILIES, SettingWarning, all_warnings, warnings};

use crate::Wait;
use crate::connection::ConnectionKind;

/// Every key that a connection of this kind takes, its own first.
pub fn keys_of(kind: ConnectionKind) -> impl Iterator<Item = &'static KeyDoc> {
    let own = match kind {
        ConnectionKind::Rest => REST_KEYS,
        ConnectionKind::Webhook => WEBHOOK_KEYS,
    };
    own.iter().chain(DELIVERY_KEYS)
}

/// Whether a connection of this kind has this key, or refuses it in words of its own.
pub fn reads(kind: ConnectionKind, key: &str) -> bool {
    delivery::refuses(key) || key == "security" || keys_of(kind).any(|doc| doc.name == key)
}

#[cfg(test)]
mod tests;
