//! How a request comes in: checked, given its ids, and sent down one of two ways: stored first, or called straight away.
//!
//! It must not know how a queue is delivered.

use std::sync::Arc;

use postrider_core::connection::{Connection, Family};
use postrider_core::delivery::{Origin, Progress};
use postrider_core::id::{Cid, DeliveryId, ProjectId};
use postrider_core::log;
use postrider_core::message::Message;
use postrider_core::outcome::Outcome;
use postrider_core::schedule::LadderTerms;
use postrider_core::{Answer, Reply, SettingError};
use postrider_store::{Enqueued, NewBody, NewDelivery, StoreError};

use crate::call::{self, Retries};
use crate::elsewhere;
use crate::engine::{ConnectionRef, SendOptions};
use crate::keyed_calls;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::spans;

/// A call: attempted in its turn, its caller told the outcome.
pub(crate) async fn send(
    shared: &Arc<Shared>,
    project: ProjectId,
    wanted: &ConnectionRef,
    mut message: Message,
    mut options: SendOptions,
) -> Result<Outcome, Refusal> {
    let connection = accept(shared, project, wanted, &message)?;
    let accepting = spans::begin(shared, &mut message.head, options.trace.take());
    let outcome = accepted(shared, Arc::clone(&connection), message, options).await;
    if let (Some(accepting), Ok(outcome)) = (accepting, &outcome) {
        accepting.end(shared, &connection.name, outcome.msg_id, &outcome.cid);
    }
    outcome
}

async fn accepted(
    shared: &Arc<Shared>,
    connection: Arc<Connection>,
    message: Message,
    options: SendOptions,
) -> Result<Outcome, Refusal> {
    let only_reads = connection.spec.target.only_reads(&message.head);
    let mut new = new_delivery(shared, &connection, message, options, Origin::Call);
    // Z18, D31: with requests still queued, a connection whose queue was turned off behaves as if it were on.
    let queued = connection.spec.policy.queue.use_queue
        || shared.queues.get(connection.id).is_some_and(|queue| queue.has_backlog());
    if only_reads && queued {
        return call::call(shared, connection, new, Retries::Never).await;
    }
    if let Some(key) = new.idempotency.clone().filter(|_| !queued) {
        return keyed_calls::call(shared, connection, new, key).await;
    }
    if !queued {
        return call::call(shared, connection, new, Retries::AsConfigured).await;
    }
    let (id, cid) = (new.id, new.cid.clone());
    let waiting = shared.notifier.expect(id, cid.clone());
    let elsewhere = elsewhere::expect(shared, &connection, &mut new);
    // D15: a repeat that comes while this one runs is told what this one is told.
    let under_way = new.idempotency.is_some().then(|| keyed_calls::begin(shared, id));
    let stored = match shared.intake.store(new).await? {
        Ok(stored) => stored,
        Err(error) => return could_not_store(cid, &error),
    };
    match stored {
        Enqueued::Stored { .. } => {
            let outcome = match elsewhere {
                Some(elsewhere) => elsewhere.outcome(waiting, &connection).await,
                None => waiting.outcome(connection.spec.policy.timeout).await,
            };
            let is_gone = shared.connections.get(connection.id).is_none();
            let outcome = if is_gone { outcome.without_queue() } else { outcome };
            if let Some(under_way) = under_way {
                under_way.landed.send_replace(Some(outcome.clone()));
            }
            Ok(outcome)
        }
        other => not_newly_stored(shared, other, Outcome::queued(id, cid), &connection).await,
    }
}

/// Stores and returns (Z31).
pub(crate) async fn publish(
    shared: &Arc<Shared>,
    project: ProjectId,
    wanted: &ConnectionRef,
    mut message: Message,
    mut options: SendOptions,
) -> Result<Outcome, Refusal> {
    let connection = accept(shared, project, wanted, &message)?;
    let accepting = spans::begin(shared, &mut message.head, options.trace.take());
    let new = new_delivery(shared, &connection, message, options, Origin::Publish);
    let queued = Outcome::queued(new.id, new.cid.clone());
    let stored = shared.intake.store(new).await?;
    if let Some(accepting) = accepting {
        accepting.end(shared, &connection.name, queued.msg_id, &queued.cid);
    }
    published(shared, stored, queued, &connection).await
}

/// Many to one connection, each under the same checks as alone; those that pass are stored in their order. The answers are in order.
pub(crate) async fn publish_batch(
    shared: &Arc<Shared>,
    project: ProjectId,
    wanted: &ConnectionRef,
    batch: Vec<(Message, SendOptions)>,
) -> Result<Vec<Result<Outcome, Refusal>>, Refusal> {
    let connection = open_connection(shared, project, wanted)?;
    let mut news = Vec::with_capacity(batch.len());
    let mut answers = Vec::with_capacity(batch.len());
    for (mut message, mut options) in batch {
        answers.push(check_message(shared, &connection, &message).map(|()| {
            let accepting = spans::begin(shared, &mut message.head, options.trace.take());
            let new = new_delivery(shared, &connection, message, options, Origin::Publish);
            let queued = Outcome::queued(new.id, new.cid.clone());
            news.push(new);
            if let Some(accepting) = accepting {
                accepting.end(shared, &connection.name, queued.msg_id, &queued.cid);
            }
            queued
        }));
    }
    let mut stored = shared.intake.store_all(news).await.into_iter();
    for answer in &mut answers {
        let Ok(queued) = answer else { continue };
        let result = stored.next().unwrap_or(Err(Refusal::Stopping));
        *answer = match result {
            Ok(stored) => published(shared, stored, queued.clone(), &connection).await,
            Err(refusal) => Err(refusal),
        };
    }
    Ok(answers)
}

/// What the publisher is told.
async fn published(
    shared: &Shared,
    stored: Result<Enqueued, StoreError>,
    queued: Outcome,
    connection: &Connection,
) -> Result<Outcome, Refusal> {
    match stored {
        Ok(Enqueued::Stored { .. }) => Ok(queued),
        Ok(other) => not_newly_stored(shared, other, queued, connection).await,
        Err(error) => could_not_store(queued.cid, &error),
    }
}

/// A full store is a refusal with the limit's name (D07); other trouble is told in the result (Z30).
pub(crate) fn could_not_store(cid: Cid, error: &StoreError) -> Result<Outcome, Refusal> {
    match error {
        StoreError::Full { limit } => Err(Refusal::Full { limit }),
        error => Ok(not_stored(cid, error)),
    }
}

/// Our own refusals, before anything is stored or sent.
fn accept(
    shared: &Shared,
    project: ProjectId,
    wanted: &ConnectionRef,
    message: &Message,
) -> Result<Arc<Connection>, Refusal> {
    let connection = open_connection(shared, project, wanted)?;
    check_message(shared, &connection, message)?;
    Ok(connection)
}

/// The connection, if it takes anything.
fn open_connection(shared: &Shared, project: ProjectId, wanted: &ConnectionRef) -> Result<Arc<Connection>, Refusal> {
    if shared.is_stopping() {
        return Err(Refusal::Stopping);
    }
    let connection = shared.connections.find(project, wanted)?;
    if connection.kind().family() != Family::Connection {
        let allowed =
            "the name of a connection; a channel takes requests at its own address, and a service is run by channels";
        return Err(Refusal::Invalid(vec![SettingError::new("connection", &connection.name, allowed)]));
    }
    if !connection.spec.is_active {
        return Err(Refusal::Inactive(connection.name.clone()));
    }
    Ok(connection)
}

pub(crate) fn check_message(shared: &Shared, connection: &Connection, message: &Message) -> Result<(), Refusal> {
    let (given, allowed) = (message.body.len() as u64, shared.options.body_bytes_max);
    if given > allowed {
        return Err(Refusal::TooLarge { given, allowed });
    }
    postrider_wire::check(connection, message).map_err(|error| Refusal::Invalid(vec![error]))
}

pub(crate) fn new_delivery(
    shared: &Shared,
    connection: &Connection,
    message: Message,
    options: SendOptions,
    origin: Origin,
) -> NewDelivery {
    let now = shared.now();
    let policy = &connection.spec.policy;
    NewDelivery {
        id: shared.new_delivery_id(now),
        project_id: connection.project_id,
        connection_id: connection.id,
        cid: options.cid.unwrap_or_else(|| shared.new_cid(now)),
        origin,
        created_at: now,
        head: message.head,
        body: NewBody { id: shared.new_body_id(now), bytes: message.body },
        event: None,
        ladder: LadderTerms::of(policy),
        progress: Progress::accepted(now),
        ordered: policy.queue.ordered,
        claimed_under: None,
        idempotency: options.idempotency,
        awaited_until: None,
    }
}

/// Storing failed. The store's own words name files and statements, which are for the server's log and not for callers.
fn not_stored(cid: Cid, error: &StoreError) -> Outcome {
    let told = match error {
        StoreError::Full { .. } => return Outcome::not_stored(cid, error.to_string()),
        StoreError::Closed => "the server is stopping; nothing was stored",
        StoreError::Unavailable(_)
        | StoreError::LeaseLost
        | StoreError::Corrupt(_)
        | StoreError::NotFound { .. }
        | StoreError::Conflict(_) => "the store is unavailable; nothing was stored",
    };
    tracing::warn!(event = log::REQUEST_NOT_STORED, %error, "a request could not be stored");
    Outcome::not_stored(cid, told.to_owned())
}

/// What a caller is told when its request left nothing new in the queue (Z30, D07, D15).
async fn not_newly_stored(
    shared: &Shared,
    stored: Enqueued,
    queued: Outcome,
    connection: &Connection,
) -> Result<Outcome, Refusal> {
    match stored {
        Enqueued::Stored { .. } => Ok(queued),
        Enqueued::Repeated(id) => keyed_calls::repeat(shared, id).await,
        Enqueued::KeyReused => Err(key_reused()),
        Enqueued::Full { limit } => Err(Refusal::Full { limit }),
        Enqueued::NoConnection => Err(Refusal::NotFound { what: "connection", name: connection.name.clone() }),
    }
}

pub(crate) fn key_reused() -> Refusal {
    Refusal::Conflict("the idempotency key was used for another request before".to_owned())
}

/// The outcome of an earlier request, as far as it has come. Of a direct call that a crash cut off there is nothing but its key.
pub(crate) async fn outcome_of(shared: &Shared, id: DeliveryId) -> Result<Outcome, Refusal> {
    let Some(delivery) = shared.store.delivery(id).await? else {
        return Err(Refusal::OutcomeUnknown { msg_id: id });
    };
    let last = shared.store.attempts(id).await?.pop();
    let connection = shared.connections.get(delivery.connection_id);
    let reply = match last {
        // Where there is no status, an answer shows by its bytes.
        Some(attempt) if attempt.status.is_some() || attempt.response_bytes > 0 => Reply::Answered(Answer {
            status: attempt.status,
            said: connection.and_then(|connection| {
                let is_cut = attempt.incomplete || attempt.response_bytes > attempt.response_body.len() as u64;
                postrider_wire::said(&connection, &attempt.response_headers, &attempt.response_body, is_cut)
            }),
            headers: attempt.response_headers,
            incomplete: attempt.incomplete || attempt.response_bytes > attempt.response_body.len() as u64,
            body: attempt.response_body,
        }),
        Some(_) | None => Reply::unanswered(postrider_core::NoAnswerKind::Internal, "no answer came"),
    };
    Ok(Outcome::after_attempt(id, delivery.cid.clone(), &delivery.progress, reply))
}
