//! An acknowledgment as it comes: any message with MSA segments, of whatever type it says that it is.
//!
//! It must not know which message it should be about.

use postrider_core::ack::{AckCode, AckItem};

use super::{NotHl7, Segment, segments, shown};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgment<'a> {
    /// One for each MSA, with MSA-2 as it is.
    pub items: Vec<(&'a [u8], AckItem)>,
    /// BHS-12 and FHS-12: the numbers of the batch that it is about.
    pub of_batches: Vec<&'a [u8]>,
}

/// Why it is no acknowledgment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAck {
    #[error("it is no HL7: {0}")]
    NotHl7(#[from] NotHl7),
    #[error("it has no MSA segment")]
    NoMsa,
    #[error("its MSA-1 is `{0}`")]
    Code(String),
}

/// # Errors
/// `NotAnAck`; a batch of which only the envelope came is an acknowledgment without items.
pub fn acknowledgment(bytes: &[u8]) -> Result<Acknowledgment<'_>, NotAnAck> {
    let mut ack = Acknowledgment::default();
    let mut charset: &[u8] = b"";
    // ERR belongs to the MSA before it.
    let mut has_msa = false;
    for segment in segments(bytes)? {
        if segment.is("MSH") {
            (charset, has_msa) = (segment.field(18), false);
        } else if segment.is("BHS") || segment.is("FHS") {
            ack.of_batches.extend(Some(segment.field(12)).filter(|id| !id.is_empty()));
        } else if segment.is("MSA") {
            ack.items.push((segment.field(2), item(&segment, charset)?));
            has_msa = true;
        } else if segment.is("ERR")
            && has_msa
            && let Some((_, last)) = ack.items.last_mut()
            && last.text.is_none()
        {
            last.text = error_text(&segment, charset);
        }
    }
    if ack.items.is_empty() && ack.of_batches.is_empty() {
        return Err(NotAnAck::NoMsa);
    }
    Ok(ack)
}

fn item(msa: &Segment<'_>, charset: &[u8]) -> Result<AckItem, NotAnAck> {
    let in_words = |field: &[u8]| shown(field, msa.delimiters(), charset);
    let code =
        AckCode::parse(msa.field(1)).ok_or_else(|| NotAnAck::Code(in_words(msa.field(1)).unwrap_or_default()))?;
    Ok(AckItem { code, control_id: in_words(msa.field(2)).unwrap_or_default(), text: in_words(msa.field(3)) })
}

/// Words for people first, then those for programmers, then the code's own; before version 2.5 all stood in ERR-1.
fn error_text(err: &Segment<'_>, charset: &[u8]) -> Option<String> {
    let delimiters = err.delimiters();
    let code_text = |coded: &[u8]| {
        let words = delimiters.component(coded, 2).to_vec();
        if words.is_empty() { delimiters.component(coded, 1).to_vec() } else { words }
    };
    let older = delimiters.component(delimiters.repetition(err.field(1), 1), 4);
    let older_words = delimiters.subcomponent(older, 2);
    let older = if older_words.is_empty() { delimiters.subcomponent(older, 1) } else { older_words };
    let from = [err.field(8).to_vec(), err.field(7).to_vec(), code_text(err.field(3)), older.to_vec()];
    from.iter().find_map(|field| shown(field, delimiters, charset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8]) -> AckItem {
        let read = acknowledgment(bytes).unwrap();
        assert_eq!(read.items.len(), 1);
        read.items[0].1.clone()
    }

    fn item(code: AckCode, id: &str, text: Option<&str>) -> AckItem {
        AckItem { code, control_id: id.to_owned(), text: text.map(str::to_owned) }
    }

    #[test]
    fn acknowledgments_as_receivers_send_them() {
        for (bytes, wanted) in [
            // The last segment without its CR.
            (&b"MSH|^~\\&|LIS|||||20260312||ACK|ACK|P|2.5\rMSA|AA|M1"[..], item(AckCode::Aa, "M1", None)),
            // Of another type than ACK, with its own delimiters.
            (b"MSH:;~\\&:LIS:::::::ADR;A19:7\rMSA:CA:M1\rQRD:x\r", item(AckCode::Ca, "M1", None)),
            (b"MSH|^~\\&|\rMSA|AE|M1|Unknown patient\rERR|||207\r", item(AckCode::Ae, "M1", Some("Unknown patient"))),
            (
                b"MSH|^~\\&|\rMSA|AR|M1\rERR|||101^Required field missing^HL70357|E||||\r",
                item(AckCode::Ar, "M1", Some("Required field missing")),
            ),
            (
                b"MSH|^~\\&|\rMSA|CE|M1\rERR||PID^1|101|E|||diag|user words\r",
                item(AckCode::Ce, "M1", Some("user words")),
            ),
            (b"MSH|^~\\&|\rMSA|AE|M1\rERR|PID^1^5^101&Missing&HL70357\r", item(AckCode::Ae, "M1", Some("Missing"))),
        ] {
            assert_eq!(one(bytes), wanted, "{}", String::from_utf8_lossy(bytes));
        }
    }

    // A field report: an acknowledgment that could not be read was counted as sent.
    #[test]
    fn m12_what_cannot_be_read_is_no_acknowledgment() {
        assert_eq!(acknowledgment(b"OK"), Err(NotAnAck::NotHl7(NotHl7::Start)));
        assert_eq!(acknowledgment(b"MSH|^~\\&|\rPID|1"), Err(NotAnAck::NoMsa));
        assert_eq!(acknowledgment(b"MSH|^~\\&|\rMSA|OK|1"), Err(NotAnAck::Code("OK".to_owned())));
        assert_eq!(acknowledgment(b"MSH|^~\\&|\rMSA||1"), Err(NotAnAck::Code(String::new())));
        assert_eq!(acknowledgment(b"\x06"), Err(NotAnAck::NotHl7(NotHl7::Start)));
    }

    #[test]
    fn m34_a_batch_is_acknowledged_message_by_message() {
        let batch = b"BHS|^~\\&|||||||||B9|B1\rMSH|^~\\&|\rMSA|AA|M1\rMSH|^~\\&|\rMSA|AE|M2\rERR|||101^No bed\rBTS|2\r";
        let read = acknowledgment(batch).unwrap();
        assert_eq!(read.of_batches, [b"B1"]);
        let items: Vec<AckItem> = read.items.into_iter().map(|(_, item)| item).collect();
        assert_eq!(items, [item(AckCode::Aa, "M1", None), item(AckCode::Ae, "M2", Some("No bed"))]);
    }
}
