//! Of `keys`, for a project and for the installation.

use postrider_core::access::Scope;
use serde_json::json;

use super::super::keys::{OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX};
use super::{CONFLICT, FULL, NOT_FOUND};
use crate::openapi::{Member, Operation, Schema, Tag, always, optional, shapes};

fn scopes() -> Schema {
    let scopes = Schema::list(Schema::words(Scope::ALL.map(Scope::as_str)));
    scopes.example(json!(["send"])).describe("`operate` includes `read`, `admin` includes all.")
}

fn members() -> Vec<Member> {
    vec![
        always("id", Schema::id("key_")),
        always("name", Schema::text().example("CI")),
        always("scopes", scopes()),
        always("hint", Schema::text().example("prk_1a2b…").describe("How the key begins.")),
        always("createdAt", Schema::time()),
        always("rotatedAt", shapes::time_or_null()),
        always("expiresAt", shapes::time_or_null()),
        always("lastUsedAt", shapes::time_or_null().describe("Exact to some minutes.")),
        always("formerWorksUntil", shapes::time_or_null().describe("After a rotation, the end of its overlap.")),
    ]
}

fn key() -> Schema {
    Schema::object(members()).named("Key")
}

fn shown_key() -> Schema {
    let mut members = members();
    members.push(always(
        "key",
        Schema::text()
            .or_null()
            .example("prk_…")
            .describe("The key itself, this once; null in the answer to a repeat."),
    ));
    Schema::object(members).named("NewKey")
}

fn listing(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(Tag::Keys, id, summary).lists("All of them, on one page.", key())
}

fn creating(id: &'static str, summary: &'static str) -> Operation {
    let expiry = Schema::time().describe("It works until then; without it, until it is revoked.");
    let body = Schema::closed([
        always("name", shapes::name().example("CI")),
        always("scopes", scopes().length(1, Scope::ALL.len())),
        optional("expiresAt", expiry),
    ]);
    Operation::new(Tag::Keys, id, summary)
        .details("The key is in the answer, and nowhere afterwards: only its hash is kept.")
        .takes_such_as(body, json!({"name": "CI", "scopes": ["send"]}))
        .creates("The key.", shown_key())
        .refuses([CONFLICT, FULL])
}

fn showing(id: &'static str) -> Operation {
    Operation::new(Tag::Keys, id, "A key, without itself").gives("What is known about it.", key()).refuses([NOT_FOUND])
}

fn revoking(id: &'static str) -> Operation {
    Operation::new(Tag::Keys, id, "End a key").empties("It does not work any more.").refuses([NOT_FOUND, CONFLICT])
}

fn rotating(id: &'static str) -> Operation {
    let overlap = Schema::whole(0, OVERLAP_SECONDS_MAX)
        .default_value(OVERLAP_SECONDS_DEFAULT)
        .describe("How long the former key works on, in seconds.");
    Operation::new(Tag::Keys, id, "Replace a key by a new one")
        .details("Rotating again during the overlap ends the oldest at once.")
        .may_take(Schema::closed([optional("overlap_seconds", overlap)]))
        .gives("The new key.", shown_key())
        .refuses([NOT_FOUND, CONFLICT])
}

pub fn list() -> Operation {
    listing("listKeys", "The keys of a project")
}

pub fn create() -> Operation {
    creating("createKey", "Make a key of a project")
}

pub fn one() -> Operation {
    showing("getKey")
}

pub fn revoke() -> Operation {
    revoking("revokeKey")
}

pub fn rotate() -> Operation {
    rotating("rotateKey")
}

pub fn list_of_installation() -> Operation {
    listing("listInstallationKeys", "The keys of the installation")
}

pub fn create_of_installation() -> Operation {
    creating("createInstallationKey", "Make a key of the installation, which holds in every project")
}

pub fn one_of_installation() -> Operation {
    showing("getInstallationKey")
}

pub fn revoke_of_installation() -> Operation {
    revoking("revokeInstallationKey")
}

pub fn rotate_of_installation() -> Operation {
    rotating("rotateInstallationKey")
}
