//! The destinations of a source: where what came in is forwarded, each with terms of its own. It must not know how a forward is made.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::connection::ConnectionKind;
use postrider_core::id::SubscriptionId;
use postrider_core::settings::{KeyDoc, PUSH_KEYS, keys_of};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::families::page_of;
use super::fault::Fault;
use super::fields::{self, Field, Widget, camel, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::parts::{Badge, Tone};
use super::question::{Question, ask};
use super::settings::with_choices;
use super::sources::Source;
use super::subscriptions::targets;
use super::visit::{Visit, segment};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    pub id: String,
    pub source_id: String,
    pub name: Option<String>,
    pub url: Option<String>,
    pub connection: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub enabled: bool,
}

#[derive(Deserialize)]
pub struct Destinations {
    pub data: Vec<Destination>,
}

impl Destination {
    pub fn label(&self) -> String {
        let named = self.name.clone().filter(|name| !is_made(name));
        named.or_else(|| self.connection.clone()).unwrap_or_else(|| self.id.clone())
    }

    pub fn leads_to(&self) -> &str {
        self.url.as_deref().unwrap_or_default()
    }

    pub fn badge(&self) -> Badge {
        if self.enabled { Badge { tone: Tone::Good, word: "on" } } else { Badge { tone: Tone::Quiet, word: "off" } }
    }

    /// Where its forwards wait, below the project.
    pub fn queue(&self) -> Option<String> {
        Some(page_of(self.kind.as_deref()?, self.connection.as_deref()?, "/queue"))
    }
}

/// Nobody has given it a name: it has that of its subscription's id.
fn is_made(name: &str) -> bool {
    name.is_empty() || name.starts_with(SubscriptionId::PREFIX)
}

/// The keys of the subscription that a destination is; what it selects is the source's topic.
fn keys() -> impl Iterator<Item = &'static KeyDoc> {
    PUSH_KEYS.iter().filter(|doc| doc.name != "event_type")
}

/// Of the endpoint that is made for an address.
fn endpoint_keys() -> impl Iterator<Item = &'static KeyDoc> {
    const OF_ENDPOINT: [&str; 5] = ["description", "retry_preset", "security", "concurrency", "rate_limit_per_second"];
    keys_of(ConnectionKind::Webhook).filter(|doc| OF_ENDPOINT.contains(&doc.name))
}

fn terms(written: &Map<String, Value>) -> (Vec<Field>, Group) {
    let (first, rest): (Vec<_>, Vec<_>) = keys().partition(|doc| doc.name == "enabled");
    let rest: Vec<Field> = rest.into_iter().map(|doc| field_of(doc, written)).collect();
    let is_set = rest.iter().any(|field| !field.value.is_empty() && field.value != "false");
    let summary = if is_set { "some are set" } else { "those of the connection hold" };
    let first = first.into_iter().map(|doc| field_of(doc, written)).collect();
    (first, Group::folded("Its own terms", summary.to_owned(), rest))
}

async fn new_sheet(visit: &Visit, written: &Map<String, Value>) -> Result<Sheet, Fault> {
    let source: Source = visit.api.get(&super::sources::path(visit, "")).await?;
    let (enabled, terms) = terms(written);
    let none = std::iter::once((String::new(), "the URL above".to_owned()));
    let targets = none.chain(targets(visit).await?).collect();
    let mut first = vec![
        Field::line(
            "url",
            "URL",
            "An endpoint of its own is made for it, with the preset `forward`: what came in goes on as it arrived.",
        ),
        Field::line("target", "Or sent to", "An endpoint or a connection that is there already.")
            .shown_as(Widget::Choice(targets)),
        Field::line("name", "Name", "For people; made from the address when it is left empty."),
    ];
    first.extend(enabled);
    let of_endpoint = endpoint_keys().map(|doc| field_of(doc, written)).collect();
    let groups = vec![
        Group::open("", first),
        terms,
        Group::folded("The endpoint that is made for the URL", "defaults".to_owned(), of_endpoint),
    ];
    let mut tabs = vec![Tab { id: "destination", label: "Destination", groups }];
    with_choices(visit, &mut tabs).await;
    Ok(Sheet {
        title: format!("New destination of {}", source.name),
        intro: String::new(),
        action: super::sources::page(visit, "/destinations/new"),
        back: super::sources::page(visit, ""),
        button: "Create",
        hidden: Vec::new(),
        tabs,
        wrong: Vec::new(),
        end: None,
        schedule: None,
    })
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New destination", "sources").await?;
    new_sheet(&visit, &Map::new()).await?.show(frame, StatusCode::OK)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let written = fields::written(keys().chain(endpoint_keys()), &form);
    let sheet = new_sheet(&visit, &written).await?;
    let mut body: Map<String, Value> = written.into_iter().map(|(name, value)| (camel(&name), value)).collect();
    body.insert("sourceId".to_owned(), visit.segments.get("source").into());
    for name in ["url", "name"] {
        if let Some(text) = form.text(name) {
            body.insert(name.to_owned(), text.into());
        }
    }
    if let Some((kind, name)) = form.get("target").and_then(|target| target.split_once('/')) {
        body.insert("connection".to_owned(), name.into());
        body.insert("type".to_owned(), kind.into());
    }
    match visit.api.post::<Destination>(&visit.of_project("/destinations"), &Value::Object(body)).await {
        Ok(made) => {
            Ok(visit
                .done(&super::sources::page(&visit, ""), format!("What comes in is forwarded to {}.", made.label())))
        }
        Err(refused) => sheet.refused(visit.frame("New destination", "sources").await?, &form, refused),
    }
}

fn path(visit: &Visit) -> String {
    visit.of_project(format!("/destinations/{}", segment(visit.segments.get("destination"))))
}

fn page(visit: &Visit, rest: &str) -> String {
    visit.page_of_project(format!("/destinations/{}{rest}", segment(visit.segments.get("destination"))))
}

fn snake(known: &Map<String, Value>) -> Map<String, Value> {
    keys().filter_map(|doc| Some((doc.name.to_owned(), known.get(&camel(doc.name))?.clone()))).collect()
}

/// The page of the source that a destination is of.
fn back(visit: &Visit, source: &str) -> String {
    visit.page_of_project(format!("/sources/{}", segment(source)))
}

fn edit_sheet(visit: &Visit, known: &Map<String, Value>, written: &Map<String, Value>) -> Sheet {
    let text = |name: &str| known.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = if is_made(text("name")) { "" } else { text("name") };
    let (enabled, terms) = terms(written);
    let mut first = vec![Field::line("name", "Name", "For people.").holding(name)];
    first.extend(enabled);
    Sheet {
        title: format!("Settings of the destination {}", if name.is_empty() { text("connection") } else { name }),
        intro: format!("It leads to {}; what that is sent with is set there.", text("url")),
        action: page(visit, ""),
        back: back(visit, text("sourceId")),
        button: "Save",
        hidden: vec![("version", known.get("version").map(Value::to_string).unwrap_or_default())],
        tabs: vec![Tab { id: "destination", label: "Destination", groups: vec![Group::open("", first), terms] }],
        wrong: Vec::new(),
        end: Some(("Delete", page(visit, "/delete"))),
        schedule: None,
    }
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit)).await?;
    let frame = visit.frame("Destination", "sources").await?;
    edit_sheet(&visit, &known, &snake(&known)).show(frame, StatusCode::OK)
}

pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit)).await?;
    let written = fields::written_over(keys(), &form, &snake(&known));
    let sheet = edit_sheet(&visit, &known, &written);
    // A merge: what the form leaves out takes its default.
    let mut body: Map<String, Value> =
        keys().map(|doc| (camel(doc.name), written.get(doc.name).cloned().unwrap_or_default())).collect();
    if let Some(name) = form.text("name") {
        body.insert("name".to_owned(), name.into());
    }
    body.insert("version".to_owned(), form.get("version").and_then(|text| text.parse::<u64>().ok()).into());
    match visit.api.ask::<Destination>(Method::PATCH, &path(&visit), Some(&Value::Object(body))).await {
        Ok(changed) => Ok(visit.done(&back(&visit, &changed.source_id), "The destination is changed.")),
        Err(refused) => sheet.refused(visit.frame("Destination", "sources").await?, &form, refused),
    }
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let known: Destination = visit.api.get(&path(&visit)).await?;
    let frame = visit.frame("Delete", "sources").await?;
    let facts =
        ["Forwards that are there already go on, and nothing more is forwarded to it. Its endpoint stays.".to_owned()];
    let title = format!("Delete the destination {}?", known.label());
    let (action, back) = (page(&visit, "/delete"), back(&visit, &known.source_id));
    let fields = [("source", known.source_id.as_str())];
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &fields, button: "Delete it", back: &back },
    )
}

pub async fn delete(visit: Visit, form: Form) -> Response {
    let back = back(&visit, form.get("source").unwrap_or_default());
    match visit.api.ask::<Value>(Method::DELETE, &path(&visit), None).await {
        Ok(_) => visit.done(&back, "The destination is deleted."),
        Err(refused) => visit.refused(&back, refused),
    }
}
