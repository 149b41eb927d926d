//! Of `sources`. The settings are those of `webhook_source`, under the names of this API.

use http::StatusCode;
use postrider_core::settings::SOURCE_KEYS;
use serde_json::json;

use super::super::camel;
use super::super::endpoints::{OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX};
use super::super::sources::{OURS, REPLAY_DEFAULT, REPLAY_MAX, SECRET_BYTES_MAX};
use super::{CONFLICT, FULL};
use crate::openapi::{self, Member, Operation, Schema, Tag, always, optional, shapes, sometimes};

fn settings() -> Vec<Member> {
    SOURCE_KEYS.iter().map(|doc| optional(camel::shown(doc.name), openapi::of_key(doc))).collect()
}

fn secret() -> Member {
    let secret = Schema::text().length(1, SECRET_BYTES_MAX);
    optional(
        "secret",
        secret.describe("The secret that the provider shows; made where it is left out and the provider takes one."),
    )
}

fn overlap(meaning: &'static str) -> Member {
    let overlap = Schema::whole(0, OVERLAP_SECONDS_MAX).default_value(OVERLAP_SECONDS_DEFAULT);
    optional("overlapSeconds", overlap.describe(meaning))
}

fn changes() -> Schema {
    let version =
        Schema::whole(0, u32::MAX.into()).describe("The version that is changed: 409 when it is another by now.");
    let ignored =
        OURS.map(|name| optional(name, Schema::any().describe("Part of an answer; passed over in a request.")));
    let first = [optional("name", shapes::name()), optional("version", version)];
    Schema::closed(first.into_iter().chain(settings()).chain(ignored)).named("SourceChange")
}

fn figures() -> Schema {
    let rejection = Schema::object([
        always("at", Schema::time()),
        always("reason", Schema::text().example("signature_wrong")),
        always("detail", Schema::text().example("the signature does not fit")),
        always("address", Schema::text().or_null().example("203.0.113.7")),
    ]);
    Schema::object([
        always("accepted", Schema::count()),
        always("duplicates", Schema::count()),
        always("handshakes", Schema::count()),
        always("rejected", Schema::map(Schema::count()).example(json!({"signature_wrong": 2}))),
        always("lastAcceptedAt", shapes::time_or_null()),
        always("lastRejections", Schema::list(rejection).example(json!([]))),
    ])
    .describe("Of this server, since it started. Of what was not let in, nothing else is kept.")
}

fn members() -> Vec<Member> {
    let fixed = vec![
        always("id", Schema::id("src_")),
        always("name", shapes::name()),
        always("provider", Schema::words(postrider_core::source::Provider::WORDS.iter().copied())),
        always("topic", shapes::topic_name()),
        always("enabled", Schema::flag().example(true)),
        always("secretConfigured", Schema::flag().example(true)),
        always("secretUnreadable", Schema::text().or_null().example(json!(null))),
        always("formerTokenOpensUntil", shapes::time_or_null()),
        always("formerSecretVerifiesUntil", shapes::time_or_null()),
        always("figures", figures()),
        always("destinations", Schema::count()),
        always("version", Schema::count()),
        always("createdAt", Schema::time()),
        always("updatedAt", Schema::time()),
    ];
    let settings = SOURCE_KEYS.iter().filter(|doc| !["provider", "topic", "enabled"].contains(&doc.name));
    let settings = settings.map(|doc| sometimes(camel::shown(doc.name), openapi::of_key(doc)));
    fixed.into_iter().chain(settings).collect()
}

fn source() -> Schema {
    Schema::object(members()).named("Source")
}

fn with_credentials() -> Schema {
    let once = |name: &'static str, example: &str| {
        sometimes(name, Schema::text().or_null().example(example).describe("Shown this once."))
    };
    let credentials = [
        once("token", "in_Zm9yIHRoZSBkb2N1bWVudGF0aW9uIG9ubHkuLi4uLi4"),
        once("ingressPath", "/ingress/in_Zm9yIHRoZSBkb2N1bWVudGF0aW9uIG9ubHkuLi4uLi4"),
        once("ingressUrl", "https://hooks.example.org/ingress/in_Zm9yIHRoZSBkb2N1bWVudGF0aW9uIG9ubHkuLi4uLi4"),
        once("secret", "6d4f0a…"),
    ];
    Schema::object(members().into_iter().chain(credentials)).named("SourceWithCredentials")
}

pub fn list() -> Operation {
    Operation::new(Tag::Incoming, "listSources", "All sources of a project")
        .pages()
        .lists("A page, the oldest first.", source())
}

pub fn create() -> Operation {
    let first = [always("name", shapes::name()), secret()];
    let body = Schema::closed(first.into_iter().chain(settings())).named("NewSource");
    Operation::new(Tag::Incoming, "createSource", "Make a source: an address at which a provider's webhooks come in")
        .details("The address and a secret that was made are in this answer and in no other.")
        .takes_such_as(body, json!({"name": "GitHub", "provider": "github"}))
        .creates("The source with its address.", with_credentials())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    Operation::new(Tag::Incoming, "getSource", "A source").gives("The source.", source())
}

pub fn replace() -> Operation {
    Operation::new(Tag::Incoming, "replaceSource", "Set all settings of a source anew")
        .details("Provider, topic, address and secret stay.")
        .takes_such_as(changes(), json!({"description": "Pushes of the main repository"}))
        .gives("The source.", source())
        .refuses([CONFLICT])
}

pub fn change() -> Operation {
    Operation::new(Tag::Incoming, "changeSource", "Change some settings of a source")
        .details("A merge patch (RFC 7396): what is given replaces, null removes.")
        .takes_such_as(changes(), json!({"enabled": false}))
        .gives("The source.", source())
        .refuses([CONFLICT])
}

pub fn delete() -> Operation {
    Operation::new(Tag::Incoming, "deleteSource", "Delete a source")
        .details("Whoever still sends to it is answered 404. What came in stays, and so do its destinations, as subscriptions to its topic.")
        .empties("It is gone.")
        .refuses([CONFLICT])
}

pub fn rotate_token() -> Operation {
    Operation::new(Tag::Incoming, "rotateSourceToken", "Give a source a new address")
        .may_take(Schema::closed([overlap("For so long the former address goes on.")]))
        .gives("The source with its new address.", with_credentials())
        .refuses([CONFLICT])
}

pub fn rotate_secret() -> Operation {
    Operation::new(Tag::Incoming, "rotateSourceSecret", "Give a source another secret")
        .may_take(Schema::closed([secret(), overlap("For so long the former secret verifies too.")]))
        .gives("The source, and the secret when it was made here.", with_credentials())
        .refuses([CONFLICT])
}

pub fn replay() -> Operation {
    let ids = Schema::list(Schema::id("evt_")).length(0, usize::try_from(REPLAY_MAX).unwrap_or(usize::MAX));
    let limit = Schema::whole(1, REPLAY_MAX).default_value(REPLAY_DEFAULT);
    let body = Schema::closed([
        optional("eventIds", ids),
        optional("from", Schema::time()),
        optional("before", Schema::time()),
        optional("limit", limit.describe("Webhooks of one request.")),
        optional("cursor", Schema::text().describe("What the former answer gave: go on behind it.").example("e.17")),
        optional("destinationId", Schema::id("dst_").describe("To this one alone, and not to all that are on.")),
        optional("dry_run", Schema::flag()),
    ]);
    let answer = Schema::object([
        always("events", Schema::count()),
        always("forwards", Schema::count()),
        always("next_cursor", Schema::text().or_null().example(json!(null))),
    ]);
    Operation::new(Tag::Incoming, "replayIncoming", "Forward again what came in, by ids or by time")
        .details("Each webhook goes out as new forwards, from attempt 1. A range is gone through from its end, so many at a time.")
        .takes_such_as(body, json!({"from": "2026-03-12T00:00:00Z", "dry_run": true}))
        .gives("How many.", answer)
        .refuses([CONFLICT, FULL, StatusCode::NOT_FOUND])
}
