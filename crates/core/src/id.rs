//! Identifiers: time-sortable, prefixed, 128 bits; and the correlation id that a person reads in logs.
//!
//! This module must not know where time and randomness come from: both are arguments.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LETTERS: usize = 26;

/// Why a text is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an id: expected `{prefix}` and 26 letters or digits")]
pub struct IdError {
    pub given: String,
    pub prefix: &'static str,
}

fn pack(now: Timestamp, random: u128) -> u128 {
    let millis = u128::from(u64::try_from(now.as_millis()).unwrap_or(0) & 0xFFFF_FFFF_FFFF);
    (millis << 80) | (random & ((1 << 80) - 1))
}

fn write_letters(value: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = [0u8; LETTERS];
    for (index, letter) in text.iter_mut().enumerate() {
        let shift = 5 * (LETTERS - 1 - index);
        *letter = ALPHABET[((value >> shift) & 31) as usize];
    }
    f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

fn read_letters(text: &str) -> Option<u128> {
    if text.len() != LETTERS {
        return None;
    }
    let mut value: u128 = 0;
    for (index, byte) in text.bytes().enumerate() {
        let digit = ALPHABET.iter().position(|letter| *letter == byte)? as u128;
        // 26 letters hold 130 bits: the first one may use only three of its five.
        if index == 0 && digit > 7 {
            return None;
        }
        value = (value << 5) | digit;
    }
    Some(value)
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// The 48 high bits are the milliseconds of `now`, the 80 low ones come from `random`, so ids sort by time.
            pub fn new(now: Timestamp, random: u128) -> Self {
                $name(pack(now, random))
            }

            pub const fn from_u128(value: u128) -> Self {
                $name(value)
            }

            pub const fn as_u128(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                write_letters(self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    .and_then(read_letters)
                    .map($name)
                    .ok_or_else(|| IdError { given: text.chars().take(64).collect(), prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id_type!(/// A delivery; what callers know as `msg_id` (D15).
    DeliveryId, "msg_");
id_type!(/// An event or a topic's message.
    EventId, "evt_");
id_type!(/// A connection, for its whole life: a rename keeps it, and with it the queue.
    ConnectionId, "con_");
id_type!(/// A webhook endpoint, which is a connection: both ids have the same letters.
    EndpointId, "ep_");
id_type!(ProjectId, "prj_");
id_type!(/// A security definition; its secret is sealed for this id.
    SecurityId, "sec_");
id_type!(TopicId, "top_");
id_type!(SubscriptionId, "sub_");
id_type!(/// A source of incoming webhooks, for its whole life; its secret is sealed for this id.
    SourceId, "src_");
id_type!(/// A destination, which is a subscription to a source's topic: both ids have the same letters.
    DestinationId, "dst_");
id_type!(/// A forward, which is a delivery of an incoming webhook: both ids have the same letters.
    ForwardId, "fwd_");
id_type!(/// A body in the store, shared by all deliveries of one event.
    BodyId, "bod_");
id_type!(/// One running process that delivers.
    WorkerId, "wrk_");
id_type!(/// An API key, for its whole life: a rotation keeps it.
    KeyId, "key_");
id_type!(/// Somebody who logs in to the dashboard.
    UserId, "usr_");
id_type!(/// An entry of the audit log.
    AuditId, "aud_");
id_type!(/// An operator's command that waits for the owner of a queue (D06).
    CommandId, "cmd_");
id_type!(/// An alert, from when it is raised.
    AlertId, "alr_");
id_type!(/// A job: one act over many deliveries (P08).
    JobId, "job_");

impl EndpointId {
    pub const fn of(connection: ConnectionId) -> Self {
        EndpointId(connection.0)
    }

    pub const fn connection(self) -> ConnectionId {
        ConnectionId(self.0)
    }
}

impl DestinationId {
    pub const fn of(subscription: SubscriptionId) -> Self {
        DestinationId(subscription.0)
    }

    pub const fn subscription(self) -> SubscriptionId {
        SubscriptionId(self.0)
    }
}

impl ForwardId {
    pub const fn of(delivery: DeliveryId) -> Self {
        ForwardId(delivery.0)
    }

    pub const fn delivery(self) -> DeliveryId {
        DeliveryId(self.0)
    }
}

/// A queue is named by the connection it belongs to, so that a rename keeps it.
pub type QueueId = ConnectionId;

/// Correlation id: `YYYYMMDD-HHMMSS-ffff-` and nine hex digits, the same from the caller's log to the last attempt.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cid(Box<str>);

impl Cid {
    pub fn new(now: Timestamp, random: u64) -> Self {
        let text = now.to_string();
        // `2026-03-12T12:05:34.730Z`: the digits of date, time and milliseconds, always at the same places for years 0 to 9999.
        let digits: String = text.bytes().filter(u8::is_ascii_digit).map(char::from).collect();
        let (date, rest) = digits.split_at(8.min(digits.len()));
        let (time, millis) = rest.split_at(6.min(rest.len()));
        let tenth = random % 10;
        let tail = (random / 10) & 0xF_FFFF_FFFF;
        Cid(format!("{date}-{time}-{millis}{tenth}-{tail:09x}").into_boxed_str())
    }

    /// When it was made, if it has the shape that `new` gives; a caller's own correlation id may say any time, and may have any shape.
    pub fn made_at(&self) -> Option<Timestamp> {
        let text = self.0.as_bytes();
        let wanted = b"00000000-000000-0000-xxxxxxxxx";
        let fits = |(byte, wanted): (&u8, &u8)| match wanted {
            b'0' => byte.is_ascii_digit(),
            b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            other => byte == other,
        };
        if text.len() != wanted.len() || !text.iter().zip(wanted).all(fits) {
            return None;
        }
        let part = |from: usize, to: usize| self.0.get(from..to).unwrap_or_default();
        Timestamp::parse_rfc3339(&format!(
            "{}-{}-{}T{}:{}:{}.{}Z",
            part(0, 4),
            part(4, 6),
            part(6, 8),
            part(9, 11),
            part(11, 13),
            part(13, 15),
            part(16, 19)
        ))
    }

    /// Takes a text that was stored before. Anything goes: a correlation id is shown, never interpreted.
    pub fn from_stored(text: &str) -> Self {
        Cid(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_sorts_by_its_time() {
        let early = DeliveryId::new(Timestamp::from_millis(1_000), u128::MAX);
        let late = DeliveryId::new(Timestamp::from_millis(1_001), 0);
        assert!(early < late);
        assert!(early.to_string() < late.to_string());
    }

    #[test]
    fn another_kind_of_id_is_refused() {
        let id = EventId::new(Timestamp::from_millis(5), 7).to_string();
        let error = id.parse::<DeliveryId>().unwrap_err();
        assert!(error.to_string().contains("msg_"), "{error}");
    }

    // proves: Z42 (the shape of the cid)
    #[test]
    fn z42_a_cid_has_the_documented_shape() {
        let cid = Cid::new(Timestamp::from_millis(1_773_317_134_730), 1);
        assert_eq!(cid.as_str(), "20260312-120534-7301-000000000");
        assert_eq!(cid.as_str().len(), "20260312-120534-7301-7f2c0e51a".len());
        assert_eq!(cid.made_at(), Some(Timestamp::from_millis(1_773_317_134_730)));
        for other in
            ["", "20260312-120534-7301-00000000G", "20261312-120534-7301-000000000", "20260312-120534-7301-00000000é"]
        {
            assert_eq!(Cid::from_stored(other).made_at(), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn every_id_reads_back(value: u128) {
            let id = DeliveryId::from_u128(value);
            prop_assert_eq!(id.to_string().parse::<DeliveryId>(), Ok(id));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = text.parse::<DeliveryId>();
            let _ = format!("msg_{text}").parse::<DeliveryId>();
        }
    }
}
