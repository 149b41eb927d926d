//! The first page: whether messages flow, and if not, what blocks them, since when, and what to do.
//!
//! Its figures are kept counters; no table is scanned for it. It must not know what raises an alert.

use askama::Template;
use axum::response::Response;
use postrider_core::{Timestamp, Wait};
use serde::Deserialize;

use super::answer::redirect;
use super::charts::{self, Flow};
use super::connections::{Connection, Connections};
use super::families::api_of;
use super::fault::{Fault, sentence};
use super::frame::Frame;
use super::parts::{Count, Moment, Span};
use super::visit::{Visit, segment, show};

/// `/ui`: the first project that whoever is logged in can see.
pub async fn first_project(visit: Visit) -> Result<Response, Fault> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    #[derive(Deserialize)]
    struct List {
        data: Vec<Named>,
    }
    let projects: List = visit.api.get("/api/v1/projects").await?;
    let name = projects.data.first().map_or("default", |first| first.name.as_str());
    Ok(redirect(&format!("/ui/projects/{}", segment(name))))
}

/// What is wrong now.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    kind: String,
    connection: Option<String>,
    detail: String,
    action: String,
    raised_at: Timestamp,
}

impl Alert {
    fn what(&self) -> String {
        sentence(&self.detail)
    }

    fn advice(&self) -> String {
        sentence(&self.action)
    }
}

#[derive(Deserialize)]
struct Alerts {
    data: Vec<Alert>,
}

/// The head of a queue, as far as it says what blocks the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    id: String,
    attempts: u64,
    error: Option<String>,
    created_at: Timestamp,
    next_attempt_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Heads {
    data: Vec<Head>,
}

/// A queue whose head has failed, with everything behind it waiting.
struct Blocked {
    name: String,
    queue: String,
    head: String,
    attempts: u64,
    error: String,
    since: Timestamp,
    next: Option<Timestamp>,
    behind: u64,
}

/// A head that fails is told of once it has waited for so long: a retry or two are nobody's business.
const BLOCKED_AFTER: Wait = Wait::from_secs(20);

/// One row of each queue that has something in it; no queue is walked.
async fn blocked(visit: &Visit, busy: &[Connection]) -> Result<Vec<Blocked>, Fault> {
    let mut found = Vec::new();
    for connection in busy.iter().filter(|connection| connection.state.waiting > 0 && connection.is_ordered()) {
        let path = api_of(&connection.kind, &connection.name, "/queue", "limit=1");
        let heads: Heads = visit.api.get(&visit.of_project(path)).await?;
        for head in heads.data {
            let Some(error) = head.error.filter(|_| head.attempts > 0) else { continue };
            if visit.now().since(head.created_at) < BLOCKED_AFTER {
                continue;
            }
            found.push(Blocked {
                name: connection.name.clone(),
                queue: visit.page_of_project(format!("{}/queue", connection.page())),
                head: visit.page_of_project(format!("/deliveries/{}", segment(&head.id))),
                attempts: head.attempts,
                error,
                since: head.created_at,
                next: head.next_attempt_at,
                behind: connection.state.waiting.saturating_sub(1),
            });
        }
    }
    Ok(found)
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage<'a> {
    frame: Frame,
    visit: &'a Visit,
    blocked: Vec<Blocked>,
    alerts: Vec<Alert>,
    waiting: u64,
    dead: u64,
    oldest: Option<Moment>,
    /// Those with the most to say: dead letters or a queue.
    busy: Vec<Connection>,
    connections: usize,
    channels: usize,
    flow: Flow,
    range: &'static str,
}

impl OverviewPage<'_> {
    fn flow_chart(&self) -> String {
        charts::flow(&self.flow)
    }

    fn took_chart(&self) -> String {
        charts::took(&self.flow)
    }

    fn took(&self, millis: &Option<u64>) -> String {
        millis.map_or_else(|| "none".to_owned(), |millis| Span(Wait::from_millis(millis)).to_string())
    }
}

/// Ranges by the word in the address, as they are shown.
const RANGES: [(&str, &str); 3] = [("hour", "1 h"), ("day", "24 h"), ("week", "7 d")];

/// Connections, and channels, of which the figures are; those with the longest queues.
const LOOKED_AT: usize = 1000;
/// Connections that the page names.
const BUSY_ROWS: usize = 12;

pub async fn of_project(mut visit: Visit) -> Result<Response, Fault> {
    let asked = visit.query.take("range").unwrap_or_default();
    let (range, _) = RANGES.into_iter().find(|(word, _)| *word == asked).unwrap_or(RANGES[0]);
    let path = visit.of_project(format!("/flow?range={range}"));
    let flow: Flow = visit.api.get(&path).await?;
    let frame = visit.frame("Overview", "overview").await?;
    let alerts: Alerts = visit.api.get(&visit.of_project("/alerts?state=open&limit=20")).await?;
    let mut list: Connections =
        visit.api.get(&visit.of_project(format!("/connections?limit={LOOKED_AT}&sort=-waiting"))).await?;
    let channels: Connections =
        visit.api.get(&visit.of_project(format!("/channels?limit={LOOKED_AT}&sort=-waiting"))).await?;
    let (connections, channels_known) = (list.data.len(), channels.data.len());
    list.data.extend(channels.data.into_iter().map(|channel| {
        let kind = format!("channel_{}", channel.kind);
        Connection { kind, ..channel }
    }));
    let oldest = list.data.iter().filter_map(|connection| connection.state.oldest_waiting_since).min();
    let (waiting, dead) = list
        .data
        .iter()
        .fold((0, 0), |(waiting, dead), connection| (waiting + connection.state.waiting, dead + connection.state.dead));
    let mut busy = list.data;
    busy.retain(|connection| connection.state.waiting > 0 || connection.state.dead > 0 || connection.state.paused);
    busy.sort_by_key(|connection| std::cmp::Reverse((connection.state.dead > 0, connection.state.waiting)));
    busy.truncate(BUSY_ROWS);
    let now = visit.now();
    let blocked = blocked(&visit, &busy).await?;
    // What the head itself tells better.
    let is_told = |alert: &Alert| {
        alert.kind == "head_blocked" && blocked.iter().any(|one| alert.connection.as_deref() == Some(&one.name))
    };
    let mut alerts = alerts.data;
    alerts.retain(|alert| !is_told(alert));
    show(&OverviewPage {
        frame,
        blocked,
        alerts,
        waiting,
        dead,
        oldest: oldest.map(|at| Moment { at, now }),
        busy,
        connections,
        channels: channels_known,
        flow,
        range,
        visit: &visit,
    })
}
