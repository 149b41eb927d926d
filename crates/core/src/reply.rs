//! What came back from the remote system: an answer, or the way in which none came.
//!
//! This module must not know what a reply means for a delivery; that is the verdict's business.

use bytes::Bytes;

use crate::message::HeaderList;

/// The end of one attempt, as the sender saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status line came; it decides the outcome (R16).
    Answered(Answer),
    /// No status line came.
    Unanswered(NoAnswer),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderList,
    /// At most `response_bytes_max` bytes (D07).
    pub body: Bytes,
    /// The body was cut: over the limit, too slow or broken off (D24).
    pub incomplete: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    pub kind: NoAnswerKind,
    /// One sentence for people, without secrets or bodies.
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswerKind {
    /// Nothing came within the connection's timeout.
    Timeout,
    /// Refused, reset, closed before an answer, DNS or TLS failure, or bytes that are no valid answer.
    Unreachable,
    /// The egress guard does not let requests go to this address; nothing was sent.
    NotAllowed,
    /// The request cannot be built for this connection, such as a missing path parameter; nothing was sent.
    Unsendable,
    /// The credentials that the connection needs cannot be read; nothing was sent.
    SecretUnreadable,
    /// Something failed on our side.
    Internal,
}

impl Reply {
    pub fn unanswered(kind: NoAnswerKind, detail: impl Into<String>) -> Self {
        Reply::Unanswered(NoAnswer { kind, detail: detail.into() })
    }

    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Reply::Answered(answer) => Some(answer),
            Reply::Unanswered(_) => None,
        }
    }
}
