//! An acknowledgment that we give: its header is the message's with sender and receiver exchanged, in the message's own delimiters.
//!
//! It must not know what was done with the message.

use postrider_core::ack::AckCode;

use super::{Delimiters, segments};

/// What an acknowledgment says beside its code.
#[derive(Clone, Copy, Debug)]
pub struct AckHead<'a> {
    /// Its own MSH-10, at most 20 characters.
    pub control_id: &'a str,
    /// MSH-7, such as `20260312120534`.
    pub time: &'a str,
    /// MSA-3.
    pub text: Option<&'a str>,
}

/// Acknowledges a message, or the first one of a batch. What is no HL7 is acknowledged with the usual delimiters and no MSA-2, so that its
/// sender hears of it at all.
pub fn build_ack(message: &[u8], code: AckCode, head: AckHead<'_>) -> Vec<u8> {
    let header = segments(message).ok().and_then(|mut all| all.find(|segment| segment.is("MSH")));
    let first = segments(message).ok().and_then(|mut all| all.next());
    let delimiters = header.or(first).map_or(USUAL, |segment| segment.delimiters());
    let field = |number: usize| header.map_or(&b""[..], |header| header.field(number));
    let batch_id = first.filter(|first| !first.is("MSH")).map_or(&b""[..], |first| first.field(11));
    let trigger = delimiters.component(field(9), 2);
    let component = delimiters.component.unwrap_or(b'^');
    let mut kind = b"ACK".to_vec();
    if !trigger.is_empty() {
        for part in [trigger, b"ACK"] {
            kind.push(component);
            kind.extend_from_slice(part);
        }
    }
    // A header inside of a batch whose delimiters cannot be read was read by those of the first.
    let readable = header.filter(|header| Delimiters::read(header.bytes()).is_some());
    let encoding = readable.or(first).map_or(&b"^~\\&"[..], |segment| segment.field(2));
    let own = |text: &str| escaped(text, delimiters);
    let or_own = |given: &[u8], text: &str| if given.is_empty() { own(text) } else { given.to_vec() };
    let mut fields: Vec<Vec<u8>> = vec![
        encoding.to_vec(),
        field(5).to_vec(),
        field(6).to_vec(),
        field(3).to_vec(),
        field(4).to_vec(),
        own(head.time),
        Vec::new(),
        kind,
        own(head.control_id),
        or_own(field(11), "P"),
        or_own(field(12), "2.3"),
    ];
    let charset = field(18);
    if !charset.is_empty() {
        fields.extend([const { Vec::new() }; 5]);
        fields.push(charset.to_vec());
    }
    let separator = delimiters.field;
    let mut ack = b"MSH".to_vec();
    push_fields(&mut ack, separator, &fields);
    ack.extend_from_slice(b"MSA");
    let id = if field(10).is_empty() { batch_id } else { field(10) };
    let mut fields = vec![code.as_str().as_bytes().to_vec(), id.to_vec()];
    fields.extend(head.text.map(own));
    push_fields(&mut ack, separator, &fields);
    ack
}

const USUAL: Delimiters = Delimiters {
    field: b'|',
    component: Some(b'^'),
    repetition: Some(b'~'),
    escape: Some(b'\\'),
    subcomponent: Some(b'&'),
};

fn push_fields(into: &mut Vec<u8>, separator: u8, fields: &[Vec<u8>]) {
    for field in fields {
        into.push(separator);
        into.extend_from_slice(field);
    }
    into.push(b'\r');
}

/// Our own words, in the message's delimiters.
fn escaped(text: &str, delimiters: Delimiters) -> Vec<u8> {
    let Delimiters { field, component, repetition, escape, subcomponent } = delimiters;
    let mut bytes = Vec::with_capacity(text.len());
    for byte in text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }) {
        let name = if byte == field {
            Some(b'F')
        } else {
            [(component, b'S'), (repetition, b'R'), (escape, b'E'), (subcomponent, b'T')]
                .into_iter()
                .find_map(|(known, name)| (known == Some(byte)).then_some(name))
        };
        match (name, escape) {
            (Some(name), Some(escape)) => bytes.extend([escape, name, escape]),
            (Some(_), None) => bytes.push(b' '),
            (None, _) => bytes.push(byte),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::hl7::acknowledgment;

    const HEAD: AckHead<'_> = AckHead { control_id: "PR7", time: "20260312120534", text: None };

    fn built(message: &[u8], code: AckCode, head: AckHead<'_>) -> String {
        String::from_utf8(build_ack(message, code, head)).unwrap()
    }

    // Field reports: mirrored wrongly, version fixed, no event type, no CR at the end.
    #[test]
    fn m41_the_header_is_the_messages_with_sender_and_receiver_exchanged() {
        let message = b"MSH|^~\\&|LAB|GH|LIS|GH2|20260311||ADT^A01^ADT_A01|MSG1|T|2.5.1||||||UNICODE UTF-8\rPID|1\r";
        assert_eq!(
            built(message, AckCode::Aa, HEAD),
            "MSH|^~\\&|LIS|GH2|LAB|GH|20260312120534||ACK^A01^ACK|PR7|T|2.5.1||||||UNICODE UTF-8\rMSA|AA|MSG1\r"
        );
        let odd = b"MSH:;~\\&:LAB:GH:LIS:GH2:20260311::ADT;A01:MSG1:P:2.3\r";
        let text = Some("full: try later & again");
        assert_eq!(
            built(odd, AckCode::Ar, AckHead { text, ..HEAD }),
            "MSH:;~\\&:LIS:GH2:LAB:GH:20260312120534::ACK;A01;ACK:PR7:P:2.3\rMSA:AR:MSG1:full\\F\\ try later \\T\\ again\r"
        );
    }

    #[test]
    fn what_is_no_hl7_is_refused_in_the_usual_delimiters() {
        let ack = built(b"hello", AckCode::Ar, AckHead { text: Some("no HL7"), ..HEAD });
        assert_eq!(ack, "MSH|^~\\&|||||20260312120534||ACK|PR7|P|2.3\rMSA|AR||no HL7\r");
    }

    #[test]
    fn a_batch_is_acknowledged_by_its_first_message_or_by_its_own_number() {
        let batch = b"BHS|^~\\&|A|B|C|D|1||||B1\rMSH|^~\\&|A|B|C|D|1||ADT^A01|M1|P|2.5\r";
        let ack = build_ack(batch, AckCode::Ca, HEAD);
        assert_eq!(acknowledgment(&ack).unwrap().items[0].0, b"M1");
        let empty = build_ack(b"BHS|^~\\&|A|B|C|D|1||||B1\r", AckCode::Ca, HEAD);
        assert_eq!(acknowledgment(&empty).unwrap().items[0].0, b"B1");
    }
}
