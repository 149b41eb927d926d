//! Of `alerts`.

use postrider_core::alert::AlertKind;
use serde_json::json;

use super::super::alerts::STATES;
use crate::openapi::{Operation, Schema, Tag, always, shapes};

fn alert() -> Schema {
    Schema::object([
        always("id", Schema::id("alr_")),
        always("kind", Schema::words(AlertKind::ALL.map(AlertKind::as_str))),
        always("state", Schema::words(STATES)),
        always("connection", shapes::name().or_null().describe("null for the installation, and for one that is gone.")),
        always("connectionId", Schema::id("con_").or_null()),
        always("value", Schema::count().example(61).describe("When it was raised.")),
        always("threshold", Schema::count().example(60)),
        always("detail", Schema::text().example("the oldest request has waited for 61 minutes (60 are too many)")),
        always("action", Schema::text().example("see whether the remote system answers")),
        always("raisedAt", Schema::time()),
        always("recoveredAt", shapes::time_or_null().example(json!(null))),
    ])
    .named("Alert")
}

fn listed(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(Tag::Server, id, summary)
        .query("state", Schema::words(STATES), "Only those that are open, or only those that have recovered.")
        .pages()
        .lists("A page, newest first.", alert())
}

pub fn of_project() -> Operation {
    listed("listAlerts", "What is wrong with a project's queues, and what was")
}

pub fn of_installation() -> Operation {
    listed("listInstallationAlerts", "What is wrong with the server, and what was")
}
