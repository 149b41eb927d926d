//! `/metrics` of the real binary, read by the parser of Prometheus's own Python client (P06).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use harness::Act::{Read, Say};
use harness::{Bench, RawRemote};
use serde_json::{Value, json};

/// Every family by its name: type, help, and the samples as name, labels and value.
const READER: &str = "
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
print(json.dumps([{'name': f.name, 'type': f.type, 'help': f.documentation, 'samples': [[s.name, s.labels, s.value] for s in f.samples]} for f in families]))
";

async fn parsed(text: String) -> BTreeMap<String, Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let venv = std::env::var("POSTRIDER_PEERS_VENV").map_or_else(|_| root.join("target/peers/venv"), PathBuf::from);
    let mut child = std::process::Command::new(venv.join("bin/python"))
        .args(["-c", READER])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the parser refuses it:\n{text}");
    let families: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let count = families.len();
    let by_name: BTreeMap<String, Value> =
        families.into_iter().map(|family| (family["name"].as_str().unwrap().to_owned(), family)).collect();
    assert_eq!(by_name.len(), count, "each family once");
    by_name
}

async fn scrape(bench: &Bench) -> BTreeMap<String, Value> {
    parsed(bench.api.call("GET", "/metrics", "").await.unwrap().1).await
}

fn value(families: &BTreeMap<String, Value>, sample: &str, labels: Value) -> f64 {
    let samples = families.values().flat_map(|family| family["samples"].as_array().unwrap());
    let found = samples.filter(|found| found[0] == sample && found[1] == labels).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{sample} {labels}");
    found[0][2].as_f64().unwrap()
}

// proves: P06
#[tokio::test(flavor = "multi_thread")]
async fn p06_the_figures_are_read_by_prometheus_own_parser_and_say_what_happened() {
    let bench = Bench::start().await;
    let failing = RawRemote::start(&[Read, Say(b"HTTP/1.1 400 ?\r\nContent-Length: 0\r\n\r\n")]).await;
    let well = RawRemote::start(&[]).await;
    well.heal();
    bench
        .connection("dead", &failing.address, json!({"use_queue": true, "max_retries": 2, "retry_sleep_time": 0}))
        .await;
    bench.connection("well", &well.address, json!({"use_queue": true})).await;
    bench.connection("held", &well.address, json!({"use_queue": true})).await;
    bench.call("POST", "/connections/held/pause", &Value::Null).await;
    let dead = bench.publish("dead", "x").await;
    let done = bench.publish("well", "x").await;
    bench.publish("held", "12345").await;
    bench.until_status(&dead, "DLQ").await;
    bench.until_status(&done, "SUCCESS").await;
    let families = scrape(&bench).await;
    let none = || json!({});
    let connection = |name: &str| json!({"project": "default", "connection": name, "type": "rest"});
    assert_eq!(value(&families, "postrider_deliveries_accepted_total", none()), 3.0);
    assert_eq!(value(&families, "postrider_deliveries_ended_total", json!({"status": "SUCCESS"})), 1.0);
    assert_eq!(value(&families, "postrider_deliveries_ended_total", json!({"status": "DLQ"})), 1.0);
    let attempts = value(&families, "postrider_attempt_seconds_count", none());
    assert!(attempts >= 2.0 && value(&families, "postrider_attempt_seconds_sum", none()) >= 0.0);
    assert_eq!(
        value(&families, "postrider_retries_total", none()),
        attempts - 2.0,
        "every attempt but the first of each"
    );
    assert_eq!(value(&families, "postrider_queue_waiting", connection("held")), 1.0);
    assert_eq!(value(&families, "postrider_queue_waiting_bytes", connection("held")), 5.0);
    assert!(value(&families, "postrider_queue_oldest_waiting_seconds", connection("held")) >= 0.0);
    assert_eq!(value(&families, "postrider_dlq_dead", connection("dead")), 1.0);
    let commits = value(&families, "postrider_store_commits_total", none());
    assert!(commits > 0.0);
    for histogram in ["postrider_store_commit_seconds", "postrider_store_commit_rows", "postrider_attempt_seconds"] {
        assert_eq!(families[histogram]["type"], "histogram");
        let buckets = families[histogram]["samples"].as_array().unwrap().iter();
        let counts: Vec<f64> = buckets
            .filter(|sample| sample[0] == format!("{histogram}_bucket"))
            .map(|sample| sample[2].as_f64().unwrap())
            .collect();
        assert!(counts.is_sorted() && counts.last() > Some(&0.0), "{histogram}: {counts:?}");
        assert_eq!(*counts.last().unwrap(), value(&families, &format!("{histogram}_count"), none()));
    }
    for gauge in [
        "postrider_store_wal_bytes",
        "postrider_disk_free_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
        "postrider_open_sockets",
    ] {
        assert!(value(&families, gauge, none()) > 0.0, "{gauge}");
    }
    assert_eq!(value(&families, "postrider_health", json!({"check": "store"})), 1.0);
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p06_every_family_is_in_the_documentation_and_its_labels_are_bounded() {
    let bench = Bench::start().await;
    bench.connection("a", "http://127.0.0.1:1", json!({"use_queue": true})).await;
    let families = scrape(&bench).await;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (name, family) in &families {
        let written = if family["type"] == "counter" { format!("{name}_total") } else { name.clone() };
        assert!(page.contains(&format!("| `{written}`")), "docs/metrics.md does not speak of {written}");
        assert!(!family["help"].as_str().unwrap().is_empty(), "{name}");
        for sample in family["samples"].as_array().unwrap() {
            for label in sample[1].as_object().unwrap().keys() {
                let known = ["project", "connection", "type", "outcome", "result", "status", "check", "le", "version"];
                assert!(known.contains(&label.as_str()), "{name} has the label {label}");
            }
        }
    }
    bench.server.stop().await;
}
