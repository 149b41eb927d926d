//! What a sender has to know of its message: who it is, and what it asks of the receiver.
//!
//! It must not know what is done with it.

use super::{NotHl7, Segment, segments};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline<'a> {
    /// MSH-10 of every message, in their order; one unless it is a batch.
    pub control_ids: Vec<&'a [u8]>,
    /// BHS-11 and FHS-11, where they are there and not empty.
    pub batch_ids: Vec<&'a [u8]>,
    /// Several messages, or one in an envelope of BHS or FHS.
    pub is_batch: bool,
    /// MSH-15 of the first message: when the receiving system is to acknowledge that it has the message (enhanced mode).
    pub commit_ack: AckWish,
    /// MSH-16 of the first message: when the application is to acknowledge it.
    pub application_ack: AckWish,
}

/// HL7 table 0155.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckWish {
    /// Nothing is said: original mode.
    Unsaid,
    Always,
    Never,
    OnError,
    OnSuccess,
}

impl AckWish {
    pub(super) fn read(field: &[u8]) -> Self {
        match field {
            b"" | b"\"\"" => AckWish::Unsaid,
            b"NE" => AckWish::Never,
            b"ER" => AckWish::OnError,
            b"SU" => AckWish::OnSuccess,
            _ => AckWish::Always,
        }
    }

    /// Whether one of this outcome is wanted.
    pub(super) fn wants(self, is_success: bool) -> bool {
        match self {
            AckWish::Unsaid | AckWish::Never => false,
            AckWish::Always => true,
            AckWish::OnError => !is_success,
            AckWish::OnSuccess => is_success,
        }
    }
}

/// Reads the whole message once.
///
/// # Errors
/// `NotHl7`.
pub fn outline(message: &[u8]) -> Result<Outline<'_>, NotHl7> {
    let mut outline = Outline {
        control_ids: Vec::new(),
        batch_ids: Vec::new(),
        is_batch: false,
        commit_ack: AckWish::Unsaid,
        application_ack: AckWish::Unsaid,
    };
    for segment in segments(message)? {
        outline.take(&segment);
    }
    outline.is_batch |= outline.control_ids.len() > 1;
    Ok(outline)
}

impl<'a> Outline<'a> {
    fn take(&mut self, segment: &Segment<'a>) {
        if segment.is("MSH") {
            if self.control_ids.is_empty() {
                self.commit_ack = AckWish::read(segment.field(15));
                self.application_ack = AckWish::read(segment.field(16));
            }
            self.control_ids.push(segment.field(10));
        } else if segment.is("BHS") || segment.is("FHS") {
            self.is_batch = true;
            self.batch_ids.extend(Some(segment.field(11)).filter(|id| !id.is_empty()));
        }
    }

    /// Whether every message can be told from others by its acknowledgment: each has an MSH-10, or the batch has a number of its own.
    pub fn can_be_matched(&self) -> bool {
        let all_named = !self.control_ids.is_empty() && self.control_ids.iter().all(|id| !id.is_empty());
        all_named || !self.batch_ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m09_what_a_message_asks_for_is_read_from_its_header() {
        for (tail, commit, application) in [
            ("", AckWish::Unsaid, AckWish::Unsaid),
            ("|||AL|NE", AckWish::Always, AckWish::Never),
            ("|||ER|AL", AckWish::OnError, AckWish::Always),
            ("|||NE|NE|x", AckWish::Never, AckWish::Never),
        ] {
            let message = format!("MSH|^~\\&|A|B|C|D|20260312||ADT^A01|M1|P|2.5{tail}\rPID|1\r");
            let read = outline(message.as_bytes()).unwrap();
            assert_eq!((read.commit_ack, read.application_ack), (commit, application), "{tail}");
            assert_eq!((read.control_ids, read.is_batch), (vec![&b"M1"[..]], false));
        }
    }

    #[test]
    fn m34_a_batch_has_the_numbers_of_its_messages_and_its_own() {
        let batch = b"FHS|^~\\&|A|B|C|D|1|||F|F1\rBHS|^~\\&|A|B|C|D|1||||B1\rMSH|^~\\&|||||||ADT|M1\rPID|1\rMSH|^~\\&|||||||ADT|M2\rBTS|2\rFTS|1";
        let read = outline(batch).unwrap();
        assert_eq!((read.control_ids, read.batch_ids), (vec![&b"M1"[..], b"M2"], vec![&b"F1"[..], b"B1"]));
        assert!(read.is_batch);
        let bare = outline(b"MSH|^~\\&|||||||ADT|M1\rMSH|^~\\&|||||||ADT|M2").unwrap();
        assert!(bare.is_batch && bare.can_be_matched());
        let nameless = outline(b"MSH|^~\\&|||||||ADT|\rPID|1").unwrap();
        assert!(!nameless.can_be_matched());
    }
}
