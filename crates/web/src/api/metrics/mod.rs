//! `/metrics` in the Prometheus text format 0.0.4: counters of this process and of its store, and the kept depths of queues.
//!
//! Nothing is counted for it: no table is scanned, and the number of series is bounded however many connections there are.

mod process;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::id::{EndpointId, ProjectId};
use postrider_core::readiness::Room;
use postrider_engine::{Engine, Figures, Standing};
use postrider_store::{HistogramFigures, QueueSummary, Statistics, StoreFigures};

use super::Acting;
use crate::problem::Problem;

/// `metrics_connections_max`: connections with series of their own, the oldest first; all others together are `other`.
const CONNECTIONS_MAX: usize = 1000;
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub async fn metrics(Acting(state): Acting) -> Result<Response, Problem> {
    let mut summaries = BTreeMap::new();
    let mut project_names = BTreeMap::new();
    for project in state.read().projects().await? {
        let of_project = state.read().queue_summaries(project.id).await?;
        summaries.extend(of_project.into_iter().map(|summary| (summary.queue_id, summary)));
        project_names.insert(project.id, project.name);
    }
    let mut page = Page(String::with_capacity(8 << 10));
    about_process(&mut page, state.started_at.as_millis());
    about_health(&mut page, &state.engine.ready());
    let engine = state.engine.clone();
    // A few small files and system calls, which may block on a disk that stalls.
    let read = tokio::task::spawn_blocking(move || (process::read(), engine.store_figures())).await;
    let (process, (room, files)) = read.map_err(|_| Problem::unavailable("the figures cannot be read now"))?;
    about_system(&mut page, &process, room);
    if let Some(files) = &files {
        about_files(&mut page, files);
    }
    about_engine(&mut page, &state.engine.figures());
    about_incoming(&mut page, &state.engine.incoming_figures());
    if let Some(statistics) = state.read().statistics() {
        about_store(&mut page, statistics);
    }
    let connections = state.engine.connections();
    let rows = connections.iter().filter_map(|connection| {
        let summary = summaries.get(&connection.id)?;
        let project = project_names.get(&connection.project_id).map_or("", String::as_str);
        Some((labels(project, connection), *summary))
    });
    about_queues(&mut page, rows, CONNECTIONS_MAX, state.clock.now());
    about_endpoints(&mut page, &state.engine, &connections, &project_names);
    Ok(([(CONTENT_TYPE, TEXT)], page.0).into_response())
}

/// The text as far as it is written.
struct Page(String);

impl Page {
    /// Opens a family. Its samples follow.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
    }

    /// `unit`: how many of what was measured make one of what is shown.
    fn histogram(&mut self, name: &str, help: &str, figures: &HistogramFigures, unit: f64) {
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in figures.bounds.iter().zip(&figures.cumulative) {
            self.sample(&bucket, &format!("le=\"{}\"", *bound as f64 / unit), count);
        }
        let count = figures.cumulative.last().copied().unwrap_or_default();
        self.sample(&bucket, "le=\"+Inf\"", count);
        self.sample(&format!("{name}_sum"), "", figures.sum as f64 / unit);
        self.sample(&format!("{name}_count"), "", count);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(name, "", value);
    }
}

fn about_process(page: &mut Page, started_at_ms: i64) {
    page.family("postrider_build_info", "gauge", "Always 1; the version is in the label.");
    page.sample("postrider_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
    let name = "process_start_time_seconds";
    page.family(name, "gauge", "When the process started, in seconds since 1970-01-01T00:00:00Z.");
    page.sample(name, "", started_at_ms as f64 / 1000.0);
}

/// 1 for each check of readiness that is well.
fn about_health(page: &mut Page, checks: &[Standing]) {
    page.family("postrider_health", "gauge", "1 while the check of /health/ready is well.");
    for check in checks {
        let labels = format!("check=\"{}\"", check.name.as_str());
        page.sample("postrider_health", &labels, u8::from(check.trouble.is_none()));
    }
}

fn about_system(page: &mut Page, process: &process::ProcessFigures, room: Room) {
    let free = match room {
        Room::Bytes { free, .. } => Some(free),
        Room::Elsewhere | Room::Unknown => None,
    };
    for (name, help, value) in [
        ("process_resident_memory_bytes", "Resident memory size in bytes.", process.resident_bytes),
        ("process_open_fds", "Number of open file descriptors.", process.open_files),
        ("process_max_fds", "Maximum number of open file descriptors.", process.open_files_max),
        ("postrider_open_sockets", "Open sockets, in and out.", process.open_sockets),
        ("postrider_disk_free_bytes", "Free bytes on the disk of the data directory.", free),
    ] {
        if let Some(value) = value {
            page.gauge(name, help, value);
        }
    }
}

fn about_files(page: &mut Page, files: &StoreFigures) {
    let help = "How long a transaction of the store took, its fsync included.";
    page.histogram("postrider_store_commit_seconds", help, &files.commit_micros, 1e6);
    page.histogram(
        "postrider_store_commit_rows",
        "Rows that one transaction brought together.",
        &files.commit_rows,
        1.0,
    );
    page.gauge("postrider_store_wal_bytes", "Size of the store's WAL file.", files.wal_bytes);
    page.gauge("postrider_store_file_bytes", "Size of the store's database file.", files.file_bytes);
}

fn about_engine(page: &mut Page, figures: &Figures) {
    page.counter(
        "postrider_deliveries_accepted_total",
        "Requests stored to be delivered; direct calls are not stored.",
        figures.accepted,
    );
    page.counter(
        "postrider_deliveries_settled_total",
        "Decisions written about stored requests, such as delivered, due again or dead.",
        figures.settled,
    );
    let name = "postrider_requests_total";
    page.family(name, "counter", "Requests answered, by the flag of their result object.");
    let requests = figures.requests;
    for (result, count) in [
        ("is_ok", requests.is_ok),
        ("is_in_queue", requests.is_in_queue),
        ("is_in_dlq", requests.is_in_dlq),
        ("not_delivered", requests.not_delivered),
    ] {
        page.sample(name, &format!("result=\"{result}\""), count);
    }
    page.counter("postrider_retries_total", "Attempts that were not the first of their delivery.", figures.retries);
    page.counter("postrider_spans_dropped_total", "Spans that the collector did not take.", figures.spans_dropped);
    page.histogram("postrider_attempt_seconds", "How long attempts took.", &figures.attempt_millis, 1e3);
    let name = "postrider_deliveries_ended_total";
    page.family(name, "counter", "Deliveries that left the queue and direct calls that ended, by their status.");
    for (status, count) in &figures.ended {
        page.sample(name, &format!("status=\"{status}\""), count);
    }
    let name = "postrider_attempts_total";
    page.family(name, "counter", "Attempts made, by what came of them: delivered, or the code of the failure.");
    for (outcome, count) in &figures.attempts {
        page.sample(name, &format!("outcome=\"{outcome}\""), count);
    }
}

fn about_incoming(page: &mut Page, figures: &BTreeMap<&'static str, u64>) {
    let name = "postrider_incoming_webhooks_total";
    page.family(name, "counter", "Webhooks that came in, by what came of them: accepted, or why not.");
    for (outcome, count) in figures {
        page.sample(name, &format!("outcome=\"{outcome}\""), count);
    }
}

fn about_store(page: &mut Page, statistics: Statistics) {
    let Statistics { statements, commits, enqueued, settled } = statistics;
    page.counter("postrider_store_statements_total", "Statements of the store's writer.", statements);
    page.counter("postrider_store_commits_total", "Transactions that changed something, each with one fsync.", commits);
    page.counter("postrider_store_enqueued_total", "Deliveries written by the store.", enqueued);
    page.counter("postrider_store_settled_total", "Settlements applied by the store.", settled);
}

/// Gauges of each connection up to the limit, and of all others together.
fn about_queues(
    page: &mut Page,
    rows: impl Iterator<Item = (String, QueueSummary)>,
    connections_max: usize,
    now: Timestamp,
) {
    let mut shown: Vec<(String, [u64; 4])> = Vec::new();
    let mut others: Option<[u64; 4]> = None;
    for (labels, summary) in rows {
        let oldest_s = summary.oldest_waiting_since.map_or(0, |since| now.since(since).as_millis() / 1000);
        let values = [summary.waiting, summary.waiting_bytes, summary.dead, oldest_s];
        if shown.len() < connections_max {
            shown.push((labels, values));
        } else {
            let sum = others.get_or_insert([0; 4]);
            for (sum, value) in sum.iter_mut().zip(values).take(3) {
                *sum = sum.saturating_add(value);
            }
            sum[3] = sum[3].max(oldest_s);
        }
    }
    shown.extend(others.map(|sum| (r#"project="",connection="other",type="""#.to_owned(), sum)));
    let families = [
        ("postrider_queue_waiting", "Requests waiting in the connection's queue, those in flight included."),
        ("postrider_queue_waiting_bytes", "Bytes of the bodies of what waits."),
        ("postrider_dlq_dead", "Requests in the connection's dead-letter queue."),
        ("postrider_queue_oldest_waiting_seconds", "How long the oldest waiting request has waited."),
    ];
    for (index, (name, help)) in families.into_iter().enumerate() {
        page.family(name, "gauge", help);
        for (labels, values) in &shown {
            page.sample(name, labels, values[index]);
        }
    }
}

/// How many endpoints of each project do how, as far as this server knows: few series, however many endpoints there are.
fn about_endpoints(
    page: &mut Page,
    engine: &Engine,
    connections: &[Arc<Connection>],
    project_names: &BTreeMap<ProjectId, String>,
) {
    let mut counts: BTreeMap<ProjectId, [u64; 4]> = BTreeMap::new();
    for connection in connections {
        let Some(target) = connection.spec.target.webhook() else { continue };
        let standing = engine.endpoint_standing(EndpointId::of(connection.id));
        let state = standing.map(|endpoint| endpoint.row.state).unwrap_or_default();
        let index = match (state.off, target.enabled, state.health.failing_since) {
            (Some(_), ..) => 3,
            (None, false, _) => 2,
            (None, true, Some(_)) => 1,
            (None, true, None) => 0,
        };
        counts.entry(connection.project_id).or_default()[index] += 1;
    }
    let name = "postrider_endpoints";
    page.family(
        name,
        "gauge",
        "Webhook endpoints by how they do; those that the server switched off apart from those that are off.",
    );
    for (project, counts) in counts {
        let project = escaped(project_names.get(&project).map_or("", String::as_str));
        for (state, count) in ["on", "failing", "off", "switched_off"].into_iter().zip(counts) {
            page.sample(name, &format!("project=\"{project}\",state=\"{state}\""), count);
        }
    }
}

fn labels(project: &str, connection: &Connection) -> String {
    let (project, name) = (escaped(project), escaped(&connection.name));
    format!("project=\"{project}\",connection=\"{name}\",type=\"{}\"", connection.kind().as_str())
}

/// A label's value: backslash, quote and line feed are written with a backslash.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::id::QueueId;

    fn summary(waiting: u64, dead: u64) -> QueueSummary {
        let queue_id = QueueId::from_u128(1);
        QueueSummary { queue_id, waiting, waiting_bytes: 10, dead, oldest_waiting_since: None, owner: None }
    }

    #[test]
    fn beyond_the_limit_connections_are_summed_as_other() {
        let rows = || (1..=5).map(|n| (format!("connection=\"{n}\""), summary(n, 10 * n)));
        let text = |connections_max| {
            let mut page = Page(String::new());
            about_queues(&mut page, rows(), connections_max, Timestamp::from_millis(0));
            page.0
        };
        let bounded = text(2);
        assert!(bounded.contains("postrider_queue_waiting{connection=\"2\"} 2\n"), "{bounded}");
        assert!(!bounded.contains("connection=\"3\""), "{bounded}");
        assert!(
            bounded.contains("postrider_queue_waiting{project=\"\",connection=\"other\",type=\"\"} 12\n"),
            "{bounded}"
        );
        assert!(bounded.contains("postrider_dlq_dead{project=\"\",connection=\"other\",type=\"\"} 120\n"), "{bounded}");
        assert!(!text(5).contains("other"));
    }

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
