//! Webhook endpoints: how each does, its settings, tests, switching off and on, secrets and what it subscribes to.
//!
//! A secret is on a page once, right after it was made, and nowhere else. It must not know what switches an endpoint off.

use askama::Template;
use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::access::Scope;
use postrider_core::connection::ConnectionKind;
use postrider_core::settings::keys_of;
use postrider_core::{Timestamp, Wait};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::connections::Pulses;
use super::fault::{Fault, sentence};
use super::fields::{self, Field, camel};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::frame::Frame;
use super::listing::{Cell, Empty, Listing, column, numbers};
use super::order::Order;
use super::parts::{Badge, Count, Moment, Paging, Span, Tone};
use super::question::{Question, ask};
use super::schedule;
use super::settings::{delivery_tab, own_fields, with_choices};
use super::subscriptions::{Subscription, Subscriptions};
use super::visit::{Visit, segment, show};

const KIND: ConnectionKind = ConnectionKind::Webhook;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    pub id: String,
    pub name: String,
    pub url: Option<String>,
    pub enabled: bool,
    pub switched_off: Option<SwitchedOff>,
    pub verification: String,
    pub former_secret_signs_until: Option<Timestamp>,
    pub secret_unreadable: Option<Value>,
    pub signature_scheme: Option<String>,
    pub public_key: Option<String>,
    pub state: State,
    pub health: Health,
    /// Only of one that was just made or whose secret was just made anew.
    pub secret: Option<String>,
    #[serde(default)]
    pub warnings: Vec<Value>,
}

#[derive(Deserialize)]
pub struct SwitchedOff {
    pub reason: String,
    pub at: Timestamp,
}

#[derive(Deserialize)]
pub struct State {
    pub paused: bool,
    pub waiting: u64,
    pub dead: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    pub failing_since: Option<Timestamp>,
    #[serde(default)]
    pub failed_in_a_row: u64,
    pub last_test: Option<LastTest>,
}

#[derive(Deserialize)]
pub struct LastTest {
    pub at: Timestamp,
    pub succeeded: bool,
}

#[derive(Deserialize)]
struct Endpoints {
    data: Vec<Endpoint>,
    next_cursor: Option<String>,
}

impl Endpoint {
    pub fn badge(&self) -> Badge {
        let (tone, word) = match self {
            Endpoint { switched_off: Some(_), .. } => (Tone::Bad, "switched off"),
            Endpoint { verification, .. } if verification == "pending" => (Tone::Warning, "not verified"),
            Endpoint { verification, .. } if verification == "failed" => (Tone::Bad, "not verified"),
            Endpoint { enabled: false, .. } => (Tone::Quiet, "off"),
            Endpoint { state: State { paused: true, .. }, .. } => (Tone::Warning, "paused"),
            Endpoint { health: Health { failing_since: Some(_), .. }, .. } => (Tone::Warning, "failing"),
            _ => (Tone::Good, "on"),
        };
        Badge { tone, word }
    }

    fn why_off(&self) -> String {
        let Some(off) = &self.switched_off else { return String::new() };
        match off.reason.as_str() {
            "gone" => "It answered 410 Gone, which says that the address no longer exists.".to_owned(),
            "failures_in_a_row" => "Too many deliveries failed in a row.".to_owned(),
            "failing_for" => "It has been failing for too long.".to_owned(),
            other => sentence(&format!("the reason is {}", other.replace('_', " "))),
        }
    }
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    // A connection's page leads here by name.
    let named = visit.query.take("connection");
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let limit = if named.is_some() { 1000 } else { 100 };
    let page = visit.page_of_project("/endpoints");
    let order = Order::take(&mut visit.query, &page);
    let path = visit.of_project(format!("/endpoints?limit={limit}&{}{more}", order.query()));
    let found: Endpoints = visit.api.get(&path).await?;
    if let Some(one) = named.and_then(|name| found.data.iter().find(|endpoint| endpoint.name == name)) {
        return Ok(super::answer::redirect(&visit.page_of_project(format!("/endpoints/{}", one.id))));
    }
    let pulses: Pulses = visit.api.get(&visit.of_project("/flow/connections")).await?;
    let now = visit.now();
    let rows = found.data.iter().map(|endpoint| {
        vec![
            Cell::Link {
                href: visit.page_of_project(format!("/endpoints/{}", endpoint.id)),
                text: endpoint.name.clone(),
                below: endpoint.url.clone().unwrap_or_default(),
            },
            Cell::State(endpoint.badge()),
            Cell::Drawn(pulses.spark(KIND.as_str(), &endpoint.name)),
            Cell::Number(endpoint.state.waiting),
            Cell::Trouble(endpoint.state.dead),
            Cell::Time(endpoint.health.failing_since.map(|at| Moment { at, now })),
            Cell::Error(pulses.last_error(KIND.as_str(), &endpoint.name, now)),
        ]
    });
    let may_change = visit.may(Scope::Admin);
    let heads = if may_change {
        vec![("New endpoint", format!("{page}/new")), ("Subscriptions", visit.page_of_project("/subscriptions"))]
    } else {
        Vec::new()
    };
    show(&Listing {
        title: "Endpoints".to_owned(),
        intro: String::new(),
        heads,
        columns: vec![
            column("Endpoint").by("name"),
            column("State"),
            column("Last hour"),
            numbers("Waiting").by("waiting"),
            numbers("Dead letters").by("dead"),
            column("Failing since"),
            column("Last error"),
        ],
        order: Some(order.clone()),
        rows: rows.collect(),
        paging: Paging::of(&order.base(), cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty {
            title: "No endpoint yet",
            text: "An endpoint is an address of somebody else's that events are sent to, signed, and tried again until they arrive. Make one, and \
                   subscribe it to the types of events that it shall be sent.",
            example: "",
        },
        frame: visit.frame("Endpoints", "endpoints").await?,
    })
}

/// The settings as a file has them.
fn snake(known: &Map<String, Value>) -> Map<String, Value> {
    keys_of(KIND).filter_map(|doc| Some((doc.name.to_owned(), known.get(&camel(doc.name))?.clone()))).collect()
}

/// The same as the API has them.
fn as_camel(written: Map<String, Value>) -> Map<String, Value> {
    written.into_iter().map(|(name, value)| (camel(&name), value)).collect()
}

async fn sheet(visit: &Visit, name: &str, written: &Map<String, Value>) -> Sheet {
    let picture = schedule::of_settings(visit, KIND.as_str(), written).await;
    let mut own =
        vec![Field::line("name", "Name", "For people; made from the address when it is left empty.").holding(name)];
    let fields =
        own_fields(KIND, written).into_iter().map(|field| if field.name == "url" { field.required() } else { field });
    own.extend(fields.filter(|field| field.name != "enabled"));
    let way = visit.page_of_project(format!("/schedule?type={}", KIND.as_str()));
    let mut tabs = vec![
        Tab { id: "endpoint", label: "Endpoint", groups: vec![Group::open("", own)] },
        delivery_tab(KIND, written, picture.sentence()),
    ];
    with_choices(visit, &mut tabs).await;
    Sheet {
        title: "New endpoint".to_owned(),
        intro: "What is left empty has its default. The secret is made here and shown once.".to_owned(),
        action: visit.page_of_project("/endpoints/new"),
        back: visit.page_of_project("/endpoints"),
        button: "Create",
        hidden: Vec::new(),
        tabs,
        wrong: Vec::new(),
        end: None,
        schedule: Some((way, picture)),
    }
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New endpoint", "endpoints").await?;
    sheet(&visit, "", &Map::new()).await.show(frame, StatusCode::OK)
}

/// Keys that the form has; whether it is on is changed by its own buttons.
fn posted(form: &Form, known: &Map<String, Value>) -> Map<String, Value> {
    fields::written_over(keys_of(KIND).filter(|doc| doc.name != "enabled" && doc.name != "use_queue"), form, known)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let written = posted(&form, &Map::new());
    let sheet = sheet(&visit, "", &written).await;
    let frame = visit.frame("New endpoint", "endpoints").await?;
    if form.get("preview") == Some("1") {
        return sheet.with_typed(&form).show(frame, StatusCode::OK);
    }
    let mut body = as_camel(written);
    if let Some(name) = form.text("name") {
        body.insert("name".to_owned(), name.into());
    }
    match visit.api.post::<Endpoint>(&visit.of_project("/endpoints"), &Value::Object(body)).await {
        Ok(made) => shown_once(&visit, &made).await,
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}

#[derive(Template)]
#[template(path = "secret.html")]
pub struct SecretPage<'a> {
    pub frame: Frame,
    pub title: String,
    pub what: &'a str,
    pub secret: &'a str,
    pub next: String,
}

async fn shown_once(visit: &Visit, endpoint: &Endpoint) -> Result<Response, Fault> {
    show(&SecretPage {
        frame: visit.frame("The secret", "endpoints").await?,
        title: format!("The secret of {}", endpoint.name),
        what: "The receiver verifies signatures with it (Standard Webhooks).",
        secret: endpoint.secret.as_deref().unwrap_or_default(),
        next: visit.page_of_project(format!("/endpoints/{}", endpoint.id)),
    })
}

fn path(visit: &Visit, rest: &str) -> String {
    visit.of_project(format!("/endpoints/{}{rest}", segment(visit.segments.get("endpoint"))))
}

fn page(visit: &Visit, rest: &str) -> String {
    visit.page_of_project(format!("/endpoints/{}{rest}", segment(visit.segments.get("endpoint"))))
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Settings", "endpoints").await?;
    edit_sheet(&visit, &known, &snake(&known)).await.show(frame, StatusCode::OK)
}

async fn edit_sheet(visit: &Visit, known: &Map<String, Value>, written: &Map<String, Value>) -> Sheet {
    let name = known.get("name").and_then(Value::as_str).unwrap_or_default();
    let version = known.get("version").map(Value::to_string).unwrap_or_default();
    Sheet {
        title: format!("Settings of {name}"),
        intro: String::new(),
        action: page(visit, "/edit"),
        back: page(visit, ""),
        button: "Save",
        hidden: vec![("version", version)],
        ..sheet(visit, name, written).await
    }
}

pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit, "")).await?;
    let written = posted(&form, &snake(&known));
    let sheet = edit_sheet(&visit, &known, &written).await;
    let frame = visit.frame("Settings", "endpoints").await?;
    if form.get("preview") == Some("1") {
        return sheet.with_typed(&form).show(frame, StatusCode::OK);
    }
    let mut body = as_camel(written);
    if let Some(name) = form.text("name") {
        body.insert("name".to_owned(), name.into());
    }
    // As it was written, and not as it stands: an endpoint that the server switched off is not switched off by its settings.
    if known.get("enabled") == Some(&Value::Bool(false)) && known.get("switchedOff").is_none_or(Value::is_null) {
        body.insert("enabled".to_owned(), false.into());
    }
    body.insert("version".to_owned(), form.get("version").and_then(|text| text.parse::<u64>().ok()).into());
    match visit.api.ask::<Value>(Method::PUT, &path(&visit, ""), Some(&Value::Object(body))).await {
        Ok(_) => Ok(visit.done(&page(&visit, ""), "The settings are changed.")),
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}

#[derive(Template)]
#[template(path = "endpoint.html")]
struct EndpointPage<'a> {
    frame: Frame,
    visit: &'a Visit,
    endpoint: Endpoint,
    page: String,
    rules: Vec<String>,
    spark: String,
    subscriptions: Vec<Subscription>,
    may_operate: bool,
    may_change: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rules {
    on_gone: bool,
    after_failures: Option<u64>,
    failing_for_seconds: Option<f64>,
    due_at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HealthReport {
    switch_off: Rules,
}

impl Rules {
    fn told(&self, now: Timestamp) -> Vec<String> {
        let mut told = Vec::new();
        if self.on_gone {
            told.push("when it answers 410 Gone".to_owned());
        }
        if let Some(count) = self.after_failures {
            told.push(format!("after {count} deliveries that failed in a row"));
        }
        if let Some(seconds) = self.failing_for_seconds {
            let span = Span(Wait::from_millis((seconds * 1000.0) as u64));
            let due = self.due_at.filter(|at| *at > now).map(|at| format!(", that is in {}", Span(at.since(now))));
            told.push(format!("when it has been failing for {span}{}", due.unwrap_or_default()));
        }
        told
    }
}

pub async fn one(visit: Visit) -> Result<Response, Fault> {
    let endpoint: Endpoint = visit.api.get(&path(&visit, "")).await?;
    let report: HealthReport = visit.api.get(&path(&visit, "/health")).await?;
    let of_endpoint = visit.of_project(format!("/subscriptions?limit=1000&endpointId={}", endpoint.id));
    let subscriptions: Subscriptions = visit.api.get(&of_endpoint).await?;
    let pulses: Pulses = visit.api.get(&visit.of_project("/flow/connections")).await?;
    show(&EndpointPage {
        frame: visit.frame(&endpoint.name, "endpoints").await?,
        page: page(&visit, ""),
        rules: report.switch_off.told(visit.now()),
        spark: pulses.spark(KIND.as_str(), &endpoint.name),
        subscriptions: subscriptions.data,
        may_operate: visit.may(Scope::Operate),
        may_change: visit.may(Scope::Admin),
        endpoint,
        visit: &visit,
    })
}

#[derive(Deserialize)]
struct Tested {
    succeeded: bool,
    attempt: TestAttempt,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestAttempt {
    status: Option<u16>,
    error: Option<String>,
    took_ms: u64,
}

pub async fn test(visit: Visit, _: Form) -> Response {
    let back = page(&visit, "");
    match visit.api.post::<Tested>(&path(&visit, "/test"), &json!({})).await {
        Ok(Tested { succeeded: true, attempt }) => {
            let status = attempt.status.map_or_else(String::new, |status| format!(" {status}"));
            visit.done(
                &back,
                format!("The test succeeded: it answered{status} in {}.", Span(Wait::from_millis(attempt.took_ms))),
            )
        }
        Ok(Tested { attempt, .. }) => {
            let why = attempt.error.unwrap_or_else(|| "no reason is known".to_owned());
            visit
                .not_done(&back, format!("The test failed: {why}. A test is never tried again and counts for nothing."))
        }
        Err(refused) => visit.refused(&back, refused),
    }
}

pub async fn verify(visit: Visit, form: Form) -> Response {
    act(&visit, &form, "/verify", "It was asked to prove itself; its state says what it answered.").await
}

pub async fn enable(visit: Visit, _: Form) -> Response {
    let back = page(&visit, "");
    match visit.api.post::<Endpoint>(&path(&visit, "/enable"), &json!({})).await {
        Ok(endpoint) => {
            let warnings = endpoint.warnings.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
            let warned = if warnings.is_empty() { String::new() } else { format!(" Mind that {warnings}.") };
            visit.done(&back, format!("It is on, and its count of failures starts over.{warned}"))
        }
        Err(refused) => visit.refused(&back, refused),
    }
}

pub async fn disable(visit: Visit, form: Form) -> Response {
    act(&visit, &form, "/disable", "It is off: new events are not sent to it, now or later.").await
}

async fn act(visit: &Visit, _: &Form, verb: &str, said: &str) -> Response {
    let back = page(visit, "");
    match visit.api.post::<Value>(&path(visit, verb), &json!({})).await {
        Ok(_) => visit.done(&back, said),
        Err(refused) => visit.refused(&back, refused),
    }
}

/// Both secrets sign for a day, so that the receiver has time to learn the new one.
pub async fn rotate(visit: Visit, _: Form) -> Result<Response, Fault> {
    match visit.api.post::<Endpoint>(&path(&visit, "/rotate-secret"), &json!({})).await {
        Ok(endpoint) => shown_once(&visit, &endpoint).await,
        Err(refused) => Ok(visit.refused(&page(&visit, ""), refused)),
    }
}

pub async fn ask_rotate(visit: Visit) -> Result<Response, Fault> {
    let endpoint: Endpoint = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("New secret", "endpoints").await?;
    let facts =
        ["The former secret signs beside the new one for a day. Then the receiver must know the new one.".to_owned()];
    let title = format!("Make a new secret for {}?", endpoint.name);
    let (action, back) = (page(&visit, "/rotate"), page(&visit, ""));
    ask(
        frame,
        Question {
            title: &title,
            facts: &facts,
            action: &action,
            fields: &[],
            button: "Make a new secret",
            back: &back,
        },
    )
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let endpoint: Endpoint = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Delete", "endpoints").await?;
    let left = endpoint.state.waiting + endpoint.state.dead;
    let mut facts = vec!["Its subscriptions end, and its secret is gone.".to_owned()];
    if left > 0 {
        facts.push(format!(
            "{} waiting and {} dead letters are given up: they stay in the delivery log and are never sent.",
            endpoint.state.waiting, endpoint.state.dead
        ));
    }
    let title = format!("Delete {}?", endpoint.name);
    let fields = [("force", if left > 0 { "true" } else { "false" })];
    let (action, back) = (page(&visit, "/delete"), page(&visit, ""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &fields, button: "Delete it", back: &back },
    )
}

pub async fn delete(visit: Visit, form: Form) -> Response {
    let force = if form.is_on("force") { "?force=true" } else { "" };
    match visit.api.ask::<Value>(Method::DELETE, &path(&visit, force), None).await {
        Ok(_) => visit.done(&visit.page_of_project("/endpoints"), "The endpoint is deleted."),
        Err(refused) => visit.refused(&page(&visit, ""), refused),
    }
}
