//! What a file changes, and that it changes nothing the second time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::{Vault, applied, counts, file, planned, refusals, shown, with_project};
use postrider_config::{Action, State, export, plan, read};
use postrider_core::Timestamp;
use postrider_core::connection::ConnectionKind;
use postrider_store::ConfigChange;
use serde_json::{Value, json};

const FIRST: &str = "\
pubsub_subscription:
  - {name: audit, topic_list: [lab.failed, orders], redeliver_after_seconds: 60}
defaults: &queue {}
";

/// Connections stand before the topics and projects that they need.
const WHOLE: &str = "\
outgoing_rest:
  - &claims
    name: Claims API
    host: Env.HOST
    url_path: /v2/claims/{claim_id}
    timeout: 15
    use_queue: true
    max_retries: 4
    dlq_action: forward
    dlq_forward_to: lab.failed
    retry_backoff_multiplier: 2
    validate_tls: true
  - <<: *claims
    name: Other API
    project: billing
    max_retries: 5
    dlq_action: keep
    dlq_forward_to: ''
pubsub_subscription:
  - {name: audit, topic_list: [lab.failed, orders], redeliver_after_seconds: 60}
pubsub_topic:
  - {name: lab.failed, description: undeliverable}
  - name: orders
projects:
  - name: billing
";

fn json_of(plan: &postrider_config::Plan) -> Value {
    Value::Object(plan.to_json())
}

#[test]
fn d18_objects_are_made_in_the_order_of_what_they_stand_on() {
    let mut state = with_project("default");
    let plan = applied(WHOLE, &mut state);
    let kinds: Vec<&str> = plan.differences.iter().map(|difference| difference.section).collect();
    let wanted = [
        "projects",
        "pubsub_topic",
        "pubsub_topic",
        "pubsub_subscription",
        "pubsub_subscription",
        "outgoing_rest",
        "outgoing_rest",
    ];
    assert_eq!(kinds, wanted);
    assert_eq!((counts(&plan), plan.changes.len(), plan.warnings.len()), ((7, 0, 0), 7, 0), "{:?}", plan.warnings);
    let billing = state.project("billing").unwrap().id;
    let other = state.connection(billing, ConnectionKind::Rest, "Other API").unwrap();
    assert_eq!((&other.written["max_retries"], &other.written["host"]), (&json!(5), &json!("https://env.example.org")));
    assert_eq!(other.version, 1);
    let created = &json_of(&plan)["created"];
    assert_eq!(created[5]["name"], "Claims API");
    assert_eq!(created[5]["line"], 3);
    let keys: Vec<&Value> = created[5]["keys"].as_array().unwrap().iter().map(|key| &key["key"]).collect();
    assert_eq!(keys, ["host", "url_path", "timeout", "max_retries", "use_queue", "dlq_action", "dlq_forward_to"]);
}

#[test]
fn d18_a_second_import_of_the_same_file_changes_nothing() {
    let mut state = with_project("default");
    applied(WHOLE, &mut state);
    let again = applied(WHOLE, &mut state);
    assert_eq!((counts(&again), again.changes.len()), ((0, 0, 7), 0));
    let json = json_of(&again);
    assert_eq!((&json["created"], &json["changed"]), (&json!([]), &json!([])));
    assert_eq!(json["unchanged"][0], json!({"section": "projects", "name": "billing", "line": 25}));
}

#[test]
fn d18_a_change_shows_old_and_new_and_leaves_the_rest_alone() {
    let mut state = with_project("default");
    applied(WHOLE, &mut state);
    let text = "\
outgoing_rest:
  - {name: Claims API, host: 'https://new.example.org', url_path: '/v2/claims/{claim_id}', max_retries: 4, use_dlq: false}
pubsub_topic:
  - {name: orders, retention_seconds: 60}
pubsub_subscription:
  - {name: audit, topic_list: orders}
";
    let plan = applied(text, &mut state);
    assert_eq!(counts(&plan), (0, 3, 0));
    let changed = &json_of(&plan)["changed"];
    assert_eq!(changed[0]["keys"], json!([{"key": "retention_seconds", "old": null, "new": 60, "default": "604800"}]));
    assert_eq!(changed[1]["name"], "audit on orders");
    assert_eq!(
        changed[1]["keys"],
        json!([{"key": "redeliver_after_seconds", "old": 60, "new": null, "default": "30"}])
    );
    let keys: Vec<Value> =
        changed[2]["keys"].as_array().unwrap().iter().map(|key| json!([key["key"], key["old"], key["new"]])).collect();
    assert_eq!(
        Value::Array(keys),
        json!([
            ["host", "https://env.example.org", "https://new.example.org"],
            ["timeout", 15, null],
            ["use_queue", true, null],
            ["use_dlq", null, false],
            ["dlq_action", "forward", null],
            ["dlq_forward_to", "lab.failed", null]
        ])
    );
    let ConfigChange::ReplaceConnection { connection, version } = plan.changes.last().unwrap() else { panic!() };
    assert_eq!((connection.version, *version), (2, 1));
    assert_eq!(applied(text, &mut state).changes, []);
    // The other topic, its subscription and the other project's connection are still there.
    assert_eq!(applied("", &mut state).differences.len(), 0);
    let text = export(&state, postrider_config::SECTIONS, None).unwrap();
    assert!(
        text.contains("name: lab.failed") && text.contains("name: Other API") && text.contains("name: billing"),
        "{text}"
    );
}

#[test]
fn d18_what_a_file_stands_on_must_be_there() {
    assert!(refusals(FIRST).contains("`defaults` is no section"));
    let refused = refusals("pubsub_subscription:\n  - {name: a, topic_list: [x]}\n");
    assert!(
        refused.starts_with("f:2:27: pubsub_subscription[0].topic_list: there is no `x` in `pubsub_topic`"),
        "{refused}"
    );
    let refused = refusals("pubsub_topic:\n  - {name: a, project: nowhere}\n");
    assert!(refused.contains("pubsub_topic[0].project: there is no project `nowhere`"), "{refused}");
    let refused = refusals("pubsub_topic:\n  - name: a\n  - name: b\n  - name: a\n");
    assert_eq!(refused, "f:4:5: pubsub_topic[2]: `a` is there twice: first on line 2\n");
    // A topic that is refused itself is not missing as well.
    let refused =
        refusals("pubsub_topic:\n  - {name: x, retention: 1}\npubsub_subscription:\n  - {name: a, topic_list: [x]}\n");
    assert_eq!(refused.lines().count(), 1, "{refused}");
    assert!(planned(&file("pubsub_topic:\n  - name: a\n"), &State::default()).is_err(), "no project at all");
}

#[test]
fn d18_a_subscription_of_the_platform_is_named_after_its_reader() {
    let mut state = with_project("default");
    let text = "pubsub_topic:\n  - name: t\npubsub_subscription:\n  - {security: lab.sec, delivery_type: pull, topic_list: [t], push_service: ''}\n";
    let plan = applied(text, &mut state);
    assert_eq!(plan.differences[1].id, "lab.sec on t");
    assert_eq!(plan.warnings.len(), 1);
}

// proves: D46
#[test]
fn d18_a_secret_shows_in_no_error_no_difference_and_no_export() {
    let sections: [&dyn postrider_config::Section; 1] = [&Vault];
    let planned = |text: &str, state: &State| {
        let file = read(text, &sections, &|name| (name == "PW").then(|| "hunter2-hunter2-hunter2".to_owned()));
        plan(&file, state.clone(), "default", Timestamp::from_millis(1), &|| 5)
    };
    let mut state = with_project("default");
    for text in
        ["vault:\n  - {name: a, password: hunter2-hunter2-hunter2}\n", "vault:\n  - {name: a, password: Env.PW}\n"]
    {
        let refused = shown(&planned(text, &state).err().unwrap());
        assert!(refused.contains("vault[0].password") && refused.contains("at most 20 characters"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
    let made = planned("vault:\n  - {name: lab-sec, password: hunter2}\n", &state).ok().unwrap();
    assert!(!json_of(&made).to_string().contains("hunter2"));
    assert_eq!(
        json_of(&made)["created"][0]["keys"],
        json!([{"key": "password", "old": null, "new": "***", "default": null}])
    );
    state.make(&made.changes[0]);
    let same = planned("vault:\n  - {name: lab-sec, password: hunter2}\n", &state).ok().unwrap();
    assert_eq!(same.count(Action::Unchanged), 1);
    let other = planned("vault:\n  - {name: lab-sec, password: hunter3}\n", &state).ok().unwrap();
    assert_eq!(json_of(&other)["changed"][0]["keys"][0]["old"], "***");
    let twin = planned("vault:\n  - {name: lab_sec, password: hunter2}\n", &state).ok().unwrap();
    state.make(&twin.changes[0]);
    let text = export(&state, &sections, Some("default")).unwrap();
    assert!(text.ends_with("  - name: lab-sec\n    password: Env.LAB_SEC_PASSWORD\n  - name: lab_sec\n    password: Env.LAB_SEC_PASSWORD_2\n"), "{text}");
}
