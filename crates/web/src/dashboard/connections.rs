//! The connections of a project: how each stands, what waits, what is dead. It must not know what their settings mean.

use askama::Template;
use axum::response::Response;
use postrider_core::Timestamp;
use postrider_core::access::Scope;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fault::{Fault, sentence};
use super::form::Form;
use super::frame::Frame;
use super::parts::{Badge, Count, Moment, Paging, Tone};
use super::visit::{Visit, segment, show};

/// A connection as the API shows it, as far as lists need it.
#[derive(Deserialize)]
pub struct Connection {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub host: Option<String>,
    pub address: Option<String>,
    pub url_path: Option<String>,
    pub url: Option<String>,
    pub ordered: Option<bool>,
    pub retry_preset: Option<Value>,
    pub state: State,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub paused: bool,
    #[serde(rename = "is_active")]
    pub is_active: bool,
    pub draining: bool,
    pub waiting: u64,
    pub dead: u64,
    pub oldest_waiting_since: Option<Timestamp>,
}

#[derive(Deserialize)]
pub struct Connections {
    pub data: Vec<Connection>,
    pub next_cursor: Option<String>,
}

/// The last hour of each connection.
#[derive(Deserialize)]
pub struct Pulses {
    data: Vec<Pulse>,
}

#[derive(Deserialize)]
struct Pulse {
    connection: String,
    #[serde(rename = "type")]
    kind: String,
    delivered: Vec<u64>,
    failed: Vec<u64>,
}

impl Pulses {
    /// Nothing for one without attempts.
    pub fn spark(&self, kind: &str, name: &str) -> String {
        let found = self.data.iter().find(|pulse| pulse.kind == kind && pulse.connection == name);
        found.map(|pulse| super::charts::spark(&pulse.delivered, &pulse.failed)).unwrap_or_default()
    }
}

impl Connection {
    /// Strictly one after the other (D17): unless a ladder or the connection itself gives it up.
    pub fn is_ordered(&self) -> bool {
        self.ordered.unwrap_or(self.retry_preset.is_none() && self.kind != "webhook")
    }

    /// Where it leads, as far as one line can say it.
    pub fn target(&self) -> String {
        let place = self.host.as_deref().or(self.address.as_deref()).or(self.url.as_deref()).unwrap_or_default();
        format!("{place}{}", self.url_path.as_deref().unwrap_or_default())
    }

    pub fn badge(&self) -> Badge {
        let (tone, word) = match &self.state {
            state if !state.is_active => (Tone::Quiet, "inactive"),
            state if state.paused => (Tone::Warning, "paused"),
            state if state.draining => (Tone::Waiting, "draining"),
            state if state.waiting > 0 => (Tone::Waiting, "waiting"),
            _ => (Tone::Good, "clear"),
        };
        Badge { tone, word }
    }

    /// Its pages, below the project.
    pub fn page(&self) -> String {
        format!("/connections/{}/{}", self.kind, segment(&self.name))
    }
}

#[derive(Template)]
#[template(path = "connections.html")]
struct ConnectionsPage<'a> {
    frame: Frame,
    visit: &'a Visit,
    list: Connections,
    paging: Paging,
    may_operate: bool,
    may_change: bool,
    pulses: Pulses,
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let query = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let path = visit.of_project(format!("/connections?limit=100{query}"));
    let list: Connections = visit.api.get(&path).await?;
    let pulses: Pulses = visit.api.get(&visit.of_project("/flow/connections")).await?;
    let frame = visit.frame("Connections", "connections").await?;
    let paging = Paging::of(&visit.page_of_project("/connections"), cursor.as_deref(), list.next_cursor.as_deref());
    let (may_operate, may_change) = (visit.may(Scope::Operate), visit.may(Scope::Admin));
    show(&ConnectionsPage { frame, list, paging, may_operate, may_change, pulses, visit: &visit })
}

pub async fn pause(visit: Visit, form: Form) -> Response {
    act(&visit, &form, "pause", "paused: requests are stored and nothing is sent").await
}

pub async fn resume(visit: Visit, form: Form) -> Response {
    act(&visit, &form, "resume", "resumed: what waits is delivered in its order").await
}

/// Acts and goes back to where the button was.
async fn act(visit: &Visit, form: &Form, verb: &str, what: &str) -> Response {
    let (kind, name) = (visit.segments.get("kind"), visit.segments.get("name"));
    let path = visit.of_project(format!("/connections/{}/{verb}?type={}", segment(name), segment(kind)));
    let back = form.way_back(&visit.page_of_project("/connections"));
    match visit.api.post::<Value>(&path, &json!({})).await {
        Ok(_) => visit.done(&back, format!("{name} is {what}.")),
        Err(refused) => visit.not_done(&back, sentence(&refused.detail)),
    }
}
