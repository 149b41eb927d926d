//! The messages: 1 KiB of text each, beginning with their number, and the requests that publish them.
//!
//! It must not know where they go.

use bytes::{BufMut, Bytes, BytesMut};

/// Size of a message's body as the remote system gets it.
pub const BODY_BYTES: usize = 1024;
const DIGITS: usize = 12;
const BEFORE: &[u8] = b"{\"body\":\"";
const AFTER: &[u8] = b"\"}";
/// Filler without a pattern that compression or JSON escaping could act on.
const FILLER: &[u8; 64] = b"Km2xQ7fTz0LrVb9WcYh3NsEj6GuPa1DkXo8RiMv4JtBq5ZlSwHyCgFnUeAdOpI-_";

/// The body itself, as it arrives.
pub fn body(sequence: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(BODY_BYTES);
    put_body(&mut bytes, sequence);
    bytes.freeze()
}

/// The JSON of one publish request.
pub fn publish(sequence: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(BODY_BYTES + BEFORE.len() + AFTER.len());
    put_publish(&mut bytes, sequence);
    bytes.freeze()
}

/// The lines of a batch: messages `from` to `from + count`.
pub fn publish_lines(from: u64, count: u64) -> Bytes {
    let capacity = usize::try_from(count).unwrap_or(0) * (BODY_BYTES + BEFORE.len() + AFTER.len() + 1);
    let mut bytes = BytesMut::with_capacity(capacity);
    for sequence in from..from + count {
        put_publish(&mut bytes, sequence);
        bytes.put_u8(b'\n');
    }
    bytes.freeze()
}

/// The number at the beginning of a body or of a publish request.
pub fn sequence(bytes: &[u8]) -> Option<usize> {
    let text = bytes.strip_prefix(BEFORE).unwrap_or(bytes).get(..DIGITS)?;
    text.iter().try_fold(0usize, |value, digit| digit.is_ascii_digit().then(|| value * 10 + usize::from(digit - b'0')))
}

fn put_publish(bytes: &mut BytesMut, sequence: u64) {
    bytes.put_slice(BEFORE);
    put_body(bytes, sequence);
    bytes.put_slice(AFTER);
}

fn put_body(bytes: &mut BytesMut, sequence: u64) {
    let mut digits = [b'0'; DIGITS];
    let mut rest = sequence;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    bytes.put_slice(&digits);
    let mut missing = BODY_BYTES - DIGITS;
    while missing > 0 {
        let part = missing.min(FILLER.len());
        bytes.put_slice(&FILLER[..part]);
        missing -= part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_size_and_its_number() {
        for number in [0, 7, 999_999, 123_456_789_012] {
            assert_eq!(body(number).len(), BODY_BYTES);
            assert_eq!(sequence(&body(number)), usize::try_from(number).ok());
            assert_eq!(sequence(&publish(number)), usize::try_from(number).ok());
            let json: serde_json::Value = serde_json::from_slice(&publish(number)).unwrap();
            assert_eq!(json["body"].as_str().unwrap().as_bytes(), body(number));
        }
        assert_eq!(sequence(b"{}"), None);
        assert_eq!(sequence(b"12345678901x and more"), None);
    }

    #[test]
    fn a_batch_has_a_line_each() {
        let lines = publish_lines(5, 3);
        let numbers: Vec<_> = lines.split(|b| *b == b'\n').filter_map(sequence).collect();
        assert_eq!(numbers, [5, 6, 7]);
    }
}
