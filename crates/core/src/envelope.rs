//! The body of a webhook: an envelope around the event's data, or the bare data (V09).
//!
//! An event's data is stored once, as it was accepted; the envelope is put around it for each attempt, always the same. This module must
//! not know who is sent what, nor how it is signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::delivery::EventRef;
use crate::json_text::has_lone_surrogate;

/// What an endpoint is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// `{"id": "evt_…", "type": …, "timestamp": …, "data": …}`
    #[default]
    Envelope,
    /// The data alone, byte for byte.
    Data,
    /// What came in, byte for byte, with the headers that it came with and without a signature of ours (R12).
    AsArrived,
}

impl Payload {
    pub const fn as_str(self) -> &'static str {
        match self {
            Payload::Envelope => "envelope",
            Payload::Data => "data",
            Payload::AsArrived => "as_arrived",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Payload::Envelope, Payload::Data, Payload::AsArrived].into_iter().find(|payload| payload.as_str() == text)
    }
}

/// The body as it goes out, for an event's stored data.
///
/// JSON goes into the envelope as it was written, so that no number is rounded; other text as a string; what is no text as
/// `data_base64` instead of `data`.
pub fn body(event: &EventRef, data: &Bytes) -> Bytes {
    if event.payload != Payload::Envelope {
        return data.clone();
    }
    let (name, data) = member(data);
    // The type has no character that JSON escapes, and neither has an id nor a time.
    let head =
        format!(r#"{{"id":"{}","type":"{}","timestamp":"{}","{name}":"#, event.id, event.event_type, event.happened_at);
    let mut body = Vec::with_capacity(head.len() + data.len() + 1);
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(&data);
    body.push(b'}');
    Bytes::from(body)
}

fn member(data: &Bytes) -> (&'static str, Bytes) {
    if serde_json::from_slice::<&RawValue>(data).is_ok_and(|json| !has_lone_surrogate(json.get())) {
        return ("data", Bytes::copy_from_slice(data.trim_ascii()));
    }
    match std::str::from_utf8(data) {
        Ok(text) => ("data", Bytes::from(serde_json::Value::from(text).to_string())),
        Err(_) => ("data_base64", Bytes::from(format!("\"{}\"", STANDARD.encode(data)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::id::{EventId, SubscriptionId};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn event(payload: Payload) -> EventRef {
        EventRef {
            id: EventId::from_u128(7),
            event_type: "order.created".to_owned(),
            happened_at: Timestamp::from_millis(1_773_317_134_730),
            subscription_id: SubscriptionId::from_u128(1),
            payload,
            line: None,
        }
    }

    #[test]
    fn v09_the_envelope_has_id_type_timestamp_and_the_data_as_written() {
        let sent = body(&event(Payload::Envelope), &Bytes::from_static(b" {\"n\": 12345678901234567890.50} \n"));
        let wanted = format!(
            r#"{{"id":"{}","type":"order.created","timestamp":"2026-03-12T12:05:34.730Z","data":{{"n": 12345678901234567890.50}}}}"#,
            EventId::from_u128(7)
        );
        assert_eq!(sent, wanted);
    }

    #[test]
    fn v09_bare_data_is_byte_for_byte_what_was_accepted() {
        let data = Bytes::from_static(b" \xff{\"n\": 1}\r\n");
        assert_eq!(body(&event(Payload::Data), &data), data);
    }

    #[test]
    fn v09_what_is_no_json_goes_as_a_string_or_base64() {
        let read = |data: &'static [u8]| -> Value {
            serde_json::from_slice(&body(&event(Payload::Envelope), &Bytes::from_static(data))).unwrap()
        };
        assert_eq!(read(b"MSH|^~\\&|\r\"x\"")["data"], "MSH|^~\\&|\r\"x\"");
        assert_eq!(read(b"")["data"], "");
        assert_eq!(read(b"{\"a\":1} {\"b\":2}")["data"], "{\"a\":1} {\"b\":2}");
        assert_eq!(read(b"\xff\x00")["data_base64"], json!("/wA="));
        assert_eq!(read(b"\xff\x00").get("data"), None);
    }

    proptest! {
        /// Whatever was published, the envelope is one JSON object whose members nobody can add to.
        #[test]
        fn v09_the_envelope_is_always_an_object_of_four(data in prop::collection::vec(any::<u8>(), 0..64)) {
            let sent: Value = serde_json::from_slice(&body(&event(Payload::Envelope), &data.into())).unwrap();
            prop_assert_eq!(sent.as_object().unwrap().len(), 4);
            prop_assert_eq!(&sent["id"], &json!(EventId::from_u128(7)));
        }
    }
}
