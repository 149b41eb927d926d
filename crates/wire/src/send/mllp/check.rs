//! Whether a message can be sent over MLLP at all: what its receiver could not read, or we could not match an acknowledgment to.
//!
//! It must not know of sockets.

use postrider_core::SettingError;
use postrider_core::connection::{AckMatch, MllpTarget};
use postrider_core::message::{Message, Method};

use crate::codec::{hl7, mllp};

/// # Errors
/// The part of the request that is at fault, and what is allowed.
pub(in crate::send) fn check(target: &MllpTarget, message: &Message) -> Result<(), SettingError> {
    let head = &message.head;
    const ONLY_BODY: &str = "nothing here: over MLLP only the body is sent";
    if head.method != Method::POST {
        return Err(SettingError::new("method", &head.method, ONLY_BODY));
    }
    if !head.path.is_empty() {
        return Err(SettingError::new("path", &head.path, ONLY_BODY));
    }
    if let Some((name, _)) = head.params.first() {
        return Err(SettingError::new("params", name, ONLY_BODY));
    }
    if let Some((name, _)) = head.headers.iter().next() {
        return Err(SettingError::new("headers", name, ONLY_BODY));
    }
    check_body(target, &message.body).map_err(|(given, allowed)| SettingError::new("body", given, allowed))
}

fn check_body(target: &MllpTarget, body: &[u8]) -> Result<(), (String, String)> {
    let bytes_max = target.message_bytes_max;
    if body.len() as u64 > u64::from(bytes_max) {
        return Err((format!("{} bytes", body.len()), format!("at most {bytes_max} bytes (`max_msg_size`)")));
    }
    let outline = hl7::outline(body).map_err(|error| {
        let allowed =
            "a message of HL7 version 2 in an encoding of single bytes or UTF-8, beginning with MSH, BHS or FHS";
        (format!("no HL7: {error}"), allowed.to_owned())
    })?;
    if let Some(found) = mllp::forbidden_byte(&target.framing, body) {
        let allowed =
            "a message without the bytes that `start_seq` and `end_seq` begin with: its receiver would cut it there";
        return Err((format!("the byte 0x{:02X} at offset {}", found.byte, found.at), allowed.to_owned()));
    }
    if target.ack_match == AckMatch::Strict && !outline.can_be_matched() {
        let allowed =
            "a message with a control id in MSH-10, which its acknowledgment repeats; `ack_match: warn` does without";
        return Err(("a message whose MSH-10 is empty".to_owned(), allowed.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};
    use postrider_core::message::RequestHead;
    use serde_json::{Value, json};

    const ADT: &[u8] = b"MSH|^~\\&|A|B|C|D|20260312||ADT^A01|M1|P|2.5\rPID|1\r";

    fn refused(settings: Value, head: Value, body: &[u8]) -> Option<String> {
        let mut written = json!({"address": "10.1.1.5:2575", "max_msg_size": 100});
        written.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let spec = ConnectionSpec::parse(ConnectionKind::Mllp, written.as_object().unwrap()).unwrap();
        let mut with_method = json!({"method": "POST"});
        with_method.as_object_mut().unwrap().extend(head.as_object().unwrap().clone());
        let head: RequestHead = serde_json::from_value(with_method).unwrap();
        let message = Message { head, body: body.to_vec().into() };
        check(spec.target.mllp().unwrap(), &message).err().map(|error| error.to_string())
    }

    #[test]
    fn what_a_receiver_could_not_read_is_refused_before_it_is_stored() {
        assert_eq!(refused(json!({}), json!({}), ADT), None);
        for (settings, head, body, why) in [
            (json!({}), json!({"method": "PUT"}), ADT, "`method` is `PUT`"),
            (json!({}), json!({"path": "/x"}), ADT, "`path` is `/x`"),
            (json!({}), json!({"params": [["a", "1"]]}), ADT, "`params` is `a`"),
            (json!({}), json!({"headers": [["X-A", "1"]]}), ADT, "`headers` is `X-A`"),
            (json!({}), json!({}), &[b'x'; 101][..], "at most 100 bytes"),
            (json!({}), json!({}), b"", "it is empty"),
            (json!({}), json!({}), b"hello", "does not begin with MSH"),
            (json!({}), json!({}), b"MSH|^~\\&|A|B|C|D|1||ADT|M1|P|2\rOBX|\x1c", "0x1C at offset 35"),
            (json!({}), json!({}), b"MSH|^~\\&|A|B|C|D|1||ADT||P|2\r", "MSH-10 is empty"),
            (json!({"start_seq": "02", "end_seq": "03"}), json!({}), b"MSH|^~\\&|A|B|C|D|1||ADT|M1|\x03", "0x03"),
        ] {
            let told = refused(settings, head, body).unwrap_or_default();
            assert!(told.contains(why), "{told}");
        }
        let nameless = b"MSH|^~\\&|A|B|C|D|1||ADT||P|2\r";
        assert_eq!(refused(json!({"ack_match": "warn"}), json!({}), nameless), None);
    }
}
