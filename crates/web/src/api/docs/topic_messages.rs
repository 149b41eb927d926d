//! Of `topic_messages`.

use serde_json::json;

use super::super::topic_messages::{MESSAGES_DEFAULT, MESSAGES_MAX};
use super::send::{body_members, pairs};
use super::{CONFLICT, FULL, takes_only_cid};
use crate::openapi::{Member, Operation, Schema, Tag, always, optional, rarely, shapes, sometimes};

fn members() -> Vec<Member> {
    vec![
        always("id", Schema::id("evt_")),
        always("cid", shapes::cid()),
        always("headers", shapes::headers()),
        sometimes("body", Schema::text().example("{\"sample\": 17}")),
        rarely("body_base64", Schema::text().example("AP8=").describe("Instead, where the body is no text.")),
        always("publishedAt", Schema::time()),
    ]
}

pub fn publish() -> Operation {
    let headers = pairs(json!({"X-Lab": "north"}));
    let body = Schema::closed([optional("headers", headers)].into_iter().chain(body_members()));
    let answer = Schema::object([always("msg_id", Schema::id("evt_")), always("topic", shapes::topic_name())]);
    takes_only_cid(Operation::new(Tag::Topics, "publishToTopic", "Publish a message on a topic"))
        .details("It is stored when it is answered.")
        .may_take_such_as(body, json!({"body": {"sample": 17}}))
        .creates("It is stored.", answer)
        .refuses([CONFLICT, FULL])
}

pub fn list() -> Operation {
    Operation::new(Tag::Topics, "listMessages", "The messages of a topic, newest first")
        .details("That bodies were seen stands in the audit log.")
        .pages()
        .lists("A page.", Schema::object(members()).named("Message"))
}

pub fn pull() -> Operation {
    let most = Schema::whole(1, MESSAGES_MAX).default_value(MESSAGES_DEFAULT).describe("Messages, at most.");
    let mut members = members();
    members.push(always("timesGiven", Schema::count()));
    Operation::new(Tag::Topics, "pullMessages", "Take messages of a subscription")
        .details("Each is given out again later unless it is acknowledged.")
        .may_take(Schema::closed([optional("max", most)]))
        .lists("The messages, the oldest first.", Schema::object(members).named("PulledMessage"))
        .refuses([CONFLICT, FULL])
}

pub fn acknowledge() -> Operation {
    let ids = Schema::list(Schema::id("evt_")).length(0, MESSAGES_MAX as usize);
    let answer = Schema::object([always("acknowledged", Schema::count()), always("requested", Schema::count())]);
    Operation::new(Tag::Topics, "acknowledgeMessages", "Say that messages have been dealt with")
        .takes(Schema::closed([always("ids", ids)]))
        .gives("How many of them were given out to this subscription.", answer)
        .refuses([CONFLICT, FULL])
}
