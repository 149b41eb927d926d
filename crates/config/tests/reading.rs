//! What a file is refused for, and where; all of it at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::{refusals, warnings};
use postrider_config::document::{DEPTH_MAX, DOCUMENT_BYTES_MAX};

const REST: &str = "outgoing_rest:\n  - name: Claims API\n    host: https://claims.example.org\n    url_path: /v2\n";

#[test]
fn d18_a_typo_is_refused_with_its_line_and_the_nearest_key() {
    let text = format!("{REST}    use_queue: true\n    max_retrys: 4\n");
    assert_eq!(
        refusals(&text),
        "f:6:5: outgoing_rest[0].max_retrys: `max_retrys` is no key of `outgoing_rest`: allowed is a key that exists here; did you mean `max_retries`?\n"
    );
    assert!(refusals("outgoing_rst:\n").contains("f:1:1: outgoing_rst: `outgoing_rst` is no section: allowed is a section that exists; did you mean `outgoing_rest`?"));
    assert!(refusals("nothing_like_it: []\n").contains("allowed is the sections projects, security, pubsub_topic"));
}

#[test]
fn p04_every_error_of_a_file_is_told_in_the_order_of_its_lines() {
    let text = "\
outgoing_rest:
  - name: One
    host: ftp://a
    max_retries: 1001
    max_retries: 3
  - host: https://a
    url_path: /
    use_queue: yes
    use_queeu: true
  - just text
  - name: One
    host: https://a
    url_path: /
    timeout: Env.NOT_SET
  - {name: Two, host: 'https://a', url_path: '', dlq_action: burn}
pubsub_topic:
  name: not a list
webhook_sources: []
pubsub_subscription:
  - {name: x, topic_list: [missing.topic], delivery_type: push, push_service: a.b}
";
    let refused = refusals(text);
    let lines: Vec<&str> = refused.lines().collect();
    let wanted = [
        ("f:2:5: outgoing_rest[0].url_path:", "missing"),
        ("f:3:11: outgoing_rest[0].host:", "begins with http:// or https://"),
        ("f:4:18: outgoing_rest[0].max_retries:", "from 0 to 1000"),
        ("f:5:5: ", "`max_retries` is there twice: first on line 4"),
        ("f:6:5: outgoing_rest[1].name:", "`name` is missing"),
        ("f:8:16: outgoing_rest[1].use_queue:", "write `true` or `false`"),
        ("f:9:5: outgoing_rest[1].use_queeu:", "did you mean `use_queue`?"),
        ("f:10:5: outgoing_rest[2]:", "a map of keys, and this is a single value"),
        ("f:14:14: outgoing_rest[3].timeout:", "the variable `NOT_SET`, and that is not set"),
        ("f:15:62: outgoing_rest[4].dlq_action:", "one of keep, retry, forward, discard"),
        ("f:17:3: pubsub_topic:", "a list of items, and this is a map"),
        ("f:18:1: webhook_sources:", "did you mean `webhook_source`?"),
        ("f:20:59: pubsub_subscription[0].delivery_type:", "no subscriptions that push"),
        ("f:20:79: pubsub_subscription[0].push_service:", "no subscriptions that push"),
    ];
    assert_eq!(lines.len(), wanted.len(), "{refused}");
    for (line, (begins, contains)) in lines.iter().zip(wanted) {
        assert!(line.starts_with(begins) && line.contains(contains), "{line}\nis not {begins} … {contains}");
    }
}

#[test]
fn d18_what_the_platform_has_and_we_do_not_is_a_warning_each_with_its_line() {
    let text = format!(
        "{REST}    ping_method: GET\n    health_check_path: /\nscheduler:\n  - name: x\npubsub_permission: []\n"
    );
    let warned = warnings(&text);
    assert_eq!(warned.len(), 4, "{warned:?}");
    assert!(warned[0].starts_with("f:5:5: outgoing_rest[0].ping_method: `ping_method` has no effect here"));
    assert!(warned[1].starts_with("f:6:5: outgoing_rest[0].health_check_path:"));
    assert!(warned[2].starts_with("f:7:1: scheduler: the section `scheduler` has no effect here"));
    // What the settings themselves are worth a word for has its line too.
    let warned =
        warnings(&format!("{REST}    validate_tls: false\n    dlq_forward_to: nowhere\n    dlq_action: forward\n"));
    assert!(warned[0].starts_with("f:5:19: outgoing_rest[0].validate_tls:"), "{warned:?}");
    assert!(warned[1].starts_with("f:6:21: outgoing_rest[0].dlq_forward_to: there is no topic `nowhere`"));
}

#[test]
fn p04_yaml_1_1_is_never_passed_over_in_silence() {
    for (line, part) in [
        ("use_queue: on", "`on` is a text in YAML 1.2"),
        ("use_queue: \"true\"", "written without quotes"),
        ("max_retries: 010", "`010` begins with a zero"),
        ("max_retries: 1_0", "`1_0` is a text in YAML 1.2"),
        ("timeout: 1:30", "`1:30` is a text in YAML 1.2"),
        ("max_retries: .inf", "from 0 to 1000"),
        ("use_queue: !!bool true", "the tag `!!bool` has no meaning here"),
        ("use_queue: !!python/object:os.system ls", "the tag `!!python/object:os.system` has no meaning here"),
    ] {
        let refused = refusals(&format!("{REST}    {line}\n"));
        assert!(refused.starts_with("f:5:") && refused.contains(part), "{line}: {refused}");
    }
    let warned = warnings("pubsub_topic:\n  - name: no\n    description: 007\n  - name: 'yes'\n  - name: true\n");
    assert_eq!(warned.len(), 3, "{warned:?}");
    assert!(warned[0].starts_with("f:2:11: pubsub_topic[0].name: `name` is `no`, which is a text in YAML 1.2"));
    assert!(warned[1].contains("begins with a zero") && warned[2].contains("is taken as a text here"));
}

#[test]
fn p04_limits_have_names_and_bombs_are_refused() {
    let long = "#".repeat(DOCUMENT_BYTES_MAX + 1);
    assert!(refusals(&long).contains("at most 4194304 are allowed"));
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (letter, former) in ('b'..='j').zip('a'..) {
        bomb += &format!(
            "{letter}: &{letter} [*{former}, *{former}, *{former}, *{former}, *{former}, *{former}, *{former}, *{former}, *{former}]\n"
        );
    }
    assert!(refusals(&bomb).contains("more than 200000 values"));
    let wide = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(30));
    assert!(refusals(&wide).contains("bytes of values in it"));
    for deep in ["[".repeat(DEPTH_MAX as usize + 1), "- ".repeat(DEPTH_MAX as usize + 1), "[".repeat(100_000)] {
        let refused = refusals(&deep);
        assert!(refused.contains("deep") || refused.contains("cannot be read as YAML"), "{refused}");
    }
    let mut nested = format!("a0: &a0 {}{}\n", "[".repeat(20), "]".repeat(20));
    nested += &format!("a1: {}*a0{}\n", "[".repeat(20), "]".repeat(20));
    assert!(refusals(&nested).contains("deep with what this alias repeats"));
}

#[test]
fn p04_what_is_no_file_is_refused_where_it_stops() {
    for (text, begins, part) in [
        ("- a\n", "f:1:1: ", "a file is a map of sections, and this is a list"),
        ("plain text\n", "f:1:1: ", "and this is a single value"),
        ("projects: [\n", "f:", "cannot be read as YAML"),
        ("projects: []\n---\nprojects: []\n", "f:2:1: ", "one file is one document"),
        ("%YAML 1.1\n---\nprojects: []\n", "f:1:1: ", "cannot be read as YAML"),
        ("projects: *nobody\n", "f:1:11: ", "cannot be read as YAML"),
        ("a: &a [*a]\n", "f:1:8: ", "inside the value that it repeats"),
        ("? [a]\n: b\n", "f:1:3: ", "a key is a single text"),
        ("projects:\n\t- name: x\n", "f:2:", "cannot be read as YAML"),
        ("<<: 5\n", "f:1:5: ", "takes a map"),
    ] {
        let refused = refusals(text);
        assert!(refused.starts_with(begins) && refused.contains(part), "{text}: {refused}");
    }
    for nothing in ["", "# nothing\n", "---\n", "{}\n", "projects:\n"] {
        assert!(warnings(nothing).is_empty());
    }
}
