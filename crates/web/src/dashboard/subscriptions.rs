//! What endpoints and other connections are sent: patterns of event types, with ladders, headers and transformations of their own.
//!
//! It must not know what a pattern matches.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::access::Scope;
use postrider_core::settings::PUSH_KEYS;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fault::Fault;
use super::fields::{self, Field, Widget, camel, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::listing::{Cell, Empty, Listing, column};
use super::parts::{Badge, Paging, Tone};
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    pub id: String,
    pub event_type: String,
    pub enabled: bool,
    pub endpoint_id: Option<String>,
    pub connection: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

#[derive(Deserialize)]
pub struct Subscriptions {
    pub data: Vec<Subscription>,
    pub next_cursor: Option<String>,
}

impl Subscription {
    pub fn badge(&self) -> Badge {
        if self.enabled { Badge { tone: Tone::Good, word: "on" } } else { Badge { tone: Tone::Quiet, word: "off" } }
    }
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let path = visit.of_project(format!("/subscriptions?limit=100{more}"));
    let found: Subscriptions = visit.api.get(&path).await?;
    let rows = found.data.iter().map(|one| {
        let href = visit.page_of_project(format!("/subscriptions/{}", one.id));
        let to = Cell::Two(one.connection.clone().unwrap_or_default(), one.kind.clone().unwrap_or_default());
        vec![Cell::Link { href, text: one.event_type.clone(), below: String::new() }, to, Cell::State(one.badge())]
    });
    let page = visit.page_of_project("/subscriptions");
    let heads = if visit.may(Scope::Admin) { vec![("New subscription", format!("{page}/new"))] } else { Vec::new() };
    show(&Listing {
        title: "Subscriptions".to_owned(),
        intro: "Which events, and messages of topics, are pushed where.".to_owned(),
        heads,
        columns: vec![column("Event types"), column("Sent to"), column("State")],
        order: None,
        rows: rows.collect(),
        paging: Paging::of(&page, cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty {
            title: "No subscription yet",
            text: "A subscription sends the events whose type its pattern matches to an endpoint or to any connection. `*` stands for one segment of a \
                   type, `**` for any number.",
            example: "",
        },
        frame: visit.frame("Subscriptions", "subscriptions").await?,
    })
}

/// Where it can lead: endpoints and every other connection, by kind and name.
pub async fn targets(visit: &Visit) -> Result<Vec<(String, String)>, Fault> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
        #[serde(rename = "type")]
        kind: String,
    }
    #[derive(Deserialize)]
    struct List {
        data: Vec<Named>,
    }
    let list: List = visit.api.get(&visit.of_project("/connections?limit=1000")).await?;
    let shown = list.data.into_iter().map(|one| {
        let label = format!("{} ({})", one.name, super::families::kind_label(&one.kind));
        (format!("{}/{}", one.kind, one.name), label)
    });
    Ok(shown.collect())
}

async fn sheet(visit: &Visit, target: &str, written: &Map<String, Value>) -> Result<Sheet, Fault> {
    let targets = targets(visit).await?;
    let to = Field::line("target", "Sent to", "An endpoint or any other connection.")
        .shown_as(Widget::Choice(targets))
        .holding(target);
    let mut first = vec![to];
    let mut rest = Vec::new();
    for doc in PUSH_KEYS {
        let field = field_of(doc, written);
        match doc.name {
            "event_type" => first.push(field.required()),
            "enabled" => first.push(field),
            _ => rest.push(field),
        }
    }
    let is_set = rest.iter().any(|field| !field.value.is_empty());
    let summary = if is_set { "some are set" } else { "those of the endpoint hold" };
    let groups = vec![Group::open("", first), Group::folded("Its own terms", summary.to_owned(), rest)];
    Ok(Sheet {
        title: "New subscription".to_owned(),
        intro: String::new(),
        action: visit.page_of_project("/subscriptions/new"),
        back: visit.page_of_project("/subscriptions"),
        button: "Create",
        hidden: Vec::new(),
        tabs: vec![Tab { id: "subscription", label: "Subscription", groups }],
        wrong: Vec::new(),
        end: None,
        schedule: None,
    })
}

pub async fn new(mut visit: Visit) -> Result<Response, Fault> {
    let endpoint = visit.query.take("endpoint");
    let mut target = String::new();
    if let Some(id) = endpoint {
        let path = visit.of_project(format!("/endpoints/{}", segment(&id)));
        let known: super::endpoints::Endpoint = visit.api.get(&path).await?;
        target = format!("webhook/{}", known.name);
    }
    let frame = visit.frame("New subscription", "subscriptions").await?;
    sheet(&visit, &target, &Map::new()).await?.show(frame, StatusCode::OK)
}

/// What the form says, as the API has it.
fn body(form: &Form, known: &Map<String, Value>) -> Map<String, Value> {
    let written = fields::written_over(PUSH_KEYS, form, known);
    let mut body: Map<String, Value> = written.into_iter().map(|(name, value)| (camel(&name), value)).collect();
    if let Some((kind, name)) = form.get("target").and_then(|target| target.split_once('/')) {
        body.insert("connection".to_owned(), name.into());
        body.insert("type".to_owned(), kind.into());
    }
    body
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let target = form.get("target").unwrap_or_default();
    let sheet = sheet(&visit, target, &Map::new()).await?;
    let frame = visit.frame("New subscription", "subscriptions").await?;
    match visit
        .api
        .post::<Subscription>(&visit.of_project("/subscriptions"), &Value::Object(body(&form, &Map::new())))
        .await
    {
        Ok(made) => {
            let back =
                made.endpoint_id.map(|id| format!("/endpoints/{id}")).unwrap_or_else(|| "/subscriptions".to_owned());
            Ok(visit.done(&visit.page_of_project(back), format!("{} is subscribed.", made.event_type)))
        }
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}

fn path(visit: &Visit) -> String {
    visit.of_project(format!("/subscriptions/{}", segment(visit.segments.get("subscription"))))
}

fn page(visit: &Visit, rest: &str) -> String {
    visit.page_of_project(format!("/subscriptions/{}{rest}", segment(visit.segments.get("subscription"))))
}

fn snake(known: &Map<String, Value>) -> Map<String, Value> {
    PUSH_KEYS.iter().filter_map(|doc| Some((doc.name.to_owned(), known.get(&camel(doc.name))?.clone()))).collect()
}

async fn edit_sheet(visit: &Visit, known: &Map<String, Value>) -> Result<Sheet, Fault> {
    let text = |name: &str| known.get(name).and_then(Value::as_str).unwrap_or_default();
    let target = format!("{}/{}", text("type"), text("connection"));
    let version = known.get("version").map(Value::to_string).unwrap_or_default();
    let sheet = sheet(visit, &target, &snake(known)).await?;
    Ok(Sheet {
        title: format!("Subscription to {}", text("eventType")),
        action: page(visit, ""),
        button: "Save",
        hidden: vec![("version", version)],
        ..sheet
    })
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit)).await?;
    let frame = visit.frame("Subscription", "subscriptions").await?;
    let mut sheet = edit_sheet(&visit, &known).await?;
    sheet.end = Some(("Delete", page(&visit, "/delete")));
    sheet.show(frame, StatusCode::OK)
}

pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit)).await?;
    let sheet = edit_sheet(&visit, &known).await?;
    let frame = visit.frame("Subscription", "subscriptions").await?;
    let mut body = body(&form, &snake(&known));
    body.insert("version".to_owned(), form.get("version").and_then(|text| text.parse::<u64>().ok()).into());
    match visit.api.ask::<Value>(Method::PUT, &path(&visit), Some(&Value::Object(body))).await {
        Ok(_) => Ok(visit.done(&visit.page_of_project("/subscriptions"), "The subscription is changed.")),
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let known: Subscription = visit.api.get(&path(&visit)).await?;
    let frame = visit.frame("Delete", "subscriptions").await?;
    let facts = ["What it has selected already is still delivered; nothing more is selected.".to_owned()];
    let title = format!("Delete the subscription to {}?", known.event_type);
    let (action, back) = (page(&visit, "/delete"), page(&visit, ""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Delete it", back: &back },
    )
}

pub async fn delete(visit: Visit, _: Form) -> Response {
    match visit.api.ask::<Value>(Method::DELETE, &path(&visit), None).await {
        Ok(_) => visit.done(&visit.page_of_project("/subscriptions"), "The subscription is deleted."),
        Err(refused) => visit.refused(&page(&visit, ""), refused),
    }
}
