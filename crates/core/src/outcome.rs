//! What a caller is told about its request: the result object (Z30).
//!
//! This module must not know how the caller is reached.

use crate::delivery::{Progress, Status};
use crate::id::{Cid, DeliveryId};
use crate::{Answer, Failure, Reply};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub state: OutcomeState,
    /// Names the delivery in every state but a storing failure.
    pub msg_id: Option<DeliveryId>,
    pub cid: Cid,
    /// Why it was not delivered, when an attempt or storing failed.
    pub error: Option<String>,
    /// The code of that error, when an attempt failed.
    pub failure: Option<Failure>,
    /// What the remote system answered, a refusal included.
    pub response: Option<Answer>,
}

/// The three flags of the result object, of which at most one is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeState {
    IsOk,
    IsInQueue,
    IsInDlq,
    /// All flags false: returned to the caller, or not stored.
    NotDelivered,
}

impl OutcomeState {
    pub const ALL: [OutcomeState; 4] =
        [OutcomeState::IsOk, OutcomeState::IsInQueue, OutcomeState::IsInDlq, OutcomeState::NotDelivered];

    pub const fn as_str(self) -> &'static str {
        match self {
            OutcomeState::IsOk => "is_ok",
            OutcomeState::IsInQueue => "is_in_queue",
            OutcomeState::IsInDlq => "is_in_dlq",
            OutcomeState::NotDelivered => "not_delivered",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        OutcomeState::ALL.into_iter().find(|known| known.as_str() == text)
    }
}

impl Outcome {
    /// Stored, and no attempt of its own yet: published, or behind others.
    pub fn queued(msg_id: DeliveryId, cid: Cid) -> Self {
        Outcome {
            state: OutcomeState::IsInQueue,
            msg_id: Some(msg_id),
            cid,
            error: None,
            failure: None,
            response: None,
        }
    }

    /// Storing failed; nothing is anywhere.
    pub fn not_stored(cid: Cid, error: String) -> Self {
        Outcome {
            state: OutcomeState::NotDelivered,
            msg_id: None,
            cid,
            error: Some(error),
            failure: None,
            response: None,
        }
    }

    /// Its connection was deleted meanwhile: what waited was discarded with it (Z18), and nothing will come of it any more.
    #[must_use]
    pub fn without_queue(self) -> Self {
        match self.state {
            OutcomeState::IsOk | OutcomeState::NotDelivered => self,
            OutcomeState::IsInQueue | OutcomeState::IsInDlq => {
                let error = match self.error {
                    Some(error) => format!("discarded with its connection; before that: {error}"),
                    None => "discarded with its connection".to_owned(),
                };
                Outcome { state: OutcomeState::NotDelivered, error: Some(error), ..self }
            }
        }
    }

    /// After the attempt that the caller waited for, as it was settled.
    pub fn after_attempt(msg_id: DeliveryId, cid: Cid, progress: &Progress, reply: Reply) -> Self {
        let state = match progress.status {
            Status::Success => OutcomeState::IsOk,
            Status::Pending | Status::Processing => OutcomeState::IsInQueue,
            Status::Dlq => OutcomeState::IsInDlq,
            Status::Failed | Status::Discarded | Status::Forwarded | Status::Expired => OutcomeState::NotDelivered,
        };
        let response = match reply {
            Reply::Answered(answer) => Some(answer),
            Reply::Unanswered(_) => None,
        };
        // D24: delivered, and still something was wrong with the answer.
        let remark = || response.as_ref().filter(|_| state == OutcomeState::IsOk)?.remark().map(str::to_owned);
        let error = progress.error.clone().or_else(remark);
        Outcome { state, msg_id: Some(msg_id), cid, error, failure: progress.failure, response }
    }
}
