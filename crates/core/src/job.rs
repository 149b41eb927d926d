//! A job: one act of a person over many deliveries, which goes on by itself, can be held and called off, and counts what it did (Z23, P08).
//!
//! Pure like all of the core. It must not know how deliveries are found nor how a step is written.

use serde::{Deserialize, Serialize};

use crate::decide::{ByHand, Refused};
use crate::delivery::Status;
use crate::topic::TopicName;

/// What is done to each delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum JobAct {
    Retry,
    /// By filter and time range this is a replay (P08).
    Resend,
    Discard,
    SetAside,
    Forward {
        topic: TopicName,
        keep_header: bool,
    },
}

impl JobAct {
    /// Those that `as_str` gives.
    pub const NAMES: [&str; 5] = ["retry", "resend", "discard", "set_aside", "forward"];

    pub const fn as_str(&self) -> &'static str {
        match self {
            JobAct::Retry => "retry",
            JobAct::Resend => "resend",
            JobAct::Discard => "discard",
            JobAct::SetAside => "set_aside",
            JobAct::Forward { .. } => "forward",
        }
    }

    /// Those that it can be done to: what is meant where nobody names a status. A resend of what waits is an attempt at once, and has to
    /// be asked for by its status.
    pub const fn statuses(&self) -> &'static [Status] {
        match self {
            JobAct::Retry | JobAct::Forward { .. } => &[Status::Dlq, Status::Failed],
            JobAct::Resend => {
                &[Status::Success, Status::Failed, Status::Dlq, Status::Discarded, Status::Forwarded, Status::Expired]
            }
            JobAct::Discard => &[Status::Pending, Status::Processing, Status::Dlq, Status::Failed],
            JobAct::SetAside => &[Status::Pending, Status::Processing],
        }
    }

    pub const fn by_hand(&self) -> ByHand {
        match self {
            JobAct::Retry => ByHand::Retry,
            JobAct::Resend => ByHand::Resend,
            JobAct::Discard => ByHand::Discard,
            JobAct::SetAside => ByHand::SetAside,
            JobAct::Forward { .. } => ByHand::Forward,
        }
    }
}

/// Where a job stands. DONE and CANCELLED are its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobState {
    Running,
    Paused,
    Cancelled,
    Done,
}

/// What a person asks of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobControl {
    Pause,
    Resume,
    Cancel,
}

/// A job that has ended takes no orders; HTTP 409.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the job has ended: it is {}", .0.as_str())]
pub struct JobEnded(pub JobState);

impl JobState {
    pub const ALL: [JobState; 4] = [JobState::Running, JobState::Paused, JobState::Cancelled, JobState::Done];

    pub const fn as_str(self) -> &'static str {
        match self {
            JobState::Running => "RUNNING",
            JobState::Paused => "PAUSED",
            JobState::Cancelled => "CANCELLED",
            JobState::Done => "DONE",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        JobState::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn has_ended(self) -> bool {
        matches!(self, JobState::Cancelled | JobState::Done)
    }

    /// Asking twice is asking once.
    ///
    /// # Errors
    /// `JobEnded` for a job that is done or was cancelled; to cancel a cancelled one once more is no error.
    pub const fn after(self, control: JobControl) -> Result<JobState, JobEnded> {
        match (self, control) {
            (JobState::Cancelled, JobControl::Cancel) | (JobState::Running | JobState::Paused, JobControl::Cancel) => {
                Ok(JobState::Cancelled)
            }
            (JobState::Cancelled | JobState::Done, _) => Err(JobEnded(self)),
            (_, JobControl::Pause) => Ok(JobState::Paused),
            (_, JobControl::Resume) => Ok(JobState::Running),
        }
    }
}

/// Why a job left a delivery as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    AlreadyDelivered,
    InFlight,
    /// Its status does not allow the act; such as a retry of what waits.
    WrongStatus,
    /// There is none of this id in the project, or it has left the log meanwhile.
    NotFound,
    /// Its connection was deleted, so that it cannot come back.
    ConnectionGone,
    /// The topic to forward to does not exist (any more).
    NoTopic,
    /// More subscriptions of the topic push than one message may go to, or a queue that it would go to is full (D40).
    NoRoom,
    /// It kept changing under the job's hands.
    Changing,
    /// Its endpoint is off (D27).
    EndpointOff,
    /// Its project is not entitled to webhooks (D45).
    NotEntitled,
    /// It is a forward of an incoming webhook, which is retried as a new forward (R12).
    Forward,
}

impl SkipReason {
    pub const ALL: [SkipReason; 11] = [
        SkipReason::AlreadyDelivered,
        SkipReason::InFlight,
        SkipReason::WrongStatus,
        SkipReason::NotFound,
        SkipReason::ConnectionGone,
        SkipReason::NoTopic,
        SkipReason::NoRoom,
        SkipReason::Changing,
        SkipReason::EndpointOff,
        SkipReason::NotEntitled,
        SkipReason::Forward,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            SkipReason::AlreadyDelivered => "already_delivered",
            SkipReason::InFlight => "in_flight",
            SkipReason::WrongStatus => "wrong_status",
            SkipReason::NotFound => "not_found",
            SkipReason::ConnectionGone => "connection_gone",
            SkipReason::NoTopic => "no_topic",
            SkipReason::NoRoom => "no_room",
            SkipReason::Changing => "changing",
            SkipReason::EndpointOff => "endpoint_off",
            SkipReason::NotEntitled => "not_entitled",
            SkipReason::Forward => "forward",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        SkipReason::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

impl From<Refused> for SkipReason {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::InFlight => SkipReason::InFlight,
            Refused::AlreadyDelivered => SkipReason::AlreadyDelivered,
            Refused::WrongStatus { .. } => SkipReason::WrongStatus,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for state in JobState::ALL {
            assert_eq!(JobState::parse(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for reason in SkipReason::ALL {
            assert_eq!(SkipReason::parse(reason.as_str()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        let act = JobAct::Forward { topic: TopicName::new("a.b").unwrap(), keep_header: false };
        let text = serde_json::to_string(&act).unwrap();
        assert_eq!(serde_json::from_str::<JobAct>(&text).unwrap(), act);
    }

    #[test]
    fn a_job_that_has_ended_takes_no_orders() {
        use JobControl::{Cancel, Pause, Resume};
        use JobState::{Cancelled, Done, Paused, Running};
        for (state, control, wanted) in [
            (Running, Pause, Ok(Paused)),
            (Paused, Pause, Ok(Paused)),
            (Paused, Resume, Ok(Running)),
            (Running, Resume, Ok(Running)),
            (Running, Cancel, Ok(Cancelled)),
            (Paused, Cancel, Ok(Cancelled)),
            (Cancelled, Cancel, Ok(Cancelled)),
            (Cancelled, Resume, Err(JobEnded(Cancelled))),
            (Done, Pause, Err(JobEnded(Done))),
            (Done, Cancel, Err(JobEnded(Done))),
        ] {
            assert_eq!(state.after(control), wanted, "{state:?} {control:?}");
        }
    }
}
