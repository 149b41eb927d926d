//! Of `subscriptions`. The settings are those of `webhook_subscription`, under the names of this API.

use postrider_core::settings::PUSH_KEYS;
use serde_json::json;

use super::super::camel;
use super::super::subscriptions::OURS;
use super::{CONFLICT, FULL, kinds};
use crate::openapi::{self, Member, Operation, Schema, Tag, always, optional, shapes, sometimes};

fn settings() -> Vec<Member> {
    PUSH_KEYS.iter().map(|doc| optional(camel::shown(doc.name), openapi::of_key(doc))).collect()
}

fn target() -> [Member; 4] {
    [
        optional("name", shapes::name().describe("Its id where it is left out.")),
        optional("endpointId", Schema::id("ep_")),
        optional("connection", shapes::name().describe("Instead of an endpoint: any connection, by its name.")),
        optional("type", kinds().describe("The connection's, where its name alone is ambiguous.")),
    ]
}

fn changes() -> Schema {
    let version =
        Schema::whole(0, u32::MAX.into()).describe("The version that is changed: 409 when it is another by now.");
    let ignored =
        OURS.map(|name| optional(name, Schema::any().describe("Part of an answer; passed over in a request.")));
    let all = target().into_iter().chain([optional("version", version)]).chain(settings()).chain(ignored);
    Schema::closed(all).named("PushSubscriptionChange")
}

pub(super) fn policy() -> Schema {
    Schema::object([
        always("maxAttempts", Schema::count().or_null()),
        always("retryDelays", Schema::list(Schema::number()).or_null().example(json!([60, 300]))),
        always("retryableStatuses", Schema::text().or_null().example("408,429,500-599")),
        always("timeoutSeconds", Schema::number().or_null().example(30)),
    ])
    .describe("What a delivery gets.")
}

fn subscription() -> Schema {
    let members = vec![
        always("id", Schema::id("sub_")),
        always("name", shapes::name()),
        always("endpointId", Schema::id("ep_").or_null()),
        always("connection", shapes::name().or_null()),
        always("type", kinds().or_null()),
        always("enabled", Schema::flag().example(true)),
        always("connectionId", shapes::connection_id()),
        always(
            "orderingEnabled",
            Schema::flag()
                .describe("Whether its deliveries go strictly one after another, by its own wish or its endpoint's."),
        ),
        always("policy", policy()),
        always("warnings", Schema::list(Schema::text()).example(json!([]))),
        always("version", Schema::count()),
        always("createdAt", Schema::time()),
        always("updatedAt", Schema::time()),
    ];
    let settings = PUSH_KEYS.iter().filter(|doc| !["enabled", "ordering_enabled"].contains(&doc.name));
    let settings = settings.map(|doc| sometimes(camel::shown(doc.name), openapi::of_key(doc)));
    Schema::object(members.into_iter().chain(settings)).named("PushSubscription")
}

pub fn list() -> Operation {
    Operation::new(Tag::Webhooks, "listPushSubscriptions", "All subscriptions that push")
        .query("endpointId", Schema::id("ep_"), "Those of one endpoint.")
        .pages()
        .lists("A page, the oldest first.", subscription())
}

pub fn create() -> Operation {
    let body = Schema::closed(target().into_iter().chain(settings())).named("NewPushSubscription");
    Operation::new(Tag::Webhooks, "createPushSubscription", "Subscribe an endpoint, or any connection, to events")
        .details(
            "It gets what is published from now on. Two subscriptions of one endpoint that match make two deliveries.",
        )
        .takes_such_as(body, json!({"endpointId": Schema::id("ep_").sample(), "eventType": "invoice.*"}))
        .creates("The subscription.", subscription())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    Operation::new(Tag::Webhooks, "getPushSubscription", "A subscription that pushes")
        .gives("The subscription.", subscription())
}

pub fn replace() -> Operation {
    Operation::new(Tag::Webhooks, "replacePushSubscription", "Set all settings of a subscription anew")
        .details("Deliveries that are there already keep their ladder and headers.")
        .takes_such_as(changes(), json!({"eventType": "invoice.**"}))
        .gives("The subscription.", subscription())
        .refuses([CONFLICT])
}

pub fn change() -> Operation {
    Operation::new(Tag::Webhooks, "changePushSubscription", "Change some settings of a subscription")
        .details("A merge patch (RFC 7396): what is given replaces, null removes.")
        .takes_such_as(changes(), json!({"enabled": false}))
        .gives("The subscription.", subscription())
        .refuses([CONFLICT])
}

pub fn delete() -> Operation {
    Operation::new(Tag::Webhooks, "deletePushSubscription", "End a subscription")
        .details("Deliveries that are there already go on.")
        .empties("It is gone.")
        .refuses([CONFLICT])
}
