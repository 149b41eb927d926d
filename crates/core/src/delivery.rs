//! A delivery: one request to one connection, with its attempts. Its state machine:
//!
//! ```text
//!                  accepted
//!                     │
//!                     ▼            attempt begins
//!    ┌───────────► PENDING ◄───────────────────────► PROCESSING ── 2xx ──► SUCCESS
//!    │                │ ▲          it failed, and           │                 │
//!    │                │ │          another one is due       │                 │ resend
//!    │                │ └──── interrupted ─────────────────┘│                 │
//!    │                │                                     │                 │
//!    │   expired, too │ old, set aside     round failed,    │                 │
//!    │                ▼                    ladder ran out   │                 │
//!    ├── retry ───── DLQ ◄──────────────────────────────────┤                 │
//!    │                │                                     │                 │
//!    │                ├── discard ──► DISCARDED ◄── discard (from PENDING)    │
//!    │                └── forward ──► FORWARDED             │                 │
//!    │                                                      │ nobody can make another attempt help,
//!    │       EXPIRED ◄── expired, with the DLQ off          ▼ or the DLQ is off and the caller was told
//!    └── retry, resend ─────────────────────────────────── FAILED             │
//!    └── resend ◄─────────────────────────────────────────────────────────────┘
//! ```
//!
//! In a FIFO queue PROCESSING is held in the owner's memory only (D04); in an unordered queue it is committed before the send.
//! SUCCESS, FAILED, DISCARDED, FORWARDED and EXPIRED are terminal: the delivery is in the log. PENDING, PROCESSING and DLQ are hot (D01).
//!
//! This module must not know how a delivery got into its state: `decide` makes every transition.

use serde::{Deserialize, Serialize};

use crate::envelope::Payload;
use crate::health::Counting;
use crate::id::{BodyId, Cid, ConnectionId, DeliveryId, EventId, ProjectId, SubscriptionId};
use crate::message::RequestHead;
use crate::ordering::Line;
use crate::schedule::LadderTerms;
use crate::topic::TopicName;
use crate::{Failure, Timestamp, Wait};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Pending,
    Processing,
    Success,
    Failed,
    Dlq,
    Discarded,
    Forwarded,
    Expired,
}

impl Status {
    pub const ALL: [Status; 8] = [
        Status::Pending,
        Status::Processing,
        Status::Success,
        Status::Failed,
        Status::Dlq,
        Status::Discarded,
        Status::Forwarded,
        Status::Expired,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Processing => "PROCESSING",
            Status::Success => "SUCCESS",
            Status::Failed => "FAILED",
            Status::Dlq => "DLQ",
            Status::Discarded => "DISCARDED",
            Status::Forwarded => "FORWARDED",
            Status::Expired => "EXPIRED",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Status::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// Terminal deliveries are in the log; only a person's retry or resend brings one back.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Status::Success | Status::Failed | Status::Discarded | Status::Forwarded | Status::Expired)
    }

    /// In the queue: waiting or in flight.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Status::Pending | Status::Processing)
    }
}

/// The words of the third seed (V08); every end that is not a success is "Not delivered" (D30).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    Waiting,
    Retrying,
    Delivered,
    NotDelivered,
}

impl Label {
    pub const ALL: [Label; 4] = [Label::Waiting, Label::Retrying, Label::Delivered, Label::NotDelivered];

    /// Whether capitals are written as here does not matter.
    pub fn parse(text: &str) -> Option<Self> {
        Label::ALL.into_iter().find(|label| label.as_str().eq_ignore_ascii_case(text))
    }

    /// What carries it; whether something that waits has been attempted tells the first two apart.
    pub const fn statuses(self) -> &'static [Status] {
        match self {
            Label::Waiting | Label::Retrying => &[Status::Pending, Status::Processing],
            Label::Delivered => &[Status::Success],
            Label::NotDelivered => {
                &[Status::Failed, Status::Dlq, Status::Discarded, Status::Forwarded, Status::Expired]
            }
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Label::Waiting => "Waiting",
            Label::Retrying => "Retrying",
            Label::Delivered => "Delivered",
            Label::NotDelivered => "Not delivered",
        }
    }
}

/// How the request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A caller asked for the attempt and for its outcome.
    Call,
    /// Stored without a call first (Z31).
    Publish,
    Event,
    Channel,
    /// It carries a webhook that came in, to where those of its source are forwarded (R12).
    Incoming,
}

impl Origin {
    pub const ALL: [Origin; 5] = [Origin::Call, Origin::Publish, Origin::Event, Origin::Channel, Origin::Incoming];

    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Call => "call",
            Origin::Publish => "publish",
            Origin::Event => "event",
            Origin::Channel => "channel",
            Origin::Incoming => "incoming",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Origin::ALL.into_iter().find(|origin| origin.as_str() == text)
    }
}

/// A place in a queue; lower goes first. Commit order is position order (D02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub i64);

/// What stays the same over a delivery's whole life, and where it stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub project_id: ProjectId,
    /// Names the queue too.
    pub connection_id: ConnectionId,
    pub cid: Cid,
    pub origin: Origin,
    pub created_at: Timestamp,
    pub head: RequestHead,
    pub body_id: BodyId,
    pub body_bytes: u64,
    /// The body as it was accepted, when an operator has edited it since (Z23).
    pub original_body_id: Option<BodyId>,
    pub event: Option<EventRef>,
    /// A ladder is copied at creation (D21); rounds read their policy live.
    pub ladder: Option<LadderTerms>,
    /// `None` once it has left the queue.
    pub position: Option<Position>,
    /// Rises with every change; operators' changes compare it (D06).
    pub version: u32,
    pub progress: Progress,
}

impl Delivery {
    /// It came to its connection by a message on this topic. The DLQ's action does not push it to the topic's subscriptions once more: what
    /// fails there would go round for ever.
    pub fn came_from(&self, topic: &TopicName) -> bool {
        self.event.as_ref().is_some_and(|event| event.event_type == topic.as_str())
    }
}

/// The event that a delivery carries, and how (D40). Kept whole, so that every attempt and resend sends the same bytes (V09).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRef {
    pub id: EventId,
    pub event_type: String,
    pub happened_at: Timestamp,
    /// Whose selector it matched; the subscription may be gone since.
    pub subscription_id: SubscriptionId,
    pub payload: Payload,
    /// The line of its queue in which it goes strictly behind those before it (R15); `None`: nothing holds it back.
    pub line: Option<Line>,
}

/// The part of a delivery that decisions change, always as a whole (law 2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub status: Status,
    /// Attempts ever begun; the number of the last one.
    pub attempts: u32,
    /// Rounds that ended without success.
    pub rounds: u32,
    /// Attempts begun in the current round, or rungs of the ladder spent.
    pub round_attempts: u32,
    /// The current round's waits so far, those of the total cap (Z03).
    pub round_waited: Wait,
    /// A ladder's attempts in all; a retry by hand raises it (R11).
    pub allowed_attempts: Option<u32>,
    /// Attempts cut off in a row (D04).
    pub interruptions: u32,
    /// Not attempted before this time.
    pub due_at: Timestamp,
    /// Expiry and age cap are measured from here; a retry by hand moves it (D26).
    pub age_from: Timestamp,
    pub last_attempt_at: Option<Timestamp>,
    pub failure: Option<Failure>,
    /// One sentence: why the last attempt failed or the delivery ended.
    pub error: Option<String>,
    /// When it arrived in the DLQ.
    pub dead_at: Option<Timestamp>,
    /// Retries by the DLQ's action; those by hand don't count (Z21).
    pub dlq_retries: u32,
    /// Why the DLQ's action could not be taken, such as a topic that does not exist.
    pub dlq_note: Option<String>,
    /// The first success; kept when it is sent again (D27).
    pub delivered_at: Option<Timestamp>,
    /// When it became terminal.
    pub ended_at: Option<Timestamp>,
    /// Whether its failures count towards switching its endpoint off.
    pub counting: Counting,
}

/// Interruptions in a row that count as a failed round (D04).
pub const INTERRUPTIONS_PER_ROUND: u32 = 3;

impl Progress {
    /// A request just accepted, due at once.
    pub fn accepted(now: Timestamp) -> Self {
        Progress {
            status: Status::Pending,
            attempts: 0,
            rounds: 0,
            round_attempts: 0,
            round_waited: Wait::ZERO,
            allowed_attempts: None,
            interruptions: 0,
            due_at: now,
            age_from: now,
            last_attempt_at: None,
            failure: None,
            error: None,
            dead_at: None,
            dlq_retries: 0,
            dlq_note: None,
            delivered_at: None,
            ended_at: None,
            counting: Counting::NotCounted,
        }
    }

    /// An attempt begins: it takes a number and spends a rung before anything is built or sent (R16).
    #[must_use]
    pub fn begun(mut self, now: Timestamp) -> Self {
        self.status = Status::Processing;
        self.attempts = self.attempts.saturating_add(1);
        self.round_attempts = self.round_attempts.saturating_add(1);
        self.last_attempt_at = Some(now);
        self
    }

    pub fn label(&self) -> Label {
        match self.status {
            Status::Pending | Status::Processing if self.attempts == 0 => Label::Waiting,
            Status::Processing if self.attempts == 1 => Label::Waiting,
            Status::Pending | Status::Processing => Label::Retrying,
            Status::Success => Label::Delivered,
            Status::Failed | Status::Dlq | Status::Discarded | Status::Forwarded | Status::Expired => {
                Label::NotDelivered
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_and_origin_reads_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for origin in Origin::ALL {
            assert_eq!(Origin::parse(origin.as_str()), Some(origin));
        }
    }

    #[test]
    fn v08_labels_follow_the_status() {
        let now = Timestamp::from_millis(0);
        let fresh = Progress::accepted(now);
        assert_eq!(fresh.label().as_str(), "Waiting");
        let begun = fresh.clone().begun(now);
        assert_eq!(begun.label().as_str(), "Waiting");
        let again = Progress { status: Status::Pending, ..begun };
        assert_eq!(again.label().as_str(), "Retrying");
        for status in Status::ALL.into_iter().filter(|s| s.is_terminal() || *s == Status::Dlq) {
            let wanted = if status == Status::Success { "Delivered" } else { "Not delivered" };
            assert_eq!(Progress { status, ..fresh.clone() }.label().as_str(), wanted);
        }
        for status in Status::ALL {
            for attempts in 0..3 {
                let progress = Progress { status, attempts, ..fresh.clone() };
                let carries: Vec<Label> =
                    Label::ALL.into_iter().filter(|label| label.statuses().contains(&status)).collect();
                assert!(carries.contains(&progress.label()), "{progress:?}");
            }
        }
        for label in Label::ALL {
            assert_eq!(Label::parse(&label.as_str().to_lowercase()), Some(label));
        }
        assert_eq!(Label::parse("Lost"), None);
    }
}
