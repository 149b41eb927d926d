//! How the receiving side answers: the code by what became of the message and by what its sender asks for (HL7 2.5, sections 2.9.2 and 2.9.3).
//!
//! It must not know what is done with a message.

use postrider_core::ack::AckCode;

use super::build::{AckHead, build_ack};
use super::outline::AckWish;
use super::{NotHl7, segments};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition<'a> {
    /// It is on disk.
    Taken,
    /// It is at fault itself: sent again, it would be no better.
    Unfit(&'a str),
    /// It could not be taken now: it is to be sent again.
    NotNow(&'a str),
}

/// # Errors
/// Why it is no message that could be acknowledged as such.
pub fn check(message: &[u8]) -> Result<(), NotHl7> {
    let mut all = segments(message)?;
    let has_header = all.any(|segment| segment.is("MSH"));
    if has_header { Ok(()) } else { Err(NotHl7::Start) }
}

/// Whether every message in it says its control id (MSH-10), which an acknowledgment has to quote.
pub fn has_control_ids(message: &[u8]) -> bool {
    let headers = segments(message).into_iter().flatten().filter(|segment| segment.is("MSH"));
    headers.map(|header| header.field(10)).all(|id| !id.trim_ascii().is_empty())
}

/// The acknowledgment; `None`: its sender wants none. In original mode `AA`, `AE`, `AR`; where MSH-15 is there `CA`, `CE`, `CR` as it says, and where it says never, what MSH-16 asks
/// for, since what is stored here is as far as the sender's application is to know.
pub fn acknowledge(message: &[u8], disposition: Disposition<'_>, control_id: &str, time: &str) -> Option<Vec<u8>> {
    let header = segments(message).ok().and_then(|mut all| all.find(|segment| segment.is("MSH")));
    let [commit, application] =
        [15, 16].map(|field| header.map_or(AckWish::Unsaid, |header| AckWish::read(header.field(field))));
    let is_success = disposition == Disposition::Taken;
    let is_commit = match (commit, application) {
        (AckWish::Unsaid, _) => false,
        (AckWish::Never, application) => {
            if !application.wants(is_success) {
                return None;
            }
            false
        }
        (commit, _) => {
            if !commit.wants(is_success) {
                return None;
            }
            true
        }
    };
    let (code, text) = match (disposition, is_commit) {
        (Disposition::Taken, false) => (AckCode::Aa, None),
        (Disposition::Taken, true) => (AckCode::Ca, None),
        (Disposition::Unfit(why), false) => (AckCode::Ae, Some(why)),
        (Disposition::Unfit(why), true) => (AckCode::Ce, Some(why)),
        (Disposition::NotNow(why), false) => (AckCode::Ar, Some(why)),
        (Disposition::NotNow(why), true) => (AckCode::Cr, Some(why)),
    };
    Some(build_ack(message, code, AckHead { control_id, time, text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(wishes: &str, disposition: Disposition<'_>) -> Option<String> {
        let message = format!("MSH|^~\\&|A|B|C|D|1||ADT^A01|M1|P|2.5|||{wishes}\rPID|1\r");
        let ack = acknowledge(message.as_bytes(), disposition, "P1", "2026")?;
        let ack = String::from_utf8(ack).unwrap();
        let msa = ack.split('\r').find(|segment| segment.starts_with("MSA")).unwrap();
        assert_eq!(msa.split('|').nth(2), Some("M1"));
        msa.split('|').nth(1).map(str::to_owned)
    }

    #[test]
    fn the_code_is_of_the_family_that_is_asked_for() {
        use Disposition::{NotNow, Taken, Unfit};
        for (wishes, taken, unfit, not_now) in [
            ("|", Some("AA"), Some("AE"), Some("AR")),
            ("AL|NE", Some("CA"), Some("CE"), Some("CR")),
            ("AL|AL", Some("CA"), Some("CE"), Some("CR")),
            ("ER|", None, Some("CE"), Some("CR")),
            ("SU|", Some("CA"), None, None),
            ("NE|NE", None, None, None),
            ("NE|AL", Some("AA"), Some("AE"), Some("AR")),
            ("NE|ER", None, Some("AE"), Some("AR")),
            ("|AL", Some("AA"), Some("AE"), Some("AR")),
        ] {
            let got = [Taken, Unfit("why"), NotNow("why")].map(|what| code(wishes, what));
            assert_eq!(got, [taken, unfit, not_now].map(|wanted| wanted.map(str::to_owned)), "{wishes}");
        }
    }

    #[test]
    fn what_has_no_header_is_no_message() {
        assert!(check(b"MSH|^~\\&|A\r").is_ok() && check(b"BHS|^~\\&|A\rMSH|^~\\&|A\r").is_ok());
        for bytes in [&b""[..], b"hello", b"BHS|^~\\&|A\r", b"\xff\xfe"] {
            assert!(check(bytes).is_err());
        }
        assert!(has_control_ids(b"MSH|^~\\&|A|B|C|D|1||ADT^A01|M1|P\r"));
        for bytes in
            [&b"MSH|^~\\&|A|B|C|D|1||ADT^A01||P\r"[..], b"MSH|^~\\&|A\r", b"MSH|^~\\&|A|B|C|D|1||ADT^A01| |P\r"]
        {
            assert!(!has_control_ids(bytes));
        }
        let batch = b"BHS|^~\\&|\rMSH|^~\\&|||||||X|M1\rMSH|^~\\&|||||||X|\r";
        assert!(!has_control_ids(batch));
        let ack = acknowledge(b"hello", Disposition::Unfit("no HL7"), "P1", "2026").unwrap();
        assert!(String::from_utf8(ack).unwrap().contains("MSA|AE||no HL7"));
    }
}
