//! A request at a channel's address: stored and acknowledged at once, or run while its caller waits (Z40, Z41).
//!
//! Accepting waits on nothing but storing. It must not know how a caller was let in, nor what the acknowledgment looks like.

use std::sync::Arc;

use postrider_core::connection::{Connection, Runs};
use postrider_core::delivery::Origin;
use postrider_core::id::{Cid, DeliveryId};
use postrider_core::message::Message;
use postrider_core::outcome::Outcome;
use postrider_core::{Answer, Reply, log};
use postrider_store::Enqueued;
use postrider_wire::Outgoing;
use postrider_wire::auth::Doorkeeper;
use postrider_wire::send::service::{Ask, is_of_the_code};

use crate::call::{self, Retries};
use crate::channels::At;
use crate::engine::{Engine, SendOptions};
use crate::entry;
use crate::keyed_calls;
use crate::refusal::Refusal;
use crate::running;
use crate::shared::Shared;
use crate::spans;

/// What became of a request that a channel took.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// On disk, in the channel's queue.
    Stored(Receipt),
    /// Run while the caller waited.
    Ran(Box<Outcome>),
}

/// What the acknowledgment quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub msg_id: DeliveryId,
    pub cid: Cid,
}

impl Engine {
    /// Whether there is any channel: where there is none, no address needs to be looked up.
    pub fn has_channels(&self) -> bool {
        self.shared.connections.has_channels()
    }

    /// The channel at an address. `action` reads the action of a SOAP request, where that decides.
    pub fn channel_at(&self, method: &str, path: &str, action: impl Fn(&Connection) -> String) -> At {
        self.shared.connections.channel_at(method, path, action)
    }

    /// Who is let in at this channel.
    pub fn doorkeeper(&self, channel: &Connection) -> Doorkeeper {
        Doorkeeper::new(self.shared.securities.credentials_for(channel))
    }

    /// Takes a request in. With the queue on it is on disk when this returns; dropping the future then is a caller that leaves.
    ///
    /// # Errors
    /// Our own refusals: nothing of it is stored and nothing has run.
    pub async fn accept(
        &self,
        channel: &Arc<Connection>,
        message: Message,
        options: SendOptions,
    ) -> Result<Accepted, Refusal> {
        accept(&self.shared, channel, message, options).await
    }

    /// Whether the service may have words of its own for the caller of a stored request: answered from memory.
    pub fn may_have_queue_response(&self, channel: &Connection) -> bool {
        let name = channel.spec.target.channel().and_then(|target| target.service());
        name.and_then(|name| running::find(&self.shared, channel.project_id, name))
            .is_some_and(|service| service.may_have_queue_response())
    }

    /// What the service itself wants the caller of a stored request to be told (Z44). `None`: it has nothing to say, or could not say it; the log
    /// says why, and the default acknowledgment holds.
    pub async fn queue_response(
        &self,
        channel: &Arc<Connection>,
        message: &Message,
        receipt: &Receipt,
    ) -> Option<Answer> {
        queue_response(&self.shared, channel, message, receipt).await
    }
}

pub(crate) async fn accept(
    shared: &Arc<Shared>,
    channel: &Arc<Connection>,
    mut message: Message,
    mut options: SendOptions,
) -> Result<Accepted, Refusal> {
    if shared.is_stopping() {
        return Err(Refusal::Stopping);
    }
    if !channel.spec.is_active {
        return Err(Refusal::Inactive(channel.name.clone()));
    }
    entry::check_message(shared, channel, &message)?;
    let accepting = spans::begin(shared, &mut message.head, options.trace.take());
    let new = entry::new_delivery(shared, channel, message, options, Origin::Channel);
    let receipt = Receipt { msg_id: new.id, cid: new.cid.clone() };
    // D31: with requests still queued, a channel whose queue was turned off behaves as if it were on.
    let is_queued =
        channel.spec.policy.queue.use_queue || shared.queues.get(channel.id).is_some_and(|queue| queue.has_backlog());
    let accepted = if is_queued {
        stored(shared, channel, new, receipt.clone()).await
    } else {
        let outcome = match new.idempotency.clone() {
            Some(key) => keyed_calls::call(shared, Arc::clone(channel), new, key).await?,
            None => call::call(shared, Arc::clone(channel), new, Retries::AsConfigured).await?,
        };
        shared.tally.answered(&outcome);
        Ok(Accepted::Ran(Box::new(outcome)))
    };
    if let (Some(accepting), Ok(_)) = (accepting, &accepted) {
        accepting.end(shared, &channel.name, Some(receipt.msg_id), &receipt.cid);
    }
    accepted
}

async fn stored(
    shared: &Arc<Shared>,
    channel: &Connection,
    new: postrider_store::NewDelivery,
    receipt: Receipt,
) -> Result<Accepted, Refusal> {
    match shared.intake.store(new).await? {
        Ok(Enqueued::Stored { .. }) => {
            shared.tally.answered(&Outcome::queued(receipt.msg_id, receipt.cid.clone()));
            Ok(Accepted::Stored(receipt))
        }
        // D15: acknowledged as the first one was, wherever that one is by now.
        Ok(Enqueued::Repeated(id)) => match shared.store.delivery(id).await? {
            Some(first) => Ok(Accepted::Stored(Receipt { msg_id: id, cid: first.cid })),
            None => Err(Refusal::OutcomeUnknown { msg_id: id }),
        },
        Ok(Enqueued::KeyReused) => Err(entry::key_reused()),
        Ok(Enqueued::Full { limit }) => Err(Refusal::Full { limit }),
        Ok(Enqueued::NoConnection) => Err(Refusal::NotFound { what: "channel", name: channel.name.clone() }),
        Err(error) => {
            tracing::warn!(event = log::REQUEST_NOT_STORED, channel = channel.name, %error, "a request could not be stored");
            Err(error.into())
        }
    }
}

async fn queue_response(
    shared: &Arc<Shared>,
    channel: &Arc<Connection>,
    message: &Message,
    receipt: &Receipt,
) -> Option<Answer> {
    let target = channel.spec.target.channel()?;
    let Runs::Service(name) = &target.runs else { return None };
    let service = running::find(shared, channel.project_id, name)?;
    let wait = target.hook_timeout.as_duration();
    let asked = tokio::time::timeout(wait, async {
        if !service.has_queue_response(shared, channel.project_id).await? {
            return Ok(None);
        }
        let outgoing = Outgoing {
            connection: Arc::clone(channel),
            delivery_id: receipt.msg_id,
            cid: receipt.cid.clone(),
            attempt: 1,
            head: Arc::new(message.head.clone()),
            body: message.body.clone(),
            credentials: None,
            webhook: None,
            service: None,
            trace: None,
            stamp: None,
            timeout: target.hook_timeout,
        };
        let reply = service.ask(shared, outgoing, Ask::QueueResponse, true).await;
        if has_none(&reply) {
            service.forget_hooks(shared);
            return Ok(None);
        }
        usable(reply).map(Some)
    })
    .await;
    let why = match asked {
        Ok(Ok(answer)) => return answer,
        Ok(Err(why)) => why,
        Err(_) => format!("it took longer than {} ms (`hook_timeout_ms`)", target.hook_timeout.as_millis()),
    };
    let (msg_id, cid) = (&receipt.msg_id, &receipt.cid);
    tracing::warn!(
        event = log::HOOK_FAILED, channel = channel.name, service = name, %msg_id, %cid, why,
        "a service did not write the acknowledgment; the default one was sent"
    );
    None
}

/// The host had the hook when it was asked, and has it no more: its code was changed.
fn has_none(reply: &Reply) -> bool {
    reply.answer().is_some_and(|answer| answer.status == Some(404) && !is_of_the_code(&answer.headers))
}

/// What a caller may be shown: whole, and of the service's own making.
fn usable(reply: Reply) -> Result<Answer, String> {
    let answer = match reply {
        Reply::Answered(answer) => answer,
        Reply::Unanswered(none) => return Err(none.detail),
    };
    let status = answer.status.unwrap_or_default();
    if answer.incomplete {
        return Err("its answer was cut".to_owned());
    }
    let raised = answer.headers.get(postrider_core::verdict::RUN_HEADER) == Some("failed");
    if raised {
        let kind = answer.headers.get(postrider_core::verdict::RUN_ERROR_HEADER).unwrap_or("an error");
        return Err(format!("it raised {}", kind.chars().take(200).collect::<String>()));
    }
    // A status that the service set is its own business; one of a host that could not run it is not for the caller. What says that it was not taken
    // would have it sent again.
    if !is_of_the_code(&answer.headers) && !(200..300).contains(&status) {
        return Err(format!("it answered HTTP {status}"));
    }
    if !(200..600).contains(&status) {
        return Err(format!("it answered with the status {status}"));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::message::HeaderList;

    #[test]
    fn z44_only_a_whole_answer_of_the_service_is_an_acknowledgment() {
        let answer = |status: u16, pairs: &[(&str, &str)], incomplete| {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let headers = HeaderList::try_from(pairs).unwrap();
            Reply::Answered(Answer { status: Some(status), headers, incomplete, ..Answer::default() })
        };
        let ok = [("x-postrider-run", "ok")];
        assert!(usable(answer(200, &ok, false)).is_ok() && usable(answer(202, &[], false)).is_ok());
        assert!(usable(answer(422, &ok, false)).is_ok(), "a service may say so");
        assert!(usable(answer(200, &ok, true)).is_err());
        assert!(usable(answer(503, &[], false)).is_err(), "the host is busy");
        assert!(usable(answer(101, &ok, false)).is_err());
        let raised = [("x-postrider-run", "failed"), ("x-postrider-error", "ValueError")];
        assert_eq!(usable(answer(500, &raised, false)).unwrap_err(), "it raised ValueError");
        let none = Reply::unanswered(postrider_core::NoAnswerKind::Unreachable, "refused");
        assert_eq!(usable(none).unwrap_err(), "refused");
    }
}
