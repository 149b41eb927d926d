//! The lists of connections, channels and services: how each stands, what waits, what is dead. It must not know what their settings mean.

use axum::response::Response;
use postrider_core::Timestamp;
use postrider_core::access::Scope;
use postrider_core::connection::Family;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::families::{api_of, kind_label, page_of, words};
use super::fault::Fault;
use super::form::Form;
use super::frame::Frame;
use super::listing::{ACTS, Act, Cell, Column, Empty, Listing, column, numbers};
use super::order::Order;
use super::parts::{Badge, Moment, Paging, Tone};
use super::visit::{Visit, segment, show};

/// A connection as the API shows it, as far as lists need it.
#[derive(Deserialize)]
pub struct Connection {
    pub name: String,
    /// A channel says what it speaks, and a service nothing: pages put the kind in its place.
    #[serde(rename = "type", default)]
    pub kind: String,
    pub host: Option<String>,
    pub address: Option<String>,
    pub url_path: Option<String>,
    pub url: Option<String>,
    pub ordered: Option<bool>,
    pub retry_preset: Option<Value>,
    /// Of a channel.
    pub method: Option<Value>,
    pub service: Option<String>,
    pub forward_to: Option<Value>,
    #[serde(default)]
    pub state: State,
    #[serde(default)]
    pub warnings: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub paused: bool,
    #[serde(rename = "is_active")]
    pub is_active: bool,
    pub draining: bool,
    pub waiting: u64,
    pub dead: u64,
    pub oldest_waiting_since: Option<Timestamp>,
    /// Of a channel with a port of its own.
    pub listening: Option<bool>,
}

#[derive(Deserialize)]
pub struct Connections {
    pub data: Vec<Connection>,
    pub next_cursor: Option<String>,
}

/// The last hour of each connection, and how the last attempt that failed did so.
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
    #[serde(rename = "lastError")]
    last_error: Option<LastError>,
}

#[derive(Deserialize)]
struct LastError {
    at: Timestamp,
    failure: String,
    error: Option<String>,
}

impl Pulses {
    pub async fn of(visit: &Visit) -> Result<Pulses, Fault> {
        Ok(visit.api.get(&visit.of_project("/flow/connections")).await?)
    }

    fn find(&self, kind: &str, name: &str) -> Option<&Pulse> {
        self.data.iter().find(|pulse| pulse.kind == kind && pulse.connection == name)
    }

    /// Nothing for one without attempts.
    pub fn spark(&self, kind: &str, name: &str) -> String {
        self.find(kind, name).map(|pulse| super::charts::spark(&pulse.delivered, &pulse.failed)).unwrap_or_default()
    }

    /// Since this server started; its words are for those who see bodies.
    pub fn last_error(&self, kind: &str, name: &str, now: Timestamp) -> Option<(Moment, String, String)> {
        let last = self.find(kind, name)?.last_error.as_ref()?;
        Some((Moment { at: last.at, now }, last.failure.clone(), last.error.clone().unwrap_or_default()))
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
        let methods = match &self.method {
            Some(Value::String(words)) => format!("{words} "),
            Some(Value::Array(words)) => {
                words.iter().filter_map(Value::as_str).map(|word| format!("{word} ")).collect()
            }
            _ => String::new(),
        };
        format!("{methods}{place}{}", self.url_path.as_deref().unwrap_or_default())
    }

    /// What a channel does with each request.
    pub fn runs(&self) -> String {
        match (&self.service, &self.forward_to) {
            (Some(service), _) if !service.is_empty() => service.clone(),
            (_, Some(Value::Array(names))) => {
                format!("into {}", names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
            }
            (_, Some(Value::String(names))) => format!("into {names}"),
            _ => String::new(),
        }
    }

    pub fn badge(&self) -> Badge {
        let (tone, word) = match &self.state {
            // A service has no such setting.
            state if !state.is_active && self.kind != "service" => (Tone::Quiet, "inactive"),
            state if state.listening == Some(false) => (Tone::Bad, "not listening"),
            state if state.paused => (Tone::Warning, "paused"),
            state if state.draining => (Tone::Waiting, "draining"),
            state if state.waiting > 0 => (Tone::Waiting, "waiting"),
            _ => (Tone::Good, "clear"),
        };
        Badge { tone, word }
    }

    /// Its pages, below the project.
    pub fn page(&self) -> String {
        page_of(&self.kind, &self.name, "")
    }
}

pub async fn list(visit: Visit) -> Result<Response, Fault> {
    family(visit, Family::Connection).await
}

pub async fn channels(visit: Visit) -> Result<Response, Fault> {
    family(visit, Family::Channel).await
}

async fn family(mut visit: Visit, family: Family) -> Result<Response, Fault> {
    let words = words(family);
    let page = visit.page_of_project(format!("/{}", words.place));
    let order = Order::take(&mut visit.query, &page);
    let cursor = visit.query.take("cursor");
    let query = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let path = visit.of_project(format!("/{}?limit=100&{}{query}", words.place, order.query()));
    let mut list: Connections = visit.api.get(&path).await?;
    if family == Family::Channel {
        list.data.iter_mut().for_each(|channel| channel.kind = format!("channel_{}", channel.kind));
    }
    let pulses = Pulses::of(&visit).await?;
    let frame = visit.frame(words.title, words.place).await?;
    let rows = list.data.iter().map(|connection| row(&visit, &frame, connection, &pulses, family)).collect();
    let heads = if visit.may(Scope::Admin) {
        vec![(new_label(family), visit.page_of_project(format!("/{}/new", words.place)))]
    } else {
        Vec::new()
    };
    show(&Listing {
        title: words.title.to_owned(),
        intro: String::new(),
        heads,
        columns: columns(family),
        order: Some(order.clone()),
        rows,
        paging: Paging::of(&order.base(), cursor.as_deref(), list.next_cursor.as_deref()),
        empty: empty(family),
        frame,
    })
}

pub const fn new_label(family: Family) -> &'static str {
    match family {
        Family::Connection => "New connection",
        Family::Channel => "New channel",
        Family::Service => "New service",
    }
}

fn columns(family: Family) -> Vec<Column> {
    let mut columns = vec![column("Name").by("name")];
    if family == Family::Channel {
        columns.push(column("Runs"));
    }
    columns.extend([
        column("State"),
        column("Last hour"),
        numbers("Waiting").by("waiting"),
        numbers("Dead letters").by("dead"),
        column("Last error"),
        ACTS,
    ]);
    columns
}

fn row(visit: &Visit, frame: &Frame, connection: &Connection, pulses: &Pulses, family: Family) -> Vec<Cell> {
    let page = visit.page_of_project(connection.page());
    let Connection { name, kind, state, .. } = connection;
    let mut cells = vec![Cell::Link {
        href: page.clone(),
        text: name.clone(),
        below: format!("{} · {}", kind_label(kind), connection.target()),
    }];
    if family == Family::Channel {
        cells.push(Cell::Text(connection.runs()));
    }
    let of = format!("of {name}");
    let mut acts = vec![Act::link("Delivery queue", of.as_str(), format!("{page}/queue"))];
    if visit.may(Scope::Operate) {
        let (label, verb) = if state.paused { ("Resume", "resume") } else { ("Pause", "pause") };
        acts.push(Act::button(label, name.as_str(), format!("{page}/{verb}"), frame));
    }
    cells.extend([
        Cell::State(connection.badge()),
        Cell::Drawn(pulses.spark(kind, name)),
        Cell::Waiting(state.waiting, state.oldest_waiting_since.map(|at| Moment { at, now: frame.now })),
        Cell::Trouble(state.dead),
        Cell::Error(pulses.last_error(kind, name, frame.now)),
        Cell::Acts(acts),
    ]);
    cells
}

const fn empty(family: Family) -> Empty {
    match family {
        Family::Connection => Empty {
            title: "No connection yet",
            text: "A connection is where requests go: a REST, SOAP or FHIR address, an HL7 MLLP listener. Each has a queue of its own, a dead-letter \
                   queue and rules for retries. Make one here, with the API, or import a file:",
            example: "postrider import connections.yaml",
        },
        Family::Channel | Family::Service => Empty {
            title: "No channel yet",
            text: "A channel is an address of this server that accepts requests: over HTTP, SOAP or HL7 MLLP. With its queue on, a request is on disk \
                   before the caller is told, and its service runs from the queue until it succeeds. Make one here, or:",
            example: "postrider channels create rest Orders service=orders url_path=/orders method=POST use_queue=true",
        },
    }
}

/// Where the API has the one in the path.
pub fn api(visit: &Visit, rest: &str, query: &str) -> String {
    visit.of_project(api_of(visit.segments.get("kind"), visit.segments.get("name"), rest, query))
}

/// Its page; `rest` is behind it.
pub fn page(visit: &Visit, rest: &str) -> String {
    visit.page_of_project(page_of(visit.segments.get("kind"), visit.segments.get("name"), rest))
}

/// The one in the path, with all that the API says of it.
pub async fn found(visit: &Visit) -> Result<(Map<String, Value>, Connection), Fault> {
    let all: Map<String, Value> = visit.api.get(&api(visit, "", "")).await?;
    let connection: Connection =
        serde_json::from_value(Value::Object(all.clone())).map_err(|_| Fault::broken("a connection cannot be read"))?;
    Ok((all, Connection { kind: visit.segments.get("kind").to_owned(), ..connection }))
}

pub async fn pause(visit: Visit, form: Form) -> Response {
    act(&visit, &form, "/pause", "paused: requests are stored and nothing is sent").await
}

pub async fn resume(visit: Visit, form: Form) -> Response {
    act(&visit, &form, "/resume", "resumed: what waits is delivered in its order").await
}

/// Acts and goes back to where the button was.
async fn act(visit: &Visit, form: &Form, verb: &str, what: &str) -> Response {
    let back = form.way_back(&page(visit, ""));
    match visit.api.post::<Value>(&api(visit, verb, ""), &json!({})).await {
        Ok(_) => visit.done(&back, format!("{} is {what}.", visit.segments.get("name"))),
        Err(refused) => visit.refused(&back, refused),
    }
}
