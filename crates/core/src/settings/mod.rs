//! The keys of connections as people write them, read into validated settings.
//!
//! All errors are collected, each with its field, what was given and what is allowed (Z03: nothing is clamped in silence). This module
//! must not know of files, lines or environment variables: YAML, API and import hand in a map of JSON values.

mod canonical;
pub mod channel;
mod channel_mllp;
pub mod delivery;
mod fhir;
pub mod headers;
mod host;
pub mod keys;
mod ladder;
mod mllp;
mod nearest;
pub mod objects;
mod reader;
mod rest;
pub mod security;
pub mod service;
pub mod soap;
pub mod source;
pub mod subscription;
mod target_keys;
mod tls;
mod warnings;
mod webhook;

pub use crate::setting::SettingError;
pub use canonical::{ALIASES, canonical, differing};
pub(crate) use host::read_host;
pub use keys::{DELIVERY_KEYS, KeyDoc, Shape, security_keys};
pub use nearest::nearest;
pub use source::{SOURCE_KEYS, SOURCE_SECRET_KEYS};
pub use subscription::PUSH_KEYS;
pub use warnings::{SettingWarning, all_warnings, warnings};

use serde_json::{Map, Value};

use crate::Wait;
use crate::connection::{ConnectionKind, ConnectionSpec};

/// What is particular to the settings of one kind; each kind is one file with one of these.
pub(crate) struct KindSettings {
    /// Its own keys, in the order in which they are shown.
    own: &'static [KeyDoc],
    /// Keys of other kinds, and delivery keys that mean nothing here: refused with what is allowed instead, in better words than "unknown".
    not_here: &'static [(&'static str, &'static str)],
    /// Keys of the integration platform that mean nothing here, so that its files import (D18).
    passed_over: &'static [&'static str],
    /// The same for whole families of keys, by how they begin.
    passed_over_families: &'static [&'static str],
    /// Reads the keys as written, without `name` and `type`. All that is refused, each with its field.
    parse: fn(&Map<String, Value>) -> Parsed,
}

type Parsed = Result<ConnectionSpec, Vec<SettingError>>;

impl KindSettings {
    const fn of(kind: ConnectionKind) -> &'static KindSettings {
        match kind {
            ConnectionKind::Rest => &rest::SETTINGS,
            ConnectionKind::Mllp => &mllp::SETTINGS,
            ConnectionKind::Soap => &soap::SETTINGS,
            ConnectionKind::Fhir => &fhir::SETTINGS,
            ConnectionKind::Webhook => &webhook::SETTINGS,
            ConnectionKind::ChannelRest => &channel::REST,
            ConnectionKind::ChannelSoap => &channel::SOAP,
            ConnectionKind::ChannelMllp => &channel_mllp::SETTINGS,
            ConnectionKind::Service => &service::SETTINGS,
        }
    }

    /// Its own keys first, then those of the delivery.
    fn keys(&'static self) -> impl Iterator<Item = &'static KeyDoc> {
        self.own.iter().chain(DELIVERY_KEYS.iter().filter(|doc| !self.refuses(doc.name)))
    }

    fn refuses(&self, key: &str) -> bool {
        self.not_here.iter().any(|(name, _)| *name == key)
    }

    fn passes_over(&self, key: &str) -> bool {
        self.passed_over.contains(&key) || self.passed_over_families.iter().any(|family| key.starts_with(family))
    }
}

pub(crate) fn parse(kind: ConnectionKind, written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    (KindSettings::of(kind).parse)(written)
}

/// Every key that a connection of this kind takes, its own first.
pub fn keys_of(kind: ConnectionKind) -> impl Iterator<Item = &'static KeyDoc> {
    KindSettings::of(kind).keys()
}

/// Whether a connection of this kind has this key, or refuses it in words of its own.
pub fn reads(kind: ConnectionKind, key: &str) -> bool {
    KindSettings::of(kind).refuses(key) || keys_of(kind).any(|doc| doc.name == key)
}

/// Keys of the integration platform that a connection of this kind accepts without effect, and how whole families of them begin (D18).
pub fn passed_over(kind: ConnectionKind) -> (&'static [&'static str], &'static [&'static str]) {
    let settings = KindSettings::of(kind);
    (settings.passed_over, settings.passed_over_families)
}

#[cfg(test)]
mod tests;
