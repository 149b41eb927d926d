//! What came back from the remote system: an answer, or the way in which none came.
//!
//! This module must not know what a reply means for a delivery; that is the verdict's business.

use bytes::Bytes;

use crate::ack::Ack;
use crate::fhir::FhirAnswer;
use crate::message::HeaderList;
use crate::soap::{SoapAnswer, SoapFault};

/// The end of one attempt, as the sender saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer came; over HTTP its status line decides the outcome (R16), over MLLP its acknowledgment code.
    Answered(Answer),
    /// None came.
    Unanswered(NoAnswer),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status over HTTP; other protocols have none.
    pub status: Option<u16>,
    /// Empty where the protocol has none.
    pub headers: HeaderList,
    /// What the body says about the outcome, in protocols that say it there.
    pub said: Option<Said>,
    /// At most `response_bytes_max` bytes (D07).
    pub body: Bytes,
    /// The body was cut: over the limit, too slow or broken off (D24).
    pub incomplete: bool,
}

/// What an answer's body says about the outcome, one variant for each protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Ack(Ack),
    Soap(Box<SoapAnswer>),
    Fhir(Box<FhirAnswer>),
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
    /// The message was sent and no acknowledgment of it came: none at all, none that can be read, or only others' (Z01).
    NoAck,
    /// The egress guard does not let requests go to this address; nothing was sent.
    NotAllowed,
    /// The request cannot be built for this connection, such as a missing path parameter; nothing was sent.
    Unsendable,
    /// The credentials that the connection needs cannot be read; nothing was sent.
    SecretUnreadable,
    /// What should be sent could not be made of the body; nothing was sent (R13).
    TransformFailed,
    /// Something failed on our side.
    Internal,
}

impl Reply {
    pub fn unanswered(kind: NoAnswerKind, detail: impl Into<String>) -> Self {
        Reply::Unanswered(NoAnswer { kind, detail: detail.into() })
    }

    /// An answer over HTTP of which only the status is known.
    pub fn of_status(status: u16) -> Self {
        Reply::Answered(Answer { status: Some(status), ..Answer::default() })
    }

    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Reply::Answered(answer) => Some(answer),
            Reply::Unanswered(_) => None,
        }
    }
}

impl Answer {
    /// The acknowledgment, over MLLP.
    pub fn ack(&self) -> Option<&Ack> {
        match self.said.as_ref()? {
            Said::Ack(ack) => Some(ack),
            Said::Soap(_) | Said::Fhir(_) => None,
        }
    }

    /// What the envelope says, over SOAP.
    pub fn soap(&self) -> Option<&SoapAnswer> {
        match self.said.as_ref()? {
            Said::Soap(answer) => Some(answer),
            Said::Ack(_) | Said::Fhir(_) => None,
        }
    }

    /// What the server says about a resource, over FHIR.
    pub fn fhir(&self) -> Option<&FhirAnswer> {
        match self.said.as_ref()? {
            Said::Fhir(answer) => Some(answer),
            Said::Ack(_) | Said::Soap(_) => None,
        }
    }

    pub fn fault(&self) -> Option<&SoapFault> {
        self.soap()?.fault.as_ref()
    }

    /// What is wrong with an answer that may still be a delivery (D24).
    pub fn remark(&self) -> Option<&str> {
        match self.said.as_ref()? {
            Said::Ack(_) => None,
            Said::Soap(answer) => answer.remark.as_deref(),
            Said::Fhir(answer) => answer.remark.as_deref(),
        }
    }
}
