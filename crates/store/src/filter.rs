//! Which deliveries a list shows and a job works on, as a value. It must not know how a store finds them.

use postrider_core::delivery::{Delivery, Label, Origin, Status};
use postrider_core::id::{ConnectionId, DeliveryId, EventId, ProjectId, SubscriptionId};
use postrider_core::{Failure, Timestamp};
use serde::{Deserialize, Serialize};

/// All conditions must hold. The same filter works on lists and on jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliveryFilter {
    pub project_id: Option<ProjectId>,
    pub connection_id: Option<ConnectionId>,
    /// Empty = all.
    pub statuses: Vec<Status>,
    /// The word of the third seed (V08).
    pub label: Option<Label>,
    pub failure: Option<Failure>,
    pub created_from: Option<Timestamp>,
    pub created_before: Option<Timestamp>,
    pub id: Option<DeliveryId>,
    /// The whole correlation id.
    pub cid: Option<String>,
    pub event_type: Option<String>,
    pub event_id: Option<EventId>,
    /// The subscription whose selector its event matched.
    pub subscription_id: Option<SubscriptionId>,
    pub origin: Option<Origin>,
    /// In capitals.
    pub method: Option<String>,
    /// The whole path of the request, as it was handed in.
    pub path: Option<String>,
    /// A part of the last error's text; whether letters of the English alphabet are capitals does not matter.
    pub error_text: Option<String>,
    pub edited: Option<bool>,
    pub times: Vec<TimeRange>,
    pub counts: Vec<CountRange>,
}

/// A time of a delivery, besides that of its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeColumn {
    LastAttempt,
    /// Of what is PENDING only.
    NextAttempt,
    Delivered,
    /// When it arrived in the DLQ, in which it still is.
    Dead,
    Ended,
}

/// `from` and later, earlier than `before`. A delivery without this time is not meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    pub column: TimeColumn,
    pub from: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountColumn {
    Attempts,
    Rounds,
    BodyBytes,
    DlqRetries,
}

/// Both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountRange {
    pub column: CountColumn,
    pub min: Option<u64>,
    pub max: Option<u64>,
}

/// What the label asks for, as SQL that every store reads. An attempt under way has not failed yet.
pub(crate) fn label_condition(label: Label) -> String {
    let words: Vec<String> = label.statuses().iter().map(|status| format!("'{}'", status.as_str())).collect();
    let failed = "attempts - CASE WHEN status = 'PROCESSING' THEN 1 ELSE 0 END";
    let attempts = match label {
        Label::Waiting => format!(" AND {failed} <= 0"),
        Label::Retrying => format!(" AND {failed} > 0"),
        Label::Delivered | Label::NotDelivered => String::new(),
    };
    format!(" AND status IN ({}){attempts}", words.join(", "))
}

impl DeliveryFilter {
    pub fn lets_through(&self, delivery: &Delivery) -> bool {
        self.place_fits(delivery) && self.request_fits(delivery) && self.progress_fits(delivery)
    }

    fn place_fits(&self, delivery: &Delivery) -> bool {
        self.project_id.is_none_or(|id| id == delivery.project_id)
            && self.connection_id.is_none_or(|id| id == delivery.connection_id)
            && self.id.is_none_or(|id| id == delivery.id)
            && self.created_from.is_none_or(|from| delivery.created_at >= from)
            && self.created_before.is_none_or(|before| delivery.created_at < before)
    }

    fn request_fits(&self, delivery: &Delivery) -> bool {
        let event = delivery.event.as_ref();
        let event_type = event.map(|event| event.event_type.as_str());
        self.cid.as_deref().is_none_or(|cid| cid == delivery.cid.as_str())
            && self.event_type.as_deref().is_none_or(|wanted| event_type == Some(wanted))
            && self.event_id.is_none_or(|wanted| event.is_some_and(|event| event.id == wanted))
            && self.subscription_id.is_none_or(|wanted| event.is_some_and(|event| event.subscription_id == wanted))
            && self.origin.is_none_or(|origin| origin == delivery.origin)
            && self.method.as_deref().is_none_or(|method| method == delivery.head.method.as_str())
            && self.path.as_deref().is_none_or(|path| path == delivery.head.path)
            && self.edited.is_none_or(|edited| edited == delivery.original_body_id.is_some())
    }

    fn progress_fits(&self, delivery: &Delivery) -> bool {
        let progress = &delivery.progress;
        let error = progress.error.as_deref().unwrap_or_default();
        (self.statuses.is_empty() || self.statuses.contains(&progress.status))
            && self.label.is_none_or(|label| progress.label() == label)
            && self.failure.is_none_or(|failure| progress.failure == Some(failure))
            && self.error_text.as_deref().is_none_or(|part| {
                progress.error.is_some() && error.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
            })
            && self.times.iter().all(|range| range.holds(delivery))
            && self.counts.iter().all(|range| range.holds(delivery))
    }
}

impl TimeRange {
    fn holds(&self, delivery: &Delivery) -> bool {
        let progress = &delivery.progress;
        let time = match self.column {
            TimeColumn::LastAttempt => progress.last_attempt_at,
            TimeColumn::NextAttempt => (progress.status == Status::Pending).then_some(progress.due_at),
            TimeColumn::Delivered => progress.delivered_at,
            TimeColumn::Dead => progress.dead_at.filter(|_| progress.status == Status::Dlq),
            TimeColumn::Ended => progress.ended_at,
        };
        time.is_some_and(|time| {
            self.from.is_none_or(|from| time >= from) && self.before.is_none_or(|before| time < before)
        })
    }
}

impl CountRange {
    fn holds(&self, delivery: &Delivery) -> bool {
        let progress = &delivery.progress;
        let count = match self.column {
            CountColumn::Attempts => u64::from(progress.attempts),
            CountColumn::Rounds => u64::from(progress.rounds),
            CountColumn::BodyBytes => delivery.body_bytes,
            CountColumn::DlqRetries => u64::from(progress.dlq_retries),
        };
        self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max)
    }
}
