//! Of `delivery_acts`.

use http::StatusCode;
use serde_json::json;

use super::send::body_members;
use super::{CONFLICT, FULL, NOT_FOUND};
use crate::openapi::{Operation, Schema, Tag, always, optional, shapes};

pub fn act(tag: Tag, id: &'static str, summary: &'static str, details: &'static str) -> Operation {
    Operation::new(tag, id, summary)
        .details(details)
        .gives("The delivery as it stands then.", shapes::delivery())
        .refuses([CONFLICT, NOT_FOUND, FULL])
}

pub const RETRY: &str = "Only from the DLQ or FAILED. It follows its schedule from now: one round at the tail of its queue, or three more rungs of its ladder.";

pub fn retry() -> Operation {
    act(Tag::Deliveries, "retryDelivery", "Retry what could not be delivered", RETRY)
}

pub fn resend() -> Operation {
    let details = "From any state that has ended, a delivered one too, under the same ids. What waits is attempted now. Of webhooks 10 a minute and project, \
         tests and verifications included, and not to an endpoint that is off.";
    act(Tag::Deliveries, "resendDelivery", "Send it again", details).refuses([StatusCode::TOO_MANY_REQUESTS])
}

pub fn discard() -> Operation {
    act(Tag::Deliveries, "discardDelivery", "Discard a delivery", "It stays in the log as DISCARDED.")
}

pub fn set_aside() -> Operation {
    act(Tag::Deliveries, "setDeliveryAside", "Move what waits to the DLQ", "The next one of its queue becomes due.")
}

pub fn attempt_now() -> Operation {
    act(Tag::Deliveries, "attemptDeliveryNow", "Attempt what waits without waiting for its time", "")
}

pub fn edit() -> Operation {
    let details = "The body that was accepted stays as the original; of several deliveries of one event only this one is changed.";
    act(Tag::Deliveries, "editDelivery", "Give a delivery another body", details)
        .takes_such_as(Schema::closed(body_members()), json!({"body": {"total": 12.5}}))
}

pub fn forward() -> Operation {
    let body = Schema::closed([
        always("topic", shapes::topic_name()),
        optional("keep_header", Schema::flag().default_value(true).describe("With the note of why it failed.")),
    ]);
    act(Tag::Deliveries, "forwardDelivery", "Publish it on a topic instead", "It ends as FORWARDED.").takes(body)
}
