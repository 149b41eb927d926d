//! Of `schedule`.

use postrider_core::connection::ConnectionKind;
use serde_json::json;

use super::super::schedule::PRESETS;
use super::names_a_connection;
use crate::openapi::{Operation, Schema, Tag, always};

fn schedule() -> Schema {
    let seconds = |words: &str| Schema::number().example(60).describe(words);
    let attempt = Schema::object([
        always("attempt", Schema::whole(1, u32::MAX.into())),
        always("wait_seconds", seconds("Since the attempt before.")),
        always("wait_min_seconds", seconds("The same with the least jitter.")),
        always("wait_max_seconds", seconds("The same with the most jitter.")),
        always("after_first_seconds", seconds("Since the first attempt.")),
        always("earliest_seconds", seconds("The same with the least jitter.")),
        always("latest_seconds", seconds("The same with the most jitter.")),
    ]);
    Schema::object([
        always("schedule", Schema::words(["backoff", "ladder"])),
        always("timeout_seconds", Schema::number().example(30)),
        always("age_cap_seconds", Schema::number().or_null().example(json!(null))),
        always("data", Schema::list(attempt)),
    ])
    .named("Schedule")
}

pub fn of_connection() -> Operation {
    let summary = "When the attempts of this connection's policy would be made";
    names_a_connection(Operation::new(Tag::Connections, "previewConnectionSchedule", summary))
        .details("As if all of them failed.")
        .gives("The attempts.", schedule())
}

pub fn of_settings() -> Operation {
    let settings = Schema::object([always("type", Schema::words(ConnectionKind::ALL.map(ConnectionKind::as_str)))]);
    let example = json!({"type": "rest", "max_retries": 5, "use_queue": true});
    Operation::new(Tag::Connections, "previewSchedule", "When the attempts of such settings would be made")
        .details("Nothing is stored. Of the keys only those of the delivery are looked at.")
        .takes_such_as(settings, example)
        .gives("The attempts.", schedule())
}

pub fn of_preset() -> Operation {
    let presets = Schema::words(PRESETS.split(", "));
    Operation::new(Tag::Connections, "previewPresetSchedule", "When the attempts of a preset would be made")
        .required_query("preset", presets, "Which one.")
        .gives("The attempts.", schedule())
}
