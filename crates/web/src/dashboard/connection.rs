//! One connection: how it stands, its settings as a form with the delivery in a tab of its own, a request by hand, and its end.
//!
//! It must not know what any setting means: fields come from the definitions, and the API judges them.

use askama::Template;
use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::access::Scope;
use postrider_core::connection::ConnectionKind;
use postrider_core::settings::{ALIASES, DELIVERY_KEYS, KeyDoc, keys_of};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer::redirect;
use super::connections::{Connection, Pulses};
use super::fault::{Fault, nothing_here, sentence};
use super::fields::{self, Field, Widget, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::frame::Frame;
use super::listing::{Cell, Empty, Listing, column};
use super::parts::{Count, Moment, Paging};
use super::question::{Question, ask};
use super::schedule;
use super::visit::{Visit, segment, show};

/// Kinds that are made here, with what people call them. Endpoints have a page of their own.
pub fn kinds() -> impl Iterator<Item = (&'static str, String)> {
    let made_here = ConnectionKind::CONNECTIONS.into_iter().filter(|kind| *kind != ConnectionKind::Webhook);
    made_here.map(|kind| (kind.as_str(), kind_label(kind.as_str())))
}

pub fn kind_label(kind: &str) -> String {
    match kind {
        "mllp" => "HL7 MLLP".to_owned(),
        "fhir" => "HL7 FHIR".to_owned(),
        "webhook" => "Webhook endpoint".to_owned(),
        other => other.to_uppercase(),
    }
}

/// What opens under the line "On failure".
const ON_FAILURE: [&str; 4] =
    ["max_retries", "retry_sleep_time", "retry_backoff_multiplier", "retry_backoff_threshold"];
/// The dead-letter queue and its action.
const DLQ: [&str; 6] =
    ["use_dlq", "dlq_action", "dlq_retry_interval", "dlq_retries", "dlq_forward_to", "dlq_keep_header"];
const LADDER: [&str; 7] =
    ["retry_preset", "retry_delays", "max_attempts", "retryable_statuses", "timeout_seconds", "jitter", "retry_after"];

/// The tab of the first seed: the line "On failure", the queue, the dead-letter queue, and the ladder instead.
pub fn delivery_tab(kind: ConnectionKind, written: &Map<String, Value>, on_failure: String) -> Tab {
    let docs: Vec<&KeyDoc> =
        keys_of(kind).filter(|doc| DELIVERY_KEYS.iter().any(|delivery| delivery.name == doc.name)).collect();
    let pick = |names: &[&str]| -> Vec<Field> {
        let found = names.iter().filter_map(|name| docs.iter().find(|doc| doc.name == *name));
        found.map(|doc| field_of(doc, written)).collect()
    };
    let is_placed = |name: &str| ON_FAILURE.contains(&name) || DLQ.contains(&name) || LADDER.contains(&name);
    let is_endpoint = kind == ConnectionKind::Webhook;
    // An endpoint is always delivered from its queue.
    let mut of_queue = if is_endpoint { Vec::new() } else { pick(&["use_queue"]) };
    of_queue.extend(
        docs.iter().filter(|doc| doc.name != "use_queue" && !is_placed(doc.name)).map(|doc| field_of(doc, written)),
    );
    let ladder = match LADDER.iter().any(|key| written.contains_key(*key)) {
        true => "a ladder is in force",
        false if is_endpoint => "the preset webhook is in force, unless retries are set above",
        false => "not used",
    };
    Tab {
        id: "delivery",
        label: "Delivery",
        groups: vec![
            Group::folded("On failure", on_failure, pick(&ON_FAILURE)),
            Group::open("Queue", of_queue),
            Group::open("Dead-letter queue", pick(&DLQ)),
            Group::folded("A ladder of fixed waits instead", ladder.to_owned(), pick(&LADDER)),
        ],
    }
}

/// The keys that a form has: a second name of a key only where somebody wrote it.
pub fn form_keys(kind: ConnectionKind, known: &Map<String, Value>) -> impl Iterator<Item = &'static KeyDoc> {
    let is_alias = |doc: &KeyDoc| ALIASES.iter().any(|(alias, _)| *alias == doc.name);
    keys_of(kind).filter(move |doc| !is_alias(doc) || known.contains_key(doc.name))
}

/// Where a field names something that is there, it is chosen from a list.
pub async fn with_choices(visit: &Visit, tabs: &mut [Tab]) {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    #[derive(Deserialize)]
    struct List {
        data: Vec<Named>,
    }
    for (key, path) in [("security", "/security?limit=1000"), ("dlq_forward_to", "/topics?limit=1000")] {
        let Ok(list) = visit.api.get::<List>(&visit.of_project(path)).await else { continue };
        let fields = tabs.iter_mut().flat_map(|tab| &mut tab.groups).flat_map(|group| &mut group.fields);
        for field in fields.filter(|field| field.name == key) {
            let mut names: Vec<String> = list.data.iter().map(|named| named.name.clone()).collect();
            // One that is not there stays what it is, until somebody chooses another.
            if !field.value.is_empty() && !names.contains(&field.value) {
                names.push(field.value.clone());
            }
            let names = names.into_iter().map(|name| (name.clone(), name));
            field.widget = Widget::Choice(std::iter::once((String::new(), "none".to_owned())).chain(names).collect());
        }
    }
}

/// The keys of the kind itself.
pub fn own_fields(kind: ConnectionKind, written: &Map<String, Value>) -> Vec<Field> {
    let own = form_keys(kind, written).filter(|doc| !DELIVERY_KEYS.iter().any(|delivery| delivery.name == doc.name));
    own.map(|doc| field_of(doc, written)).collect()
}

fn parsed(kind: &str) -> Result<ConnectionKind, Fault> {
    ConnectionKind::parse(kind).ok_or_else(nothing_here)
}

async fn sheet(visit: &Visit, kind: ConnectionKind, name: &str, written: &Map<String, Value>) -> Sheet {
    let picture = schedule::of_settings(visit, kind.as_str(), written).await;
    let named = Field::line("name", "Name", "Unique among the connections of this kind. A new name keeps the queue.");
    let mut own = vec![named.required().holding(name)];
    own.extend(own_fields(kind, written));
    let way = visit.page_of_project(format!("/schedule?type={}", kind.as_str()));
    let mut tabs = vec![
        Tab { id: "connection", label: "Connection", groups: vec![Group::open("", own)] },
        delivery_tab(kind, written, picture.sentence()),
    ];
    with_choices(visit, &mut tabs).await;
    Sheet {
        title: String::new(),
        intro: String::new(),
        action: String::new(),
        back: String::new(),
        button: "Save",
        hidden: Vec::new(),
        tabs,
        wrong: Vec::new(),
        end: None,
        schedule: Some((way, picture)),
    }
}

async fn new_sheet(visit: &Visit, kind: ConnectionKind, written: &Map<String, Value>) -> Sheet {
    let sheet = sheet(visit, kind, "", written).await;
    Sheet {
        title: format!("New {} connection", kind_label(kind.as_str())),
        intro: "What is left empty has its default.".to_owned(),
        action: visit.page_of_project(format!("/connections/new/{}", kind.as_str())),
        back: visit.page_of_project("/connections"),
        button: "Create",
        ..sheet
    }
}

/// Which kind it shall be.
pub async fn choose(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New connection", "connections").await?;
    let rows = kinds().map(|(kind, label)| {
        let href = visit.page_of_project(format!("/connections/new/{kind}"));
        let what = match kind {
            "rest" => "Requests over HTTP, with any method and body.",
            "soap" => "Operations of a SOAP service; reads its WSDL.",
            "mllp" => "HL7 version 2 messages on a socket that stays open.",
            "fhir" => "Resources of an HL7 FHIR server.",
            _ => "",
        };
        vec![Cell::Link { href, text: label, below: String::new() }, Cell::Text(what.to_owned())]
    });
    let empty = Empty { title: "", text: "", example: "" };
    show(&Listing {
        frame,
        title: "New connection".to_owned(),
        intro: "Webhook endpoints are made on their own page.".to_owned(),
        heads: Vec::new(),
        columns: vec![column("Kind"), column("For")],
        rows: rows.collect(),
        paging: Paging::default(),
        empty,
    })
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let frame = visit.frame("New connection", "connections").await?;
    new_sheet(&visit, kind, &Map::new()).await.show(frame, StatusCode::OK)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let written = fields::written(form_keys(kind, &Map::new()), &form);
    let sheet = new_sheet(&visit, kind, &written).await;
    let frame = visit.frame("New connection", "connections").await?;
    if form.get("preview") == Some("1") {
        return sheet.with_typed(&form).show(frame, StatusCode::OK);
    }
    let mut body = written;
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    body.insert("type".to_owned(), kind.as_str().into());
    match visit.api.post::<Connection>(&visit.of_project("/connections"), &Value::Object(body)).await {
        Ok(made) => Ok(visit.done(&visit.page_of_project(made.page()), format!("{} is there.", made.name))),
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}

/// The path of this connection in the API.
fn path(visit: &Visit, rest: &str) -> String {
    let (kind, name) = (visit.segments.get("kind"), visit.segments.get("name"));
    visit.of_project(format!("/connections/{}{rest}?type={}", segment(name), segment(kind)))
}

fn page(visit: &Visit, rest: &str) -> String {
    let (kind, name) = (visit.segments.get("kind"), visit.segments.get("name"));
    visit.page_of_project(format!("/connections/{}/{}{rest}", segment(kind), segment(name)))
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let known: Map<String, Value> = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Settings", "connections").await?;
    edit_sheet(&visit, kind, &known, &known).await.show(frame, StatusCode::OK)
}

async fn edit_sheet(
    visit: &Visit,
    kind: ConnectionKind,
    known: &Map<String, Value>,
    written: &Map<String, Value>,
) -> Sheet {
    let name = known.get("name").and_then(Value::as_str).unwrap_or_default();
    let version = known.get("version").map(Value::to_string).unwrap_or_default();
    let sheet = sheet(visit, kind, name, written).await;
    Sheet {
        title: format!("Settings of {name}"),
        action: page(visit, "/edit"),
        back: page(visit, ""),
        hidden: vec![("version", version)],
        ..sheet
    }
}

pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let known: Map<String, Value> = visit.api.get(&path(&visit, "")).await?;
    let written = fields::written_over(form_keys(kind, &known), &form, &known);
    let sheet = edit_sheet(&visit, kind, &known, &written).await;
    let frame = visit.frame("Settings", "connections").await?;
    if form.get("preview") == Some("1") {
        return sheet.with_typed(&form).show(frame, StatusCode::OK);
    }
    let mut body = written;
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    body.insert("version".to_owned(), form.get("version").and_then(|text| text.parse::<u64>().ok()).into());
    let asked = visit.api.ask::<Connection>(Method::PUT, &path(&visit, ""), Some(&Value::Object(body))).await;
    match asked {
        Ok(changed) => Ok(visit.done(&visit.page_of_project(changed.page()), "The settings are changed.")),
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}

#[derive(Template)]
#[template(path = "connection.html")]
struct ConnectionPage {
    frame: Frame,
    connection: Connection,
    page: String,
    spark: String,
    settings: Vec<(String, String)>,
    on_failure: String,
    oldest: Option<Moment>,
    may_operate: bool,
    may_send: bool,
    may_change: bool,
}

pub async fn one(visit: Visit) -> Result<Response, Fault> {
    let all: Map<String, Value> = visit.api.get(&path(&visit, "")).await?;
    let kind = parsed(visit.segments.get("kind"))?;
    let connection: Connection =
        serde_json::from_value(Value::Object(all.clone())).map_err(|_| Fault::broken("a connection cannot be read"))?;
    if kind == ConnectionKind::Webhook {
        return Ok(redirect(&visit.page_of_project(format!("/endpoints?connection={}", segment(&connection.name)))));
    }
    let pulses: Pulses = visit.api.get(&visit.of_project("/flow/connections")).await?;
    let shown = keys_of(kind).filter_map(|doc| {
        let value = all.get(doc.name)?;
        Some((super::labels::label_of(doc.name), field_of(doc, &all).value)).filter(|_| !value.is_null())
    });
    let picture = schedule::of_settings(&visit, kind.as_str(), &all).await;
    let now = visit.now();
    show(&ConnectionPage {
        frame: visit.frame(&connection.name, "connections").await?,
        page: page(&visit, ""),
        spark: pulses.spark(&connection.kind, &connection.name),
        settings: shown.collect(),
        on_failure: picture.sentence(),
        oldest: connection.state.oldest_waiting_since.map(|at| Moment { at, now }),
        may_operate: visit.may(Scope::Operate),
        may_send: visit.may(Scope::Send),
        may_change: visit.may(Scope::Admin),
        connection,
    })
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let connection: Connection = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Delete", "connections").await?;
    let left = connection.state.waiting + connection.state.dead;
    let mut facts = vec!["Nobody can send to it any more, and subscriptions that push to it end.".to_owned()];
    let force = left > 0;
    if force {
        facts.push(format!(
            "{} waiting and {} dead letters are given up: they stay in the delivery log and are never sent.",
            connection.state.waiting, connection.state.dead
        ));
    }
    let title = format!("Delete {}?", connection.name);
    let button = if force { "Delete it and give up what is in it" } else { "Delete it" };
    let fields = [("force", if force { "true" } else { "false" })];
    let (action, back) = (page(&visit, "/delete"), page(&visit, ""));
    ask(frame, Question { title: &title, facts: &facts, action: &action, fields: &fields, button, back: &back })
}

pub async fn delete(visit: Visit, form: Form) -> Response {
    let force = if form.is_on("force") { "&force=true" } else { "" };
    let asked = visit.api.ask::<Value>(Method::DELETE, &format!("{}{force}", path(&visit, "")), None).await;
    match asked {
        Ok(_) => {
            visit.done(&visit.page_of_project("/connections"), format!("{} is deleted.", visit.segments.get("name")))
        }
        Err(refused) => visit.not_done(&page(&visit, ""), sentence(&refused.detail)),
    }
}

#[derive(Deserialize)]
struct Pinged {
    is_reachable: bool,
    address: Option<String>,
    status: Option<u16>,
    error: Option<String>,
    advice: Option<String>,
    stages: Vec<PingStage>,
}

#[derive(Deserialize)]
struct PingStage {
    #[serde(rename = "tookMs")]
    took_ms: f64,
}

/// Whether the remote system is there. No request of anybody's is sent.
pub async fn ping(visit: Visit, _: Form) -> Response {
    let back = page(&visit, "");
    let pinged = match visit.api.post::<Pinged>(&path(&visit, "/ping"), &json!({})).await {
        Ok(pinged) => pinged,
        Err(refused) => return visit.not_done(&back, sentence(&refused.detail)),
    };
    let advice = pinged.advice.map(|advice| format!(" {}", sentence(&advice))).unwrap_or_default();
    if !pinged.is_reachable {
        let why = pinged.error.unwrap_or_else(|| "no reason is known".to_owned());
        return visit.not_done(&back, format!("It cannot be reached: {why}.{advice}"));
    }
    let took: f64 = pinged.stages.iter().map(|stage| stage.took_ms).sum();
    let status = pinged.status.map(|status| format!(", answering {status}")).unwrap_or_default();
    let at = pinged.address.map(|address| format!(" at {address}")).unwrap_or_default();
    visit.done(&back, format!("It can be reached{at}{status}, in {took:.1} ms.{advice}"))
}

#[derive(Template)]
#[template(path = "send.html")]
struct SendPage {
    frame: Frame,
    name: String,
    page: String,
    fields: Vec<Field>,
    /// What became of the last one, as the API says it, and in a sentence.
    result: Option<(String, String)>,
    wrong: Option<String>,
}

fn send_fields(kind: &str) -> Vec<Field> {
    let methods = ["POST", "PUT", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS"];
    let methods = methods.map(|word| (word.to_owned(), word.to_owned())).to_vec();
    let body = Field::line("body", "Body", "Sent as it stands here.").shown_as(Widget::Lines);
    match kind {
        "rest" => vec![
            Field::line("method", "Method", "GET, HEAD and OPTIONS never wait in the queue.")
                .shown_as(Widget::Choice(methods)),
            Field::line("path", "Path", "Behind the path of the connection; it may be empty."),
            body,
        ],
        "soap" => vec![Field::line("operation", "Operation", "One of the service's operations."), body],
        _ => vec![body],
    }
}

pub async fn show_send(visit: Visit) -> Result<Response, Fault> {
    let connection: Connection = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Send a request", "connections").await?;
    let fields = send_fields(&connection.kind);
    show(&SendPage { frame, name: connection.name, page: page(&visit, ""), fields, result: None, wrong: None })
}

/// One request by hand, as any other: it waits in the queue where the connection has one.
pub async fn send(visit: Visit, form: Form) -> Result<Response, Fault> {
    let connection: Connection = visit.api.get(&path(&visit, "")).await?;
    let mut fields = send_fields(&connection.kind);
    super::fields::typed(&mut fields, &form);
    let mut body = Map::new();
    for name in ["method", "path", "operation"] {
        if let Some(text) = form.text(name) {
            body.insert(name.to_owned(), text.into());
        }
    }
    if let Some(text) = form.get("body").filter(|text| !text.is_empty()) {
        body.insert("body".to_owned(), as_sent(&connection.kind, text).into());
    }
    let asked = visit.api.post::<Value>(&path(&visit, "/send"), &Value::Object(body)).await;
    let (result, wrong) = match asked {
        Ok(result) => {
            let text = serde_json::to_string_pretty(&result).unwrap_or_default();
            (Some((said(&result), text)), None)
        }
        Err(refused) => {
            let left = fields::refuse(&mut fields, &refused.errors);
            let is_shown = !refused.errors.is_empty() && left.is_empty();
            (None, (!is_shown).then(|| sentence(&refused.detail)))
        }
    };
    let frame = visit.frame("Send a request", "connections").await?;
    show(&SendPage { frame, name: connection.name, page: page(&visit, ""), fields, result, wrong })
}

/// Segments of HL7 end in a carriage return, which no text area keeps.
fn as_sent(kind: &str, text: &str) -> String {
    if kind == "mllp" { text.trim_end().replace('\n', "\r") + "\r" } else { text.to_owned() }
}

fn said(result: &Value) -> String {
    let is = |name: &str| result[name] == true;
    let error = result["error"].as_str().unwrap_or("no reason is known");
    match () {
        () if is("is_ok") => "Delivered.".to_owned(),
        () if is("is_in_queue") => "Not delivered yet: it waits in the queue.".to_owned(),
        () if is("is_in_dlq") => format!("Not delivered: it is in the dead-letter queue ({error})."),
        () => format!("Not delivered: {error}."),
    }
}
