//! What a reply means: delivered, or failed and whether another attempt could help.
//!
//! This module must not know of retries, queues or clocks; `decide` draws the consequences.

use crate::{Answer, Failure, NoAnswerKind, Reply};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    Failed(Failed),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub failure: Failure,
    /// One sentence for people.
    pub error: String,
    pub again: Again,
    /// The status, when one came.
    pub status: Option<u16>,
}

/// Whether sending the same again could end differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Worthwhile,
    /// The message itself is at fault (Z15).
    Pointless,
    /// It may not be sent at all (R14).
    Refused,
}

/// The verdict over HTTP: a status line decides, and only 2xx is a delivery (Z10, R16, V01).
pub fn over_http(reply: &Reply) -> Verdict {
    match reply {
        Reply::Answered(answer) if (200..300).contains(&answer.status) => Verdict::Delivered,
        Reply::Answered(answer) => Verdict::Failed(Failed {
            failure: Failure::Status,
            error: status_error(answer),
            again: Again::Worthwhile,
            status: Some(answer.status),
        }),
        Reply::Unanswered(none) => {
            let (failure, again) = match none.kind {
                NoAnswerKind::Timeout => (Failure::Timeout, Again::Worthwhile),
                NoAnswerKind::Unreachable => (Failure::Unreachable, Again::Worthwhile),
                NoAnswerKind::NotAllowed => (Failure::NotAllowed, Again::Refused),
                // Somebody may bring the key back; until then nothing goes out without credentials.
                NoAnswerKind::SecretUnreadable => (Failure::SecretUnreadable, Again::Worthwhile),
                // The connection may be mended before the next attempt, so one is still worth making.
                NoAnswerKind::Unsendable | NoAnswerKind::Internal => (Failure::Error, Again::Worthwhile),
            };
            Verdict::Failed(Failed { failure, error: none.detail.clone(), again, status: None })
        }
    }
}

fn status_error(answer: &Answer) -> String {
    match answer.status {
        300..400 => format!("HTTP {}: redirects are not followed", answer.status),
        status => format!("HTTP {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, incomplete: bool) -> Reply {
        Reply::Answered(Answer { status, incomplete, ..Answer::default() })
    }

    // proves: V01, R16
    #[test]
    fn z10_only_2xx_is_a_delivery_and_the_status_line_decides() {
        for status in 100..600 {
            for incomplete in [false, true] {
                let delivered = over_http(&answered(status, incomplete)) == Verdict::Delivered;
                assert_eq!(delivered, (200..300).contains(&status), "{status}");
            }
        }
    }

    #[test]
    fn v08_each_way_of_getting_no_answer_has_its_code() {
        for (kind, failure, again) in [
            (NoAnswerKind::Timeout, Failure::Timeout, Again::Worthwhile),
            (NoAnswerKind::Unreachable, Failure::Unreachable, Again::Worthwhile),
            (NoAnswerKind::NotAllowed, Failure::NotAllowed, Again::Refused),
            (NoAnswerKind::Unsendable, Failure::Error, Again::Worthwhile),
            (NoAnswerKind::Internal, Failure::Error, Again::Worthwhile),
            (NoAnswerKind::SecretUnreadable, Failure::SecretUnreadable, Again::Worthwhile),
        ] {
            let Verdict::Failed(failed) = over_http(&Reply::unanswered(kind, "why")) else { panic!("{kind:?}") };
            assert_eq!((failed.failure, failed.again, failed.error.as_str()), (failure, again, "why"));
        }
    }
}
