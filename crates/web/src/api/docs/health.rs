//! Of `health`.

use http::StatusCode;

use crate::openapi::{Operation, Schema, Tag, always, rarely};

fn standing() -> Schema {
    let status = || Schema::words(["ok", "failing"]);
    let check = Schema::object([
        always("name", Schema::text().example("store")),
        always("status", status()),
        always("since", Schema::time()),
        rarely("detail", Schema::text().example("the store cannot take writes").describe("What fails.")),
        rarely("action", Schema::text().example("free some disk room").describe("What to do about it.")),
    ]);
    let restored = Schema::object([
        always("at", Schema::time()),
        always("paused", Schema::whole(0, u64::from(u32::MAX)).describe("Connections that the restore paused.")),
        always("detail", Schema::text()),
        always("action", Schema::text()),
    ]);
    let restored = restored.describe("Only after a restore, until its queues go on.");
    Schema::object([always("status", status()), always("checks", Schema::list(check)), rarely("restored", restored)])
        .named("Standing")
}

fn health(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(Tag::Server, id, summary)
        .gives("Yes.", standing())
        .answers(StatusCode::SERVICE_UNAVAILABLE, "No; `checks` says why.", standing())
        .takes_anything()
}

pub fn live() -> Operation {
    health("isLive", "Whether the process is worth keeping")
}

pub fn ready() -> Operation {
    health("isReady", "Whether requests should be sent here")
}
