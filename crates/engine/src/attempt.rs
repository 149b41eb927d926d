//! One time on the wire: hands the request to the sender, measures it, and writes the record of it.
//!
//! It must not know what follows from the reply; the core decides that.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use postrider_core::attempt::{Attempt, LOGGED_ANSWER_BYTES_MAX};
use postrider_core::connection::Target;
use postrider_core::id::SubscriptionId;
use postrider_core::log;
use postrider_core::message::HeaderList;
use postrider_core::verdict::{self, Verdict};
use postrider_core::{Answer, Failure, NoAnswerKind, Reply, Timestamp, Wait};
use postrider_wire::{Outgoing, Stamp};

use crate::running;
use crate::shared::Shared;
use crate::spans;
use crate::transforming;

/// How an attempt ended.
pub(crate) struct Ended {
    pub reply: Reply,
    pub verdict: Verdict,
    pub record: Attempt,
}

/// Makes the attempt. A panic in the sender is a failed attempt, not the end of a queue. `of` is the subscription that it is for.
pub(crate) fn make(
    shared: &Arc<Shared>,
    mut outgoing: Outgoing,
    of: Option<SubscriptionId>,
) -> BoxFuture<'static, Ended> {
    let shared = Arc::clone(shared);
    Box::pin(async move {
        let number = outgoing.attempt;
        let of_request = outgoing.head.trace.clone();
        outgoing.trace = spans::of_attempt(&shared, &outgoing);
        let of_attempt = outgoing.trace.clone();
        let (connection, msg_id, cid) = (Arc::clone(&outgoing.connection), outgoing.delivery_id, outgoing.cid.clone());
        let started_at = shared.clock.now();
        let started = shared.clock.monotonic();
        let reply = reply(&shared, outgoing, of, started_at).await;
        let took = shared.clock.monotonic().saturating_sub(started);
        let verdict = verdict::of(&connection.spec.target, &reply);
        let record = record(number, started_at, took, &verdict, &reply);
        shared.tally.attempted(record.failure);
        shared.tally.took(number, took);
        shared.flows.attempted(connection.project_id, connection.id, record.failure.is_none(), took, started_at + took);
        if let Some(failure) = record.failure {
            shared.flows.failed(connection.id, failure, record.error.as_deref(), started_at + took);
        }
        spans::attempted(&shared, &connection, (msg_id, &cid), (of_request.as_ref(), of_attempt.as_ref()), &record);
        shared.remotes.attempted(&connection, &record, started_at + took);
        tracing::debug!(
            event = log::ATTEMPT_ENDED, connection = connection.name, %msg_id, %cid, attempt = number, took_ms = took.as_millis(),
            failure = record.failure.map(Failure::as_str), status = record.status, "an attempt has ended"
        );
        Ended { reply, verdict, record }
    })
}

/// The same for a request that is no delivery: it enters no log, no figures and no trace.
pub(crate) async fn make_alone(shared: &Arc<Shared>, outgoing: Outgoing) -> Ended {
    let connection = Arc::clone(&outgoing.connection);
    let started_at = shared.clock.now();
    let started = shared.clock.monotonic();
    let number = outgoing.attempt;
    let reply = reply(shared, outgoing, None, started_at).await;
    let took = shared.clock.monotonic().saturating_sub(started);
    let verdict = verdict::of(&connection.spec.target, &reply);
    let record = record(number, started_at, took, &verdict, &reply);
    Ended { reply, verdict, record }
}

/// Its rung is spent already, whatever becomes of it (R16). What is signed is what the transformation gave (R13).
async fn reply(shared: &Shared, mut outgoing: Outgoing, of: Option<SubscriptionId>, now: Timestamp) -> Reply {
    if let Err(failed) = transforming::apply(shared, &mut outgoing, of).await {
        return failed;
    }
    if matches!(outgoing.connection.spec.target, Target::Channel(_) | Target::Service(_)) {
        return unbroken(running::reply(shared, outgoing)).await;
    }
    match with_secrets(shared, &mut outgoing, now) {
        Ok(()) => send(shared, outgoing).await,
        // V08: nothing goes out without the credentials that it should carry.
        Err(why) => Reply::unanswered(NoAnswerKind::SecretUnreadable, why),
    }
}

/// What the attempt carries that is never stored with the request; a signature is of this very attempt (V10).
fn with_secrets(shared: &Shared, outgoing: &mut Outgoing, now: Timestamp) -> Result<(), String> {
    outgoing.credentials = shared.securities.credentials_for(&outgoing.connection)?;
    // Drawn only where it is used: what is drawn for nothing changes every later roll.
    let is_stamped = outgoing.credentials.as_ref().is_some_and(|credentials| credentials.is_stamped());
    outgoing.stamp = is_stamped.then(|| Stamp { at: now, nonce: shared.dice.bits() });
    if let Some(webhook) = outgoing.webhook.as_mut().filter(|webhook| !webhook.goes_as_it_arrived()) {
        webhook.keys = shared.endpoints.keys_at(outgoing.connection.id, now)?;
        webhook.at = now;
    }
    Ok(())
}

async fn send(shared: &Shared, outgoing: Outgoing) -> Reply {
    unbroken(shared.sender.send(outgoing)).await
}

async fn unbroken(sending: impl Future<Output = Reply>) -> Reply {
    AssertUnwindSafe(sending).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(event = log::ATTEMPT_PANICKED, "sending broke down; the attempt counts as failed");
        Reply::unanswered(NoAnswerKind::Internal, "sending broke down")
    })
}

fn record(number: u32, started_at: Timestamp, took: Wait, verdict: &Verdict, reply: &Reply) -> Attempt {
    let (failure, error) = match verdict {
        Verdict::Delivered => (None, reply.answer().and_then(Answer::remark).map(str::to_owned)),
        Verdict::Failed(failed) => (Some(failed.failure), Some(failed.error.clone())),
    };
    let answer = reply.answer();
    Attempt {
        number,
        started_at,
        took,
        failure,
        status: answer.and_then(|answer| answer.status),
        error,
        response_headers: answer.map_or_else(HeaderList::default, |answer| answer.headers.clone()),
        response_body: answer.map_or_else(Bytes::new, |answer| first_bytes(&answer.body)),
        response_bytes: answer.map_or(0, |answer| answer.body.len() as u64),
        incomplete: answer.is_some_and(|answer| answer.incomplete),
    }
}

/// A copy when the answer is longer, so that the log does not hold on to all of it.
fn first_bytes(body: &Bytes) -> Bytes {
    if body.len() <= LOGGED_ANSWER_BYTES_MAX {
        return body.clone();
    }
    Bytes::copy_from_slice(&body[..LOGGED_ANSWER_BYTES_MAX])
}

/// The record of an attempt that was cut off (D04).
pub(crate) fn interrupted(number: u32, started_at: Timestamp, error: Option<String>) -> Attempt {
    Attempt {
        number,
        started_at,
        took: Wait::ZERO,
        failure: Some(Failure::Interrupted),
        status: None,
        error,
        response_headers: HeaderList::default(),
        response_body: Bytes::new(),
        response_bytes: 0,
        incomplete: false,
    }
}
