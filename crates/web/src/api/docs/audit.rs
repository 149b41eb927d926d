//! Of `audit`.

use serde_json::json;

use super::super::audit::FILTER_CHARS_MAX;
use crate::openapi::{Operation, Schema, Tag, always, sometimes};

fn entry() -> Schema {
    let text = |example: &str| Schema::text().example(example);
    let state = || Schema::any().example(json!({"paused": false})).describe("Secrets are masked.");
    let actor = Schema::object([
        always("id", text("key_01k3v9q8h4m2n6p7r0s5t1w2x3")),
        always("name", text("CI").or_null()),
        sometimes("address", text("192.0.2.7").or_null()),
    ]);
    Schema::object([
        always("id", Schema::id("aud_")),
        always("at", Schema::time()),
        always("projectId", Schema::id("prj_").or_null()),
        always("actor", actor),
        always("action", text("connection.pause")),
        always("object", text("con_01k3v9q8h4m2n6p7r0s5t1w2x3").or_null()),
        always("objectName", text("Billing API").or_null()),
        always("before", state()),
        always("after", state()),
        always("times", Schema::count().describe("How often, where the like is counted together.")),
    ])
    .named("AuditEntry")
}

fn audit(id: &'static str, summary: &'static str) -> Operation {
    let word = |example: &str| Schema::text().length(0, FILTER_CHARS_MAX).example(example);
    Operation::new(Tag::Audit, id, summary)
        .query("actor", word("CI"), "Who, by id or name.")
        .query("action", word("connection"), "What; its beginning up to a dot is enough.")
        .query("object", word("Billing API"), "To what, by id or name.")
        .query("from", Schema::time(), "Not before this time.")
        .query("before", Schema::time(), "Before this time.")
        .pages()
        .lists("A page, newest first.", entry())
}

pub fn of_project() -> Operation {
    audit("listAudit", "The audit log of a project")
}

pub fn of_all() -> Operation {
    audit("listInstallationAudit", "The audit log of all projects and of the installation")
}
