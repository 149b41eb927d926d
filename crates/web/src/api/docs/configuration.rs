//! Of `configuration`.

use http::StatusCode;
use serde_json::json;

use super::super::configuration::VARIABLES_MAX;
use super::{CONFLICT, FULL, NOT_FOUND};
use crate::openapi::{Member, Operation, Schema, Tag, always, optional, shapes, sometimes};

const FILE: &str = "outgoing_rest:\n  - name: Billing API\n    host: https://billing.example.org\n    url_path: /invoices\n    use_queue: true\n";

fn difference(name: &'static str, with_keys: bool) -> Member {
    let key = Schema::object([
        always("key", Schema::text().example("max_retries")),
        always("old", Schema::any().describe("null: not set, the default holds. Secrets are `***`.")),
        always("new", Schema::any().example(4)),
        always("default", Schema::text().or_null().example("0")),
    ]);
    let mut members = vec![
        always("section", Schema::text().example("outgoing_rest")),
        always("name", Schema::text().example("Billing API")),
        sometimes("project", Schema::text().example("default")),
        always("line", Schema::count()),
    ];
    if with_keys {
        members.push(always("keys", Schema::list(key)));
    }
    always(name, Schema::list(Schema::object(members)))
}

fn answer() -> Schema {
    let warning = Schema::object([
        always("field", Schema::text().example("outgoing_rest[0].ping_method")),
        always("message", Schema::text().example("`ping_method` has no effect here")),
        always("allowed", Schema::text().or_null().example(json!(null))),
        always("line", Schema::count()),
        always("column", Schema::count()),
    ]);
    Schema::object([
        difference("created", true),
        difference("changed", true),
        difference("unchanged", false),
        always("warnings", Schema::list(warning)),
        always("applied", Schema::flag().example(true)),
        always("plan", Schema::text().example("5f0c…").describe("The same as long as file and configuration are.")),
    ])
    .named("Difference")
}

pub fn import() -> Operation {
    let file = Schema::any().describe("Sections and keys are in docs/yaml.md and docs/settings.md.");
    let variables = Schema::map(Schema::text()).with("maxProperties", VARIABLES_MAX.into());
    let with_values = Schema::closed([
        always("yaml", Schema::text().example(FILE).describe("The file.")),
        optional("env", variables.example(json!({"HOST": "https://a.example"})).describe("Values for `Env.NAME`.")),
    ]);
    Operation::new(Tag::Configuration, "importConfiguration", "Apply a file: all of it, or nothing")
        .details("The answer is the difference. Applying the same file again changes nothing.")
        .query("dry_run", Schema::flag(), "Only show the difference.")
        .query("project", Schema::text().example("default"), "The project of all items that name none.")
        .query(
            "plan",
            Schema::text().example("5f0c"),
            "The `plan` of a dry run: 409 when the file would change something else by now.",
        )
        .takes_as(&["application/yaml", "text/yaml"], file, true, Some(FILE.into()))
        .takes_as(&["application/json"], with_values, true, None)
        .gives("The difference.", answer())
        .refuses([CONFLICT, NOT_FOUND, FULL])
}

pub fn export() -> Operation {
    let file = Schema::any().example(FILE);
    Operation::new(Tag::Configuration, "exportConfiguration", "The configuration as a file")
        .details("What equals its default is left out, and so is every secret. The file imports to the same.")
        .query("project", shapes::name().example("default"), "Only this project.")
        .answers_as(Some(StatusCode::OK), "The file.", "application/yaml", file)
        .refuses([NOT_FOUND])
}
