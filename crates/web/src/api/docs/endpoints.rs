//! Of `endpoints`. The settings are those of `webhook_endpoint`, under the names of this API.

use postrider_core::connection::ConnectionKind;
use postrider_core::endpoint::Verification;
use postrider_core::health::SwitchOffReason;
use postrider_core::settings::keys_of;
use serde_json::json;

use super::super::camel;
use super::super::endpoints::{OURS, OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX, SCHEMES, SECRET_BYTES_MAX};
use super::{CONFLICT, FULL};
use crate::openapi::{self, Member, Operation, Schema, Tag, always, optional, shapes, sometimes};

fn settings() -> Vec<Member> {
    keys_of(ConnectionKind::Webhook).map(|doc| optional(camel::shown(doc.name), openapi::of_key(doc))).collect()
}

fn scheme() -> Schema {
    Schema::words(SCHEMES).describe("`symmetric`: HMAC-SHA256 (`v1`); `asymmetric`: Ed25519 (`v1a`).")
}

fn key_members() -> [Member; 2] {
    let secret = Schema::text().length(1, SECRET_BYTES_MAX).example("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    [
        optional("secret", secret.describe("A secret of your own; one is made where it is left out.")),
        optional("signatureScheme", scheme()),
    ]
}

fn verify() -> Schema {
    let meaning = "It has to answer a challenge (`verify`) before it is sent anything.";
    Schema::flag().describe(meaning).default_value(false).example(true)
}

fn changes() -> Schema {
    let version =
        Schema::whole(0, u32::MAX.into()).describe("The version that is changed: 409 when it is another by now.");
    let ignored =
        OURS.map(|name| optional(name, Schema::any().describe("Part of an answer; passed over in a request.")));
    let first = [optional("name", shapes::name()), optional("version", version), optional("verify", verify())];
    Schema::closed(first.into_iter().chain(settings()).chain(ignored)).named("EndpointChange")
}

fn policy() -> Schema {
    Schema::object([
        always("maxAttempts", Schema::count().or_null()),
        always("retryDelays", Schema::list(Schema::number()).or_null().example(json!([60, 300]))),
        always("retryableStatuses", Schema::text().example("408,429,500-599")),
        always("timeoutSeconds", Schema::number().example(30)),
        always("ordered", Schema::flag()),
        always("concurrency", Schema::count().example(5)),
        always("ageCapSeconds", Schema::number().or_null().example(345_600)),
    ])
    .describe("What is in force.")
}

pub(super) fn off() -> Schema {
    Schema::object([
        always("reason", Schema::words(SwitchOffReason::ALL.map(SwitchOffReason::as_str))),
        always("at", Schema::time()),
    ])
}

pub(super) fn test_outcome() -> Schema {
    Schema::object([always("at", Schema::time()), always("succeeded", Schema::flag())])
}

fn members() -> Vec<Member> {
    let health = Schema::object([
        always("failingSince", shapes::time_or_null()),
        always("failedInARow", Schema::count().describe("Different deliveries, since the last success.")),
        always("lastTest", test_outcome().or_null().example(json!(null))),
    ]);
    let state = Schema::object([
        always("paused", Schema::flag()),
        always("waiting", Schema::count()),
        always("dead", Schema::count()),
        always("oldestWaitingSince", shapes::time_or_null()),
    ]);
    let why = Schema::text().or_null().example(json!(null)).describe("Why the secret cannot be read: rotate it.");
    vec![
        always("id", Schema::id("ep_")),
        always("name", shapes::name()),
        always("url", Schema::text().example("https://hooks.example.org/in")),
        always("enabled", Schema::flag().example(true)),
        always("connectionId", shapes::connection_id()),
        always("signatureScheme", scheme().or_null()),
        always(
            "publicKey",
            Schema::text().or_null().example(json!(null)).describe("Of the asymmetric scheme: `whpk_…`."),
        ),
        always("formerSecretSignsUntil", shapes::time_or_null()),
        always("secretUnreadable", why),
        always("verification", Schema::words(Verification::ALL.map(Verification::as_str))),
        always(
            "switchedOff",
            off().or_null().example(json!(null)).describe("When the server switched it off, and why."),
        ),
        always("health", health),
        always("policy", policy()),
        always("state", state),
        always("warnings", Schema::list(Schema::text()).example(json!([]))),
        always("version", Schema::count()),
        always("createdAt", Schema::time()),
        always("updatedAt", Schema::time()),
    ]
}

pub(super) fn endpoint() -> Schema {
    let known = ["url", "enabled"];
    let settings = keys_of(ConnectionKind::Webhook).filter(|doc| !known.contains(&doc.name));
    let settings = settings.map(|doc| sometimes(camel::shown(doc.name), openapi::of_key(doc)));
    Schema::object(members().into_iter().chain(settings)).named("Endpoint")
}

fn with_secret() -> Schema {
    let secret = Schema::text().example("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    Schema::object(members().into_iter().chain([always(
        "secret",
        secret.or_null().describe("Shown this once; null for who repeats the request under its idempotency key."),
    )]))
    .named("EndpointWithSecret")
}

pub fn list() -> Operation {
    Operation::new(Tag::Webhooks, "listEndpoints", "All webhook endpoints of a project")
        .pages()
        .sorts()
        .lists("A page, the oldest first.", endpoint())
}

pub fn create() -> Operation {
    let first =
        [optional("name", shapes::name().describe("Its id where it is left out.")), optional("verify", verify())];
    let body = Schema::closed(first.into_iter().chain(key_members()).chain(settings())).named("NewEndpoint");
    Operation::new(Tag::Webhooks, "createEndpoint", "Make a webhook endpoint")
        .details("Its address is judged here and again at each connect. The secret is in this answer and in no other.")
        .takes_such_as(body, json!({"url": "https://hooks.example.org/in"}))
        .creates("The endpoint with its secret.", with_secret())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    Operation::new(Tag::Webhooks, "getEndpoint", "A webhook endpoint").gives("The endpoint.", endpoint())
}

pub fn replace() -> Operation {
    Operation::new(Tag::Webhooks, "replaceEndpoint", "Set all settings of an endpoint anew")
        .takes_such_as(changes(), json!({"url": "https://hooks.example.org/in"}))
        .gives("The endpoint.", endpoint())
        .refuses([CONFLICT])
}

pub fn change() -> Operation {
    Operation::new(Tag::Webhooks, "changeEndpoint", "Change some settings of an endpoint")
        .details("A merge patch (RFC 7396): what is given replaces, null removes.")
        .takes_such_as(changes(), json!({"enabled": false}))
        .gives("The endpoint.", endpoint())
        .refuses([CONFLICT])
}

pub fn delete() -> Operation {
    Operation::new(Tag::Webhooks, "deleteEndpoint", "Delete an endpoint and its subscriptions")
        .query("force", Schema::flag(), "Also with deliveries that wait or are dead letters; they end as DISCARDED.")
        .empties("It is gone.")
        .refuses([CONFLICT])
}

pub fn rotate_secret() -> Operation {
    let overlap = Schema::whole(0, OVERLAP_SECONDS_MAX).default_value(OVERLAP_SECONDS_DEFAULT);
    let overlap = overlap.describe("For so long the former secret signs too.");
    let body = Schema::closed(key_members().into_iter().chain([optional("overlapSeconds", overlap)]));
    Operation::new(Tag::Webhooks, "rotateEndpointSecret", "Give an endpoint a new secret")
        .may_take(body)
        .gives("The endpoint with its new secret.", with_secret())
        .refuses([CONFLICT])
}
