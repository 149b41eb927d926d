//! Of `destinations`.

use postrider_core::connection::ConnectionKind;
use postrider_core::settings::{PUSH_KEYS, keys_of};
use serde_json::json;

use super::super::camel;
use super::super::destinations::{OF_ENDPOINT, OURS};
use super::subscriptions::policy;
use super::{CONFLICT, FULL, kinds};
use crate::openapi::{self, Member, Operation, Schema, Tag, always, optional, shapes, sometimes};

fn settings() -> impl Iterator<Item = Member> {
    let own = PUSH_KEYS.iter().filter(|doc| doc.name != "event_type");
    own.map(|doc| optional(camel::shown(doc.name), openapi::of_key(doc)))
}

fn destination() -> Schema {
    let members = vec![
        always("id", Schema::id("dst_")),
        always("sourceId", Schema::id("src_")),
        always("name", shapes::name()),
        always("subscriptionId", Schema::id("sub_")),
        always("endpointId", Schema::id("ep_").or_null()),
        always("connection", shapes::name().or_null()),
        always("type", kinds().or_null()),
        always("url", Schema::text().or_null().example("https://ci.example.org/hooks")),
        always("enabled", Schema::flag().example(true)),
        always("eventType", shapes::topic_name()),
        always("connectionId", shapes::connection_id()),
        always("policy", policy()),
        always("warnings", Schema::list(Schema::text()).example(json!([]))),
        always("version", Schema::count()),
        always("createdAt", Schema::time()),
        always("updatedAt", Schema::time()),
    ];
    let settings = PUSH_KEYS.iter().filter(|doc| !["enabled", "event_type"].contains(&doc.name));
    let settings = settings.map(|doc| sometimes(camel::shown(doc.name), openapi::of_key(doc)));
    Schema::object(members.into_iter().chain(settings)).named("Destination")
}

pub fn list() -> Operation {
    Operation::new(Tag::Incoming, "listDestinations", "All destinations of a project")
        .query("sourceId", Schema::id("src_"), "Those of one source.")
        .pages()
        .lists("A page, the oldest first.", destination())
}

pub fn create() -> Operation {
    let url = Schema::text().example("https://ci.example.org/hooks");
    let first = [
        always("sourceId", Schema::id("src_")),
        optional("name", shapes::name()),
        optional(
            "url",
            url.describe(
                "An endpoint of its own is made: on the ladder `forward`, unsigned, with the headers that came.",
            ),
        ),
        optional("endpointId", Schema::id("ep_").describe("Instead: an endpoint that is there.")),
        optional("connection", shapes::name().describe("Instead: any connection, by its name.")),
        optional("type", kinds().describe("The connection's, where its name alone is ambiguous.")),
    ];
    let of_endpoint = OF_ENDPOINT.map(|name| {
        let doc = keys_of(ConnectionKind::Webhook).find(|doc| camel::shown(doc.name) == name);
        optional(name, doc.map_or_else(Schema::any, openapi::of_key))
    });
    let body = Schema::closed(first.into_iter().chain(of_endpoint).chain(settings())).named("NewDestination");
    let example = json!({"sourceId": Schema::id("src_").sample(), "url": "https://ci.example.org/hooks"});
    Operation::new(Tag::Incoming, "createDestination", "Forward a source's webhooks to an address or a connection")
        .details("It gets what comes in from now on; `replay` forwards what came before.")
        .takes_such_as(body, example)
        .creates("The destination.", destination())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    Operation::new(Tag::Incoming, "getDestination", "A destination").gives("The destination.", destination())
}

pub fn change() -> Operation {
    let version =
        Schema::whole(0, u32::MAX.into()).describe("The version that is changed: 409 when it is another by now.");
    let ignored =
        OURS.map(|name| optional(name, Schema::any().describe("Part of an answer; passed over in a request.")));
    let first = [optional("name", shapes::name()), optional("version", version)];
    let body = Schema::closed(first.into_iter().chain(settings()).chain(ignored)).named("DestinationChange");
    Operation::new(Tag::Incoming, "changeDestination", "Change some settings of a destination")
        .details("A merge patch (RFC 7396). Forwards that are there already keep their ladder. Its address is changed at its endpoint.")
        .takes_such_as(body, json!({"enabled": false}))
        .gives("The destination.", destination())
        .refuses([CONFLICT])
}

pub fn delete() -> Operation {
    Operation::new(Tag::Incoming, "deleteDestination", "Forward nothing there any more")
        .details("Forwards that are there already go on. Its endpoint stays, and is deleted at `/endpoints`.")
        .empties("It is gone.")
        .refuses([CONFLICT])
}
