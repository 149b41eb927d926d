//! Ids and correlation ids: what is read, what is shown, and that ids sort by their time.

use std::fmt::Display;
use std::str::FromStr;

use postrider_core::Timestamp;
use postrider_core::id::{
    BodyId, Cid, CommandId, ConnectionId, DeliveryId, EventId, ProjectId, SubscriptionId, TopicId, WorkerId,
};

use crate::model::calendar::Moment;

const DIGITS: &str = "0123456789abcdefghjkmnpqrstvwxyz";

/// The input is an id as text; its first 32 bytes serve as times and random numbers too.
pub fn holds(data: &[u8]) {
    if let Some(text) = crate::text_of(data) {
        reads::<DeliveryId>(text, "msg_", DeliveryId::as_u128);
        reads::<EventId>(text, "evt_", EventId::as_u128);
        reads::<ConnectionId>(text, "con_", ConnectionId::as_u128);
        reads::<ProjectId>(text, "prj_", ProjectId::as_u128);
        reads::<TopicId>(text, "top_", TopicId::as_u128);
        reads::<SubscriptionId>(text, "sub_", SubscriptionId::as_u128);
        reads::<BodyId>(text, "bod_", BodyId::as_u128);
        reads::<WorkerId>(text, "wrk_", WorkerId::as_u128);
        reads::<CommandId>(text, "cmd_", CommandId::as_u128);
    }
    let (Some(first), Some(second)) = (data.first_chunk::<16>(), data.get(16..).and_then(<[u8]>::first_chunk::<16>))
    else {
        return;
    };
    let (first, second) = (u128::from_le_bytes(*first), u128::from_le_bytes(*second));
    assert_eq!(DeliveryId::from_u128(first).to_string().parse(), Ok(DeliveryId::from_u128(first)));
    let millis = |number: u128| i64::try_from(number & 0xFFFF_FFFF_FFFF).expect("48 bits fit");
    sorts_by_time((millis(first), first), (millis(second), second));
    cid_is_shaped(millis(first), (second >> 64) as u64);
}

fn reads<T: FromStr + Display + serde::de::DeserializeOwned>(text: &str, prefix: &str, number: fn(T) -> u128)
where
    T::Err: Display,
{
    let read = text.parse::<T>();
    match (read, by_hand(text, prefix)) {
        (Ok(id), Some(expected)) => {
            assert_eq!(id.to_string(), text, "one spelling each");
            assert_eq!(number(id), expected, "{text}");
        }
        (Err(error), None) => {
            let shown = error.to_string();
            assert!(shown.contains(prefix) && shown.chars().count() < 200, "{shown}");
        }
        (read, expected) => panic!("{text:?}: read {}, expected {expected:?}", read.is_ok()),
    }
    let stored = serde_json::to_string(text).expect("a text is JSON");
    assert_eq!(serde_json::from_str::<T>(&stored).is_ok(), by_hand(text, prefix).is_some());
}

/// 26 digits to the base of 32, worth at most 128 bits.
fn by_hand(text: &str, prefix: &str) -> Option<u128> {
    let letters = text.strip_prefix(prefix)?;
    if letters.chars().count() != 26 {
        return None;
    }
    let mut number: u128 = 0;
    for letter in letters.chars() {
        let digit = DIGITS.find(letter)? as u128;
        number = number.checked_mul(32)?.checked_add(digit)?;
    }
    Some(number)
}

fn sorts_by_time(first: (i64, u128), second: (i64, u128)) {
    let id = |(millis, random)| EventId::new(Timestamp::from_millis(millis), random);
    let (a, b) = (id(first), id(second));
    assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    if first.0 != second.0 {
        assert_eq!(a < b, first.0 < second.0);
    }
}

/// `YYYYMMDD-HHMMSS-ffff-` and nine hex digits (Z42).
fn cid_is_shaped(millis: i64, random: u64) {
    let cid = Cid::new(Timestamp::from_millis(millis), random);
    let shown_ms = millis.clamp(0, 253_402_207_200_000);
    let at = Moment::at(shown_ms / 1000);
    let time = format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}-{:03}",
        at.year,
        at.month,
        at.day,
        at.hour,
        at.minute,
        at.second,
        shown_ms % 1000
    );
    let tail = cid.as_str().strip_prefix(&time).unwrap_or_else(|| panic!("{cid} does not begin with {time}"));
    let (tenth, hex) = tail.split_once('-').unwrap_or_default();
    assert!(tenth.len() == 1 && tenth.bytes().all(|byte| byte.is_ascii_digit()), "{cid}");
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    assert!(hex.len() == 9 && hex.bytes().all(is_hex), "{cid}");
}
