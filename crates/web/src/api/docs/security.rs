//! Of `security`. The keys are those of `docs/settings.md`.

use postrider_core::security::SecurityKind;
use serde_json::json;

use super::super::security::OURS;
use super::{CONFLICT, FULL, NOT_FOUND};
use crate::openapi::{self, Member, Operation, Schema, Tag, always, optional, shapes};

fn of_each_kind(schema: fn(SecurityKind) -> Schema) -> Schema {
    Schema::either(SecurityKind::ALL.map(schema))
}

fn kind_word(kind: SecurityKind) -> Schema {
    Schema::words([kind.as_str()])
}

fn body(kind: SecurityKind, first: [Member; 2]) -> Schema {
    let version =
        Schema::whole(0, u32::MAX.into()).describe("The version that is changed: 409 when it is another by now.");
    let ignored =
        OURS.map(|name| optional(name, Schema::any().describe("Part of an answer; passed over in a request.")));
    let beside = [optional("version", version)].into_iter().chain(ignored);
    Schema::closed(first.into_iter().chain(openapi::security(kind, true)).chain(beside))
}

fn new_definition(kind: SecurityKind) -> Schema {
    body(kind, [always("name", shapes::name().example("Billing login")), always("type", kind_word(kind))]).named(
        match kind {
            SecurityKind::BasicAuth => "NewBasicAuth",
            SecurityKind::ApiKey => "NewApiKey",
            SecurityKind::Bearer => "NewBearer",
            SecurityKind::OAuth2 => "NewOAuth2",
            SecurityKind::Smart => "NewSmart",
            SecurityKind::Wss => "NewWss",
            SecurityKind::WebhookSignature => "NewWebhookSignature",
        },
    )
}

fn changed_definition(kind: SecurityKind) -> Schema {
    body(kind, [optional("name", shapes::name()), optional("type", kind_word(kind))]).named(match kind {
        SecurityKind::BasicAuth => "BasicAuthChange",
        SecurityKind::ApiKey => "ApiKeyChange",
        SecurityKind::Bearer => "BearerChange",
        SecurityKind::OAuth2 => "OAuth2Change",
        SecurityKind::Smart => "SmartChange",
        SecurityKind::Wss => "WssChange",
        SecurityKind::WebhookSignature => "WebhookSignatureChange",
    })
}

fn definition(kind: SecurityKind) -> Schema {
    let state = Schema::object([
        always("secret", Schema::words([kind.secret_key()]).describe("The key whose value is secret.")),
        always("is_set", Schema::flag().example(true)),
        always(
            "unreadable",
            Schema::text().or_null().example(json!(null)).describe("Why the secret cannot be opened."),
        ),
        always("usedBy", Schema::list(shapes::name())),
    ]);
    let first = [always("name", shapes::name().example("Billing login")), always("type", kind_word(kind))];
    let ours = [
        always("id", Schema::id("sec_")),
        always("version", Schema::count()),
        always("state", state),
        always("createdAt", Schema::time()),
        always("updatedAt", Schema::time()),
    ];
    Schema::object(first.into_iter().chain(openapi::security(kind, false)).chain(ours)).named(match kind {
        SecurityKind::BasicAuth => "BasicAuth",
        SecurityKind::ApiKey => "ApiKey",
        SecurityKind::Bearer => "Bearer",
        SecurityKind::OAuth2 => "OAuth2",
        SecurityKind::Smart => "Smart",
        SecurityKind::Wss => "Wss",
        SecurityKind::WebhookSignature => "WebhookSignature",
    })
}

fn example() -> serde_json::Value {
    json!({"name": "Billing login", "type": "basic_auth", "username": "postrider", "password": "correct horse"})
}

pub fn list() -> Operation {
    Operation::new(Tag::Security, "listSecurity", "All security definitions of a project")
        .pages()
        .lists("A page, by name.", of_each_kind(definition))
}

pub fn create() -> Operation {
    Operation::new(Tag::Security, "createSecurity", "Make a security definition")
        .details("A connection names it in its key `security`.")
        .takes_such_as(of_each_kind(new_definition), example())
        .creates("The definition, without its secret.", of_each_kind(definition))
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    Operation::new(Tag::Security, "getSecurity", "A security definition, without its secret")
        .gives("The definition.", of_each_kind(definition))
        .refuses([NOT_FOUND])
}

fn changing(id: &'static str, summary: &'static str, details: &'static str, example: serde_json::Value) -> Operation {
    Operation::new(Tag::Security, id, summary)
        .details(details)
        .takes_such_as(of_each_kind(changed_definition), example)
        .gives("The definition, without its secret.", of_each_kind(definition))
        .refuses([CONFLICT, FULL])
}

pub fn replace() -> Operation {
    let details = "A secret that is left out stays as it is.";
    changing("replaceSecurity", "Set all keys of a security definition anew", details, example())
}

pub fn change() -> Operation {
    let details = "A merge patch (RFC 7396): what is given replaces, null removes, the rest stays; the secret too.";
    changing("changeSecurity", "Change a security definition", details, json!({"password": "battery staple"}))
}

pub fn delete() -> Operation {
    Operation::new(Tag::Security, "deleteSecurity", "Delete a security definition")
        .details("409 while a connection uses it.")
        .empties("It is gone.")
        .refuses([CONFLICT])
}
