//! Of `topics`.

use postrider_core::settings::objects::{
    DESCRIPTION_CHARS_MAX, REDELIVER_S, REDELIVER_S_MAX, RETENTION_S, RETENTION_S_MAX, RETENTION_S_MIN,
};

use super::{CONFLICT, FULL};
use crate::openapi::{Operation, Schema, Tag, always, optional, shapes};

fn retention() -> Schema {
    Schema::whole(RETENTION_S_MIN.into(), RETENTION_S_MAX.into()).default_value(RETENTION_S)
}

fn redelivery() -> Schema {
    Schema::whole(1, REDELIVER_S_MAX.into()).default_value(REDELIVER_S)
}

fn topic() -> Schema {
    Schema::object([
        always("id", Schema::id("top_")),
        always("name", shapes::topic_name()),
        always("description", Schema::text().example("What the laboratory could not take")),
        always("retention_seconds", retention()),
        always("createdAt", Schema::time()),
    ])
    .named("Topic")
}

fn subscription() -> Schema {
    Schema::object([
        always("id", Schema::id("sub_")),
        always("name", shapes::name().example("audit")),
        always("topic", shapes::topic_name()),
        always("redeliver_after_seconds", redelivery()),
        always("createdAt", Schema::time()),
    ])
    .named("Subscription")
}

pub fn list() -> Operation {
    Operation::new(Tag::Topics, "listTopics", "All topics of a project").pages().lists("A page, by name.", topic())
}

pub fn create() -> Operation {
    let body = Schema::closed([
        always("name", shapes::topic_name()),
        optional("description", Schema::text().length(0, DESCRIPTION_CHARS_MAX).example("For people")),
        optional("retention_seconds", retention().describe("How long messages are kept.")),
    ]);
    Operation::new(Tag::Topics, "createTopic", "Make a topic")
        .takes(body)
        .creates("The topic.", topic())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    Operation::new(Tag::Topics, "getTopic", "A topic").gives("The topic.", topic())
}

pub fn delete() -> Operation {
    Operation::new(Tag::Topics, "deleteTopic", "Delete a topic, its subscriptions and its messages")
        .empties("It is gone.")
        .refuses([CONFLICT])
}

pub fn subscriptions() -> Operation {
    Operation::new(Tag::Topics, "listSubscriptions", "The subscriptions of a topic")
        .lists("All of them, on one page.", subscription())
}

pub fn subscribe() -> Operation {
    let again = redelivery().describe("An unacknowledged message is given out again after so many seconds.");
    let body =
        Schema::closed([always("name", shapes::name().example("audit")), optional("redeliver_after_seconds", again)]);
    Operation::new(Tag::Topics, "createSubscription", "Subscribe to a topic")
        .details("It is given what is published from now on.")
        .takes(body)
        .creates("The subscription.", subscription())
        .refuses([CONFLICT, FULL])
}

pub fn unsubscribe() -> Operation {
    Operation::new(Tag::Topics, "deleteSubscription", "End a subscription").empties("It is gone.").refuses([CONFLICT])
}
