//! Of `projects`.

use postrider_core::alert::AlertThresholds;
use postrider_core::settings::objects::{
    ALERT_MAX, EMAIL_BYTES_MAX, PROJECT_CONCURRENCY_MAX, PROJECT_RATE_MAX, written_alerts,
};
use serde_json::json;

use super::CONFLICT;
use crate::openapi::{Member, Operation, Schema, Tag, always, optional, shapes};

fn email() -> Schema {
    Schema::text().length(0, EMAIL_BYTES_MAX).pattern("^([^@\\s]+@[^@\\s]+)?$").example("ada@example.org")
}

fn thresholds() -> impl Iterator<Item = (&'static str, Schema)> {
    let standard = written_alerts(AlertThresholds::default());
    standard.into_iter().map(|(key, value)| {
        let schema =
            Schema::whole(0, ALERT_MAX.into()).default_value(value).describe("When somebody is told; 0: never.");
        (key, schema)
    })
}

fn settings() -> Vec<Member> {
    [
        optional("ownerEmail", email().describe("Who is told about it.")),
        optional("entitled", Schema::flag().default_value(true).describe("false: nothing is delivered for it.")),
        optional(
            "rateLimitPerSecond",
            Schema::whole(1, PROJECT_RATE_MAX.into()).describe("Deliveries a second, at most."),
        ),
        optional(
            "concurrency",
            Schema::whole(1, PROJECT_CONCURRENCY_MAX.into()).describe("Attempts at once, at most."),
        ),
    ]
    .into_iter()
    .chain(thresholds().map(|(key, schema)| optional(key, schema)))
    .collect()
}

fn project() -> Schema {
    let thresholds = thresholds().map(|(key, schema)| always(key, schema));
    let members = [
        always("id", Schema::id("prj_")),
        always("name", shapes::name().example("default")),
        always("ownerEmail", email().or_null()),
        always("entitled", Schema::flag().example(true)),
        always("rateLimitPerSecond", Schema::whole(1, PROJECT_RATE_MAX.into()).or_null().example(json!(null))),
        always("concurrency", Schema::whole(1, PROJECT_CONCURRENCY_MAX.into()).or_null().example(json!(null))),
        always("createdAt", Schema::time()),
    ];
    Schema::object(members.into_iter().chain(thresholds)).named("Project")
}

pub fn list() -> Operation {
    Operation::new(Tag::Projects, "listProjects", "All projects")
        .details("To a key of a project, its own.")
        .lists("All of them, on one page.", project())
}

pub fn one() -> Operation {
    Operation::new(Tag::Projects, "getProject", "A project").gives("The project.", project())
}

pub fn create() -> Operation {
    let mut members = vec![always("name", shapes::name().describe("Not `prj_…`, which could be an id."))];
    members.extend(settings());
    Operation::new(Tag::Projects, "createProject", "Make a project")
        .details("It is neither renamed nor deleted later: paths and keys go by its name, and its log must be accounted for.")
        .takes_such_as(Schema::closed(members), json!({"name": "billing", "ownerEmail": "ada@example.org"}))
        .creates("The project.", project())
        .refuses([CONFLICT])
}

pub fn merge() -> Operation {
    Operation::new(Tag::Projects, "changeProject", "Change a project's settings")
        .details("A merge patch (RFC 7396): what is given replaces, null takes the default, the rest stays.")
        .takes_such_as(Schema::closed(settings()), json!({"concurrency": 20}))
        .gives("The project.", project())
        .refuses([CONFLICT])
}
