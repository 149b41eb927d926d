//! What a forwarded dead letter looks like on its topic: the same message id each time, so that a subscriber can drop a duplicate
//! (Z22), and with the note in its headers if that is wanted (Z21).
//!
//! It must not know who forwards.

use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;
use postrider_core::id::EventId;
use postrider_core::message::HeaderList;
use postrider_core::policy::{DeliveryPolicy, DlqAction};
use postrider_core::topic::TopicName;
use postrider_store::TopicMessageDraft;

pub(crate) fn draft(delivery: &Delivery, topic: TopicName, keep_header: bool, now: Timestamp) -> TopicMessageDraft {
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
