//! Of `services`. Their keys are those of `docs/settings.md`.

use postrider_core::connection::ConnectionKind;
use serde_json::json;

use super::connections::{body, ours};
use super::{CONFLICT, FULL, NOT_FOUND};
use crate::openapi::{self, Operation, Schema, Tag, always, optional, shapes};

const KIND: ConnectionKind = ConnectionKind::Service;

fn name() -> Schema {
    shapes::name().example("orders.order-intake")
}

fn configured() -> Schema {
    let first = [always("name", name())];
    let list = [
        optional("source", Schema::words(["configured"]).describe("In a list.")),
        optional("configured", Schema::flag().describe("In a list.")),
    ];
    Schema::object(first.into_iter().chain(openapi::connection(KIND)).chain(ours()).chain(list)).named("Service")
}

/// Of this process: nothing of it can be changed here.
fn local() -> Schema {
    Schema::object([
        always("name", name()),
        always("source", Schema::words(["hosted", "in_process"])),
        always("hooks", Schema::list(Schema::words(["queue-response"]))),
        always("configured", Schema::flag().describe("Whether one of the name is configured beside it.")),
    ])
    .named("LocalService")
}

fn example() -> serde_json::Value {
    json!({"name": "orders.order-intake", "address": "http://127.0.0.1:9900/services/orders.order-intake"})
}

pub fn list() -> Operation {
    Operation::new(Tag::Channels, "listServices", "All services")
        .details("Those that are configured in the project, and those that this process has: code, and what `--services` serves.")
        .pages()
        .lists("A page, by name.", Schema::either([configured(), local()]))
}

pub fn create() -> Operation {
    let new = body(KIND, [always("name", name())]).named("NewService");
    Operation::new(Tag::Channels, "createService", "Make a service known")
        .takes_such_as(new, example())
        .creates("The service.", configured())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    Operation::new(Tag::Channels, "getService", "A service")
        .gives("The service.", Schema::either([configured(), local()]))
        .refuses([NOT_FOUND])
}

fn changing(id: &'static str, summary: &'static str) -> Operation {
    let changed = body(KIND, [optional("name", name().describe("A new name; 409 while channels name the old one."))]);
    Operation::new(Tag::Channels, id, summary)
        .takes_such_as(changed.named("ServiceChange"), example())
        .gives("The service.", configured())
        .refuses([CONFLICT, FULL, NOT_FOUND])
}

pub fn replace() -> Operation {
    changing("replaceService", "Set all keys of a service anew").details("Keys that are left out have their defaults.")
}

pub fn merge() -> Operation {
    changing("changeService", "Change some keys of a service")
        .details("A merge patch (RFC 7396): what is given replaces, null removes, the rest stays.")
}

pub fn delete() -> Operation {
    Operation::new(Tag::Channels, "deleteService", "Forget a service")
        .details("409 while channels run it, unless forced; then their runs fail until there is one of its name again.")
        .query(
            "force",
            Schema::flag(),
            "Also while channels run it, and with messages that wait for it: those are discarded.",
        )
        .empties("It is gone.")
        .refuses([CONFLICT, NOT_FOUND])
}

pub fn pause() -> Operation {
    Operation::new(Tag::Channels, "pauseService", "Hold what subscriptions send to a service")
        .details("Channels go on running it; they have a pause of their own.")
        .gives("The service.", configured())
        .refuses([NOT_FOUND])
}

pub fn resume() -> Operation {
    Operation::new(Tag::Channels, "resumeService", "Let it go on")
        .gives("The service.", configured())
        .refuses([NOT_FOUND])
}
