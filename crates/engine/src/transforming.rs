//! Transformations of subscriptions: what is sent in place of the body, made anew for every attempt (R13, D21).
//!
//! A delivery whose transformation fails is not sent raw: the attempt fails and the next one tries again. This module must not know how a
//! program is run, nor what it says.

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::delivery::EventRef;
use postrider_core::envelope::{self, Payload};
use postrider_core::id::{EventId, ProjectId, SubscriptionId};
use postrider_core::subscription::PushSpec;
use postrider_core::topic::TopicName;
use postrider_core::{NoAnswerKind, Reply, SettingError};
use postrider_store::StoreError;
use postrider_wire::Outgoing;

use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// The setting, as a person writes it.
const KEY: &str = "transformation";

/// Runs programs that people have written, so that none of them can harm the server: within limits of time, memory and output.
#[async_trait]
pub trait Transform: Send + Sync {
    /// Whether it is a program at all.
    ///
    /// # Errors
    /// `BadProgram` when it is none; others when that cannot be told now.
    async fn check(&self, program: &str) -> Result<(), TransformError>;

    /// The one JSON value that the program gives for this body.
    ///
    /// # Errors
    /// Why there is none.
    async fn run(&self, program: &str, body: &[u8]) -> Result<Bytes, TransformError>;
}

/// Why a transformation gave nothing to send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    #[error("the transformation is no jq program: {0}")]
    BadProgram(String),
    /// In jq's words, which may show parts of the body.
    #[error("the transformation failed on this body: {0}")]
    Raised(String),
    #[error("the body is no JSON, which a transformation needs")]
    NotJson,
    #[error("the transformation gave no value or several: exactly one is sent")]
    NotOne,
    #[error("the transformation gave more than may be sent (`transform_output_bytes_max`)")]
    OutputTooLarge,
    #[error("the transformation took too long (`transform_time_max`)")]
    TookTooLong,
    #[error("the transformation took more memory than it may (`transform_memory_max`), or called itself too deeply")]
    TookTooMuch,
    #[error("transformations cannot be run now: {0}")]
    Unavailable(String),
}

impl TransformError {
    /// For the log of a delivery, where no part of a body may stand.
    fn without_body(&self) -> String {
        match self {
            TransformError::Raised(_) => {
                "the transformation failed on this body; a preview with it shows why".to_owned()
            }
            other => other.to_string(),
        }
    }
}

/// What a program is tried on.
#[derive(Clone, Debug)]
pub enum Sample {
    /// What would be sent without a transformation.
    Body(Bytes),
    /// An event as an endpoint with the payload form `envelope` would be sent it.
    Event { event_type: TopicName, data: Bytes },
}

impl Engine {
    /// What a program makes of a body; nothing is stored or sent.
    ///
    /// # Errors
    /// `Invalid`, in the words of the error.
    pub async fn preview_transformation(&self, program: &str, sample: Sample) -> Result<Bytes, Refusal> {
        let shared = &self.shared;
        let body = match sample {
            Sample::Body(body) => body,
            Sample::Event { event_type, data } => {
                let now = shared.now();
                let event = EventRef {
                    id: EventId::new(now, shared.dice.bits()),
                    event_type: event_type.to_string(),
                    happened_at: now,
                    subscription_id: SubscriptionId::from_u128(0),
                    payload: Payload::Envelope,
                    line: None,
                };
                envelope::body(&event, &data)
            }
        };
        run(shared, program, &body).await.map_err(|error| refusal("program", program, error))
    }
}

/// Before a subscription is stored.
///
/// # Errors
/// `Invalid` by the setting's name, with what the program's error is.
pub(crate) async fn check(shared: &Shared, spec: &PushSpec) -> Result<(), Refusal> {
    let Some(program) = &spec.transformation else { return Ok(()) };
    let result = match shared.options.transform.get() {
        Some(transform) => transform.check(program).await,
        None => Err(nothing_runs_them()),
    };
    result.map_err(|error| refusal(KEY, program, error))
}

/// Puts what the live transformation makes of the body in its place, if the subscription has one or had one when it went.
///
/// # Errors
/// The reply that stands for the attempt: nothing was sent.
pub(crate) async fn apply(shared: &Shared, outgoing: &mut Outgoing, of: Option<SubscriptionId>) -> Result<(), Reply> {
    let project = outgoing.connection.project_id;
    let Some(of) = of else { return Ok(()) };
    let program = program(shared, project, of).await.map_err(|error| {
        let why = TransformError::Unavailable(format!("the program cannot be read: {error}"));
        Reply::unanswered(NoAnswerKind::TransformFailed, why.without_body())
    })?;
    let Some(program) = program else { return Ok(()) };
    outgoing.body = run(shared, &program, &outgoing.body)
        .await
        .map_err(|error| Reply::unanswered(NoAnswerKind::TransformFailed, error.without_body()))?;
    Ok(())
}

/// Of one that is gone, the last one it had.
async fn program(shared: &Shared, project: ProjectId, of: SubscriptionId) -> Result<Option<String>, StoreError> {
    match shared.subscriptions.get(project, of) {
        Some(known) => Ok(known.spec.transformation.clone()),
        None => shared.store.kept_program(of).await,
    }
}

async fn run(shared: &Shared, program: &str, body: &[u8]) -> Result<Bytes, TransformError> {
    match shared.options.transform.get() {
        Some(transform) => transform.run(program, body).await,
        None => Err(nothing_runs_them()),
    }
}

fn nothing_runs_them() -> TransformError {
    TransformError::Unavailable("this process has nothing that runs them".to_owned())
}

fn refusal(key: &'static str, program: &str, error: TransformError) -> Refusal {
    let allowed = match error {
        TransformError::Unavailable(_) => return Refusal::Unavailable(error.to_string()),
        TransformError::BadProgram(words) => format!("a jq program, and this is none: {words}"),
        other => format!("a jq program that gives one value within its limits: {other}"),
    };
    Refusal::Invalid(vec![SettingError::new(key, program, allowed)])
}
