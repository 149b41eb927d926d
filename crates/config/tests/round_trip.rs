//! Export and import are each other's reverse, for whatever can be configured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::{applied, counts, file, planned, shown, with_project};
use postrider_config::{SECTIONS, State, export};
use postrider_core::connection::{ConnectionKind, ConnectionSpec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

fn exported(state: &State) -> String {
    export(state, SECTIONS, None).unwrap()
}

/// A configuration of 200 objects: 2 projects, 8 security definitions, 20 topics, 10 subscriptions, 160 connections of all sorts.
fn two_hundred() -> String {
    let mut text = String::from(
        "projects:\n  - {name: p1, ownerEmail: ada@example.org, concurrency: 7}\n  - {name: p2, entitled: false, rateLimitPerSecond: 50}\nsecurity:\n",
    );
    for n in 0..8 {
        text += &format!("  - name: sec.{n}\n    type: {}\n", ["basic_auth", "apikey", "bearer", "oauth2"][n % 4]);
        text += &match n % 4 {
            0 => format!("    username: user {n}\n    password: Env.SEC_{n}_PASSWORD\n"),
            1 => format!("    header: X-Key-{n}\n    key: Env.SEC_{n}_KEY\n"),
            2 => format!("    token: Zato_Enmasse_Env.SEC_{n}_TOKEN\n"),
            _ => format!(
                "    token_url: https://login.example.org/{n}\n    client_id: c{n}\n    client_secret: Env.SEC_{n}_CLIENT_SECRET\n    \
                 scopes: [read, write]\n    extra_params: {{audience: Env.HOST, tenant: 12, '!!str': !!str Env.A}}\n    validate_tls: false\n"
            ),
        };
    }
    text += "pubsub_topic:\n";
    (0..20).for_each(|n| text += &format!("  - {{name: topic.{n}, description: 'number {n}'}}\n"));
    text += "pubsub_subscription:\n";
    (0..10).for_each(|n| text += &format!("  - {{name: reader {n}, topic_list: [topic.{n}]}}\n"));
    text += "outgoing_rest:\n";
    for n in 0..160 {
        text += &format!(
            "  - name: API {n}\n    host: https://api{n}.example.org:8443\n    url_path: /v{}/{{id}}\n",
            n % 7
        );
        text += match n % 5 {
            0 => "    use_queue: true\n    max_retries: 3\n    security: sec.3\n",
            1 => "    retry_preset: patient\n    timeout_seconds: 9\n",
            2 => "    retry_delays: [60, 300.5]\n    max_attempts: 4\n    jitter: false\n",
            3 => "    dlq_action: forward\n    dlq_forward_to: topic.3\n    use_queue: true\n    ordered: false\n",
            _ => "    validate_tls: false\n    data_format: xml\n    timeout: 0.5\n",
        };
    }
    text
}

#[test]
fn d18_two_hundred_objects_import_and_export_to_the_same() {
    let mut state = with_project("default");
    assert_eq!(counts(&applied(&two_hundred(), &mut state)), (200, 0, 0));
    assert_eq!(counts(&applied(&two_hundred(), &mut state)), (0, 0, 200));
    let text = exported(&state);
    assert!(!text.contains("hunter2") && text.contains("    password: Env.SEC_4_PASSWORD\n"), "{text}");
    let mut copy = with_project("default");
    // The project itself is in the export of everything.
    assert_eq!(counts(&applied(&text, &mut copy)), (200, 0, 1));
    assert_eq!(exported(&copy), text);
    assert_eq!(counts(&applied(&text, &mut state)), (0, 0, 201));
    let of_one = export(&state, SECTIONS, Some("default")).unwrap();
    assert!(!of_one.contains("projects:") && counts(&applied(&of_one, &mut state)) == (0, 0, 198));
    assert_eq!(export(&state, SECTIONS, Some("nobody's")), None);
}

#[test]
fn d18_export_has_the_order_of_the_keys_and_leaves_defaults_out() {
    let mut state = with_project("default");
    let text = "\
projects: [{name: billing}]
outgoing_rest:
  - {use_queue: true, max_retries: 4, retry_sleep_time: 2, url_path: '/{id}', pool_size: 10, host: 'https://A.example.org', name: 'B: x', security: ''}
  - {name: A, project: billing, host: 'http://a', url_path: '', retry_delays: '60,300', is_audit_log_active: true}
pubsub_subscription: [{name: s, topic_list: [b, a]}, {name: s, topic_list: [c], redeliver_after_seconds: 5}]
pubsub_topic: [{name: b}, {name: a, description: \"no: 1\"}, {name: c}]
";
    applied(text, &mut state);
    let wanted = "\
# What differs from the defaults. Secrets are not in it: `Env.NAME` stands for the variable NAME.

projects:
  - name: billing
  - name: default

pubsub_topic:
  - name: a
    description: \"no: 1\"
  - name: b
  - name: c

pubsub_subscription:
  - name: s
    topic_list: [c]
    redeliver_after_seconds: 5
  - name: s
    topic_list: [a, b]

outgoing_rest:
  - name: A
    project: billing
    host: http://a
    url_path: \"\"
    retry_delays: \"60,300\"
  - name: \"B: x\"
    host: https://A.example.org
    url_path: /{id}
    max_retries: 4
    use_queue: true
";
    assert_eq!(exported(&state), wanted);
}

fn some<T: std::fmt::Debug + Clone + Into<Value> + 'static>(
    values: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Option<Value>> {
    proptest::option::of(values.prop_map(Into::into)).boxed()
}

/// Settings as somebody might write them; those that do not go together are left out later.
fn settings() -> impl Strategy<Value = Map<String, Value>> {
    let flag = || some(any::<bool>());
    let seconds = || some(prop_oneof![(0u32..90).prop_map(f64::from), 0.001..3600.0f64]);
    let keys = vec![
        ("data_format", some(select(vec!["json", "text", "form", "xml"]))),
        ("content_type", some("[a-z]{1,5}/[a-z+]{1,5}|")),
        ("timeout", seconds()),
        ("pool_size", some(1u32..20)),
        ("tls_verify", flag()),
        ("validate_tls", flag()),
        ("tls_ca_path", some("(/[a-z# :]{1,5}){0,2}")),
        ("is_active", flag()),
        ("max_retries", some(0u32..6)),
        ("retry_sleep_time", seconds()),
        ("retry_backoff_multiplier", some(0.0..100.0f64)),
        ("retry_backoff_threshold", seconds()),
        ("use_queue", flag()),
        ("use_dlq", flag()),
        ("dlq_action", some(select(vec!["keep", "retry", "forward", "discard"]))),
        ("dlq_retries", some(0u32..6)),
        ("dlq_retry_interval", seconds()),
        ("dlq_forward_to", some("([a-z]{1,3}|no|on|1e5|Env)?")),
        ("dlq_keep_header", flag()),
        ("expires_after", seconds()),
        ("ordered", flag()),
        ("concurrency", some(1u32..8)),
        ("settle_ahead_max", some(prop_oneof![Just(16u32), 0u32..20])),
        ("retry_preset", some(select(vec!["webhook", "forward", "patient"]))),
        (
            "retry_delays",
            some(prop_oneof![
                proptest::collection::vec((10u32..9000).prop_map(|tenths| f64::from(tenths) / 10.0), 1..5)
                    .prop_map(Value::from),
                Just(json!("60, 300")),
            ]),
        ),
        ("max_attempts", some(1u32..20)),
        ("retryable_statuses", some(select(vec!["5xx", "408,429,5xx,!501", "500"]))),
        ("timeout_seconds", some(1u32..60)),
        ("jitter", flag()),
        ("retry_after", flag()),
    ];
    let (names, values): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
    let host = select(vec!["http://a", "https://API.example.org:8443/", "http://[::1]:80"]);
    let path = select(vec!["", "/", "/v2/{id}", "/a b/#", "/: x", "/%20", "/{a}/{b}"]);
    (host, path, values).prop_map(move |(host, path, values)| {
        let mut map = Map::new();
        map.insert("host".to_owned(), json!(host));
        map.insert("url_path".to_owned(), json!(path));
        let is_valid = |map: &Map<String, Value>| ConnectionSpec::parse(ConnectionKind::Rest, map).is_ok();
        if !is_valid(&map) {
            map["url_path"] = json!("/v2");
        }
        for (name, value) in names.iter().zip(values) {
            if let Some(value) = value {
                map.insert((*name).to_owned(), value);
                if !is_valid(&map) {
                    map.shift_remove(*name);
                }
            }
        }
        map
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn d18_export_and_import_are_each_others_reverse(
        connections in proptest::collection::btree_map("[ -.0-~äß→\u{85}\u{2028}]{1,12}|no|Env\\.A|0123|~", settings(), 1..5),
        topics in proptest::collection::btree_map("[a-z0-9]{1,4}|no|1e5|null", ("\\PC{0,8}|[ -~\\n]{0,20}|Env\\.A", 60u32..90), 0..4),
    ) {
        // As JSON, which is YAML too.
        let mut topic_items = Vec::new();
        for (name, (description, seconds)) in &topics {
            topic_items.push(format!("{{\"name\": !!str {}, \"description\": !!str {}, \"retention_seconds\": {seconds}}}", quoted(name), quoted(description)));
        }
        let mut items = Vec::new();
        for (name, keys) in connections.iter().filter(|(name, _)| name.trim() == name.as_str() && *name != "." && *name != ".." && !name.contains('\u{85}')) {
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            items.push(format!("{{\"name\": !!str {}, {}}}", quoted(name), keys.join(", ")));
        }
        let text = format!("pubsub_topic: [{}]\noutgoing_rest: [{}]\n", topic_items.join(",\n"), items.join(",\n"));
        let first = file(&text);
        let mut state = with_project("default");
        let plan = planned(&first, &state).unwrap_or_else(|refused| panic!("{text}\n{}", shown(&refused)));
        plan.changes.iter().for_each(|change| state.make(change));

        let text = exported(&state);
        let again = planned(&file(&text), &state).unwrap_or_else(|refused| panic!("{text}\n{}", shown(&refused)));
        prop_assert_eq!(counts(&again), (0, 0, items.len() + topic_items.len() + 1), "{}", text);
        let mut copy = with_project("default");
        applied(&text, &mut copy);
        prop_assert_eq!(exported(&copy), text);
        let id = |state: &State| state.project("default").unwrap().id;
        for (one, other) in state.connections_of(id(&state), ConnectionKind::Rest).zip(copy.connections_of(id(&copy), ConnectionKind::Rest)) {
            prop_assert_eq!(&one.name, &other.name);
            prop_assert_eq!(&one.spec, &other.spec, "{:?} became {:?}", one.written, other.written);
        }
    }
}

fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut escaped = String::new();
    json.chars().for_each(|c| match c {
        ' '..='~' => escaped.push(c),
        c if u32::from(c) > 0xffff => escaped.push_str(&format!("\\U{:08X}", u32::from(c))),
        c => escaped.push_str(&format!("\\u{:04X}", u32::from(c))),
    });
    escaped
}
