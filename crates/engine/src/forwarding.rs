//! What a forwarded dead letter looks like on its topic: the same message id each time, so that a subscriber can drop a duplicate
//! (Z22), and with the note in its headers if that is wanted (Z21). It goes to the topic's subscriptions that push as any message (D40).
//!
//! It must not know who forwards.

use std::sync::Arc;

use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Origin};
use postrider_core::id::{EventId, QueueId};
use postrider_core::message::HeaderList;
use postrider_core::policy::{DeliveryPolicy, DlqAction};
use postrider_core::topic::TopicName;
use postrider_store::{Forward, NewBody, Settlement, StoreError, TopicMessageDraft};

use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::{dispatcher, events};

/// Bodies that are read at a time to be pushed; one at least, however large.
pub(crate) const BYTES_AT_ONCE: u64 = 16 << 20;

/// Who forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Hand,
    /// What came from the topic is not pushed there again, or it would go round for ever.
    Action,
}

/// The message, and its deliveries for the topic's subscriptions. `None`: the delivery has changed since it was read.
///
/// # Errors
/// The inner one as where a message is published: `Full` with `fan_out_max`.
pub(crate) async fn forward(
    shared: &Shared,
    delivery: &Delivery,
    to: (&TopicName, bool),
    now: Timestamp,
    by: By,
) -> Result<Result<Option<Box<Forward>>, Refusal>, StoreError> {
    let (topic, keep_header) = to;
    let message = draft(delivery, topic.clone(), keep_header, now);
    let goes_round = by == By::Action && delivery.came_from(topic);
    if goes_round || !is_pushed(shared, delivery, topic) {
        return Ok(Ok(Some(message.into())));
    }
    let Some(bytes) = shared.store.body(delivery.body_id).await? else { return Ok(Ok(None)) };
    let body = NewBody { id: delivery.body_id, bytes };
    let deliveries = events::fan_out(shared, delivery.project_id, &message, &body, (Origin::Event, now), |_| true);
    Ok(deliveries.map(|deliveries| Some(Box::new(Forward { message, deliveries }))))
}

/// Whether a subscription pushes what comes to this topic, so that the body is read for it.
pub(crate) fn is_pushed(shared: &Shared, delivery: &Delivery, topic: &TopicName) -> bool {
    !shared.subscriptions.selecting(delivery.project_id, topic).is_empty()
}

/// Forwards have been written: the queues that got something look.
pub(crate) fn tell(shared: &Arc<Shared>, queues: Vec<QueueId>) {
    for queue_id in queues {
        shared.tally.accepted();
        dispatcher::queue(shared, queue_id, None).set_backlog(true);
        dispatcher::wake(shared, queue_id);
    }
}

/// One for each delivery that is written with the settlement.
pub(crate) fn queues_of(settlement: &Settlement) -> Vec<QueueId> {
    let deliveries = settlement.forward.iter().flat_map(|forward| &forward.deliveries);
    deliveries.map(|new| new.connection_id).collect()
}

fn draft(delivery: &Delivery, topic: TopicName, keep_header: bool, now: Timestamp) -> TopicMessageDraft {
    let mut headers = delivery.head.headers.clone();
    if keep_header {
        add_note(&mut headers, delivery);
    }
    TopicMessageDraft {
        topic,
        id: EventId::from_u128(delivery.id.as_u128()),
        cid: delivery.cid.clone(),
        headers,
        published_at: now,
    }
}

/// The topic that the action names, for its note.
pub(crate) fn topic_of(policy: &DeliveryPolicy) -> &str {
    match &policy.dlq.action {
        DlqAction::Forward { topic: Some(topic), .. } => topic.as_str(),
        DlqAction::Forward { topic: None, .. } | DlqAction::Keep | DlqAction::Retry { .. } | DlqAction::Discard => "",
    }
}

fn add_note(headers: &mut HeaderList, delivery: &Delivery) {
    let progress = &delivery.progress;
    let fields = [
        ("x-postrider-dlq-reason", progress.failure.map(|failure| failure.to_string())),
        ("x-postrider-dlq-error", progress.error.as_deref().map(on_one_line)),
        ("x-postrider-dlq-failed-at", progress.dead_at.map(|at| at.to_string())),
        ("x-postrider-dlq-attempts", Some(progress.attempts.to_string())),
        ("x-postrider-dlq-rounds", Some(progress.rounds.to_string())),
    ];
    for (name, value) in fields {
        headers.remove(name);
        if let Some(value) = value {
            // Names are tokens and values have no control characters, so none is refused.
            let _ = headers.push(name.to_owned(), value);
        }
    }
}

fn on_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
