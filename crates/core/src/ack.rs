//! An acknowledgment of HL7 version 2: what the receiver says about one message, or about a batch of them.
//!
//! It must not know how it looks on the wire, nor what follows from it.

use serde::{Deserialize, Serialize};

/// MSA-1 (HL7 table 0008): the application's own codes, and those of enhanced mode for having taken the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AckCode {
    Aa,
    Ae,
    Ar,
    Ca,
    Ce,
    Cr,
}

/// What a code means, the family left aside (Z01).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckMeaning {
    Accepted,
    /// The message itself is at fault.
    Error,
    /// Not now: the receiver asks for another attempt.
    Reject,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Of a batch, the worst of its messages' codes; see [`Ack::of_batch`].
    pub code: AckCode,
    /// What the receiver says about it, shortened, without control characters.
    pub text: Option<String>,
    /// One for each acknowledged message of a batch; empty for a single message.
    pub items: Vec<AckItem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AckItem {
    pub code: AckCode,
    /// MSA-2: which message of the batch.
    pub control_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl AckCode {
    pub const ALL: [AckCode; 6] = [AckCode::Aa, AckCode::Ae, AckCode::Ar, AckCode::Ca, AckCode::Ce, AckCode::Cr];

    pub const fn as_str(self) -> &'static str {
        match self {
            AckCode::Aa => "AA",
            AckCode::Ae => "AE",
            AckCode::Ar => "AR",
            AckCode::Ca => "CA",
            AckCode::Ce => "CE",
            AckCode::Cr => "CR",
        }
    }

    /// The code as it stands on the wire; some receivers write it in small letters.
    pub fn parse(text: &[u8]) -> Option<Self> {
        AckCode::ALL.into_iter().find(|code| code.as_str().as_bytes().eq_ignore_ascii_case(text))
    }

    pub const fn meaning(self) -> AckMeaning {
        match self {
            AckCode::Aa | AckCode::Ca => AckMeaning::Accepted,
            AckCode::Ae | AckCode::Ce => AckMeaning::Error,
            AckCode::Ar | AckCode::Cr => AckMeaning::Reject,
        }
    }

    /// Of the receiving system and not of its application (enhanced mode).
    pub const fn is_commit(self) -> bool {
        matches!(self, AckCode::Ca | AckCode::Ce | AckCode::Cr)
    }
}

impl std::fmt::Display for AckCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Ack {
    pub fn single(code: AckCode, text: Option<String>) -> Self {
        Ack { code, text, items: Vec::new() }
    }

    /// The acknowledgment of a batch. Only where every message was rejected could sending all of them again help; where some were accepted and
    /// others not, the batch has an error, and nobody sends the accepted ones a second time unasked. `None` for no items.
    pub fn of_batch(items: Vec<AckItem>) -> Option<Self> {
        let bad: Vec<&AckItem> = items.iter().filter(|item| item.code.meaning() != AckMeaning::Accepted).collect();
        let Some(worst) = bad.iter().find(|item| item.code.meaning() == AckMeaning::Error).or(bad.first()) else {
            let code = items.first()?.code;
            return Some(Ack { code, text: None, items });
        };
        let all_rejected = bad.len() == items.len() && worst.code.meaning() == AckMeaning::Reject;
        let code = match (all_rejected, worst.code.is_commit()) {
            (true, _) => worst.code,
            (false, false) => AckCode::Ae,
            (false, true) => AckCode::Ce,
        };
        let of = format!("{} of {} messages of the batch were not accepted", bad.len(), items.len());
        let text = match &worst.text {
            Some(text) => format!("{of}; {}: {text}", worst.control_id),
            None => format!("{of}; {}", worst.control_id),
        };
        Some(Ack { code, text: Some(text), items })
    }

    /// `AE Unknown patient`.
    pub fn shown(&self) -> String {
        match &self.text {
            Some(text) => format!("{} {text}", self.code),
            None => self.code.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d25_both_families_of_codes_mean_the_same_three_things() {
        for (text, meaning) in [
            ("AA", AckMeaning::Accepted),
            ("ca", AckMeaning::Accepted),
            ("AE", AckMeaning::Error),
            ("CE", AckMeaning::Error),
            ("AR", AckMeaning::Reject),
            ("CR", AckMeaning::Reject),
        ] {
            let code = AckCode::parse(text.as_bytes()).unwrap();
            assert_eq!((code.meaning(), code.is_commit()), (meaning, text.to_uppercase().starts_with('C')));
        }
        for bad in ["", "A", "AAA", "XX", "AA ", "OK"] {
            assert_eq!(AckCode::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    fn batch(codes: &[&str]) -> Ack {
        let item = |(at, code): (usize, &&str)| AckItem {
            code: AckCode::parse(code.as_bytes()).unwrap(),
            control_id: format!("M{at}"),
            text: None,
        };
        Ack::of_batch(codes.iter().enumerate().map(item).collect()).unwrap()
    }

    // A field report of others: a batch with one refused message was taken for delivered.
    #[test]
    fn a_batch_is_accepted_only_whole_and_asks_for_another_attempt_only_when_nothing_of_it_was_accepted() {
        assert_eq!(batch(&["AA", "AA"]).code, AckCode::Aa);
        assert_eq!(batch(&["AR", "AR"]).code, AckCode::Ar);
        assert_eq!(batch(&["AA", "AR"]).code, AckCode::Ae);
        assert_eq!(batch(&["AR", "AE"]).code, AckCode::Ae);
        assert_eq!(batch(&["CA", "CR"]).code, AckCode::Ce);
        assert_eq!(batch(&["AA", "AE", "AR"]).text.unwrap(), "2 of 3 messages of the batch were not accepted; M1");
        assert_eq!(Ack::of_batch(Vec::new()), None);
    }
}
