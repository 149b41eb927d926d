//! The forms of a source: made, changed, given another address or secret, and its webhooks forwarded again after a question.
//!
//! It must not know what a setting means: fields come from the definitions, and the API judges them.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::settings::SOURCE_KEYS;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::destinations::Destinations;
use super::fault::Fault;
use super::fields::{self, Field, Widget, camel, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::question::{Question, ask};
use super::sources::{Source, page, path, shown_once};
use super::visit::{Visit, segment};

/// Keys that only one provider has.
fn is_special(name: &str) -> bool {
    name.starts_with("hmac_") || matches!(name, "id_header" | "hubspot_version")
}

fn sheet(visit: &Visit, name: &str, written: &Map<String, Value>) -> Sheet {
    let mut first =
        vec![Field::line("name", "Name", "Unique among the sources of the project.").required().holding(name)];
    let (special, usual): (Vec<_>, Vec<_>) = SOURCE_KEYS.iter().partition(|doc| is_special(doc.name));
    first.extend(usual.into_iter().map(|doc| {
        let field = field_of(doc, written);
        if doc.name == "provider" { field.required() } else { field }
    }));
    let special: Vec<Field> = special.into_iter().map(|doc| field_of(doc, written)).collect();
    let is_set = special.iter().any(|field| !field.value.is_empty());
    let summary = if is_set { "some are set" } else { "for hmac, none and hubspot only" };
    let groups = vec![Group::open("", first), Group::folded("How it is signed", summary.to_owned(), special)];
    Sheet {
        title: "New source".to_owned(),
        intro: "What is left empty has its default. The address, and a secret that is made here, are shown once."
            .to_owned(),
        action: visit.page_of_project("/new-source"),
        back: visit.page_of_project("/sources"),
        button: "Create",
        hidden: Vec::new(),
        tabs: vec![Tab { id: "source", label: "Source", groups }],
        wrong: Vec::new(),
        end: None,
        schedule: None,
    }
}

/// A secret is said once, when the source is made.
fn new_sheet(visit: &Visit, written: &Map<String, Value>) -> Sheet {
    let mut sheet = sheet(visit, "", written);
    let secret = Field::line(
        "secret",
        "Secret",
        "That of the provider. Left empty, one is made here where the provider takes one.",
    );
    sheet.tabs[0].groups[0].fields.insert(2, secret.shown_as(Widget::Secret));
    sheet
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New source", "sources").await?;
    new_sheet(&visit, &Map::new()).show(frame, StatusCode::OK)
}

fn as_camel(written: Map<String, Value>) -> Map<String, Value> {
    written.into_iter().map(|(name, value)| (camel(&name), value)).collect()
}

fn snake(known: &Map<String, Value>) -> Map<String, Value> {
    SOURCE_KEYS.iter().filter_map(|doc| Some((doc.name.to_owned(), known.get(&camel(doc.name))?.clone()))).collect()
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let written = fields::written(SOURCE_KEYS, &form);
    let sheet = new_sheet(&visit, &written);
    let mut body = as_camel(written);
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    if let Some(secret) = form.get("secret").filter(|secret| !secret.is_empty()) {
        body.insert("secret".to_owned(), secret.into());
    }
    match visit.api.post::<Source>(&visit.of_project("/sources"), &Value::Object(body)).await {
        Ok(made) => shown_once(&visit, made).await,
        Err(refused) => sheet.refused(visit.frame("New source", "sources").await?, &form, refused),
    }
}

fn edit_sheet(visit: &Visit, known: &Map<String, Value>, written: &Map<String, Value>) -> Sheet {
    let name = known.get("name").and_then(Value::as_str).unwrap_or_default();
    let version = known.get("version").map(Value::to_string).unwrap_or_default();
    Sheet {
        title: format!("Settings of {name}"),
        intro: "Address and secret stay as they are.".to_owned(),
        action: page(visit, "/edit"),
        back: page(visit, ""),
        button: "Save",
        hidden: vec![("version", version)],
        ..sheet(visit, name, written)
    }
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Settings", "sources").await?;
    edit_sheet(&visit, &known, &snake(&known)).show(frame, StatusCode::OK)
}

pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&path(&visit, "")).await?;
    let written = fields::written_over(SOURCE_KEYS, &form, &snake(&known));
    let sheet = edit_sheet(&visit, &known, &written);
    let mut body = as_camel(written);
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    body.insert("version".to_owned(), form.get("version").and_then(|text| text.parse::<u64>().ok()).into());
    match visit.api.ask::<Value>(Method::PUT, &path(&visit, ""), Some(&Value::Object(body))).await {
        Ok(_) => Ok(visit.done(&page(&visit, ""), "The settings are changed.")),
        Err(refused) => sheet.refused(visit.frame("Settings", "sources").await?, &form, refused),
    }
}

/// What is made anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Anew {
    Token,
    Secret,
}

impl Anew {
    const fn verb(self) -> &'static str {
        match self {
            Anew::Token => "/rotate-token",
            Anew::Secret => "/rotate-secret",
        }
    }

    fn sheet(self, visit: &Visit, name: &str) -> Sheet {
        let (title, button, intro) = match self {
            Anew::Token => (
                "A new address for",
                "Make a new address",
                "The former address goes on opening for a while, so that the provider can be told.",
            ),
            Anew::Secret => (
                "A new secret for",
                "Make a new secret",
                "The former secret goes on verifying for a while, so that the provider can be told.",
            ),
        };
        let overlap =
            Field::line("overlapSeconds", "The former one counts for (s)", "A day unless said; 0 ends it at once.");
        let overlap = Field { default: "86400".to_owned(), ..overlap.shown_as(Widget::Number) };
        let mut all = vec![overlap];
        if self == Anew::Secret {
            let secret = Field::line("secret", "Secret", "That of the provider. Left empty, one is made here.");
            all.insert(0, secret.shown_as(Widget::Secret));
        }
        Sheet {
            title: format!("{title} {name}"),
            intro: intro.to_owned(),
            action: page(visit, self.verb()),
            back: page(visit, ""),
            button,
            tabs: vec![Tab { id: "anew", label: "", groups: vec![Group::open("", all)] }],
            hidden: Vec::new(),
            wrong: Vec::new(),
            end: None,
            schedule: None,
        }
    }
}

async fn ask_anew(visit: Visit, what: Anew) -> Result<Response, Fault> {
    let source: Source = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Address and secret", "sources").await?;
    what.sheet(&visit, &source.name).show(frame, StatusCode::OK)
}

async fn make_anew(visit: Visit, form: Form, what: Anew) -> Result<Response, Fault> {
    let source: Source = visit.api.get(&path(&visit, "")).await?;
    let mut body = Map::new();
    if let Some(text) = form.text("overlapSeconds") {
        body.insert("overlapSeconds".to_owned(), text.parse::<u64>().map_or_else(|_| text.into(), Value::from));
    }
    if let Some(secret) = form.get("secret").filter(|secret| what == Anew::Secret && !secret.is_empty()) {
        body.insert("secret".to_owned(), secret.into());
    }
    match visit.api.post::<Source>(&path(&visit, what.verb()), &Value::Object(body)).await {
        // A secret that somebody brought along is not shown again.
        Ok(made) if what == Anew::Secret && made.secret.is_none() => {
            Ok(visit.done(&page(&visit, ""), "The secret is changed."))
        }
        Ok(made) => shown_once(&visit, made).await,
        Err(refused) => {
            let frame = visit.frame("Address and secret", "sources").await?;
            what.sheet(&visit, &source.name).refused(frame, &form, refused)
        }
    }
}

pub async fn ask_token(visit: Visit) -> Result<Response, Fault> {
    ask_anew(visit, Anew::Token).await
}

pub async fn make_token(visit: Visit, form: Form) -> Result<Response, Fault> {
    make_anew(visit, form, Anew::Token).await
}

pub async fn ask_secret(visit: Visit) -> Result<Response, Fault> {
    ask_anew(visit, Anew::Secret).await
}

pub async fn make_secret(visit: Visit, form: Form) -> Result<Response, Fault> {
    make_anew(visit, form, Anew::Secret).await
}

async fn replay_sheet(visit: &Visit) -> Result<Sheet, Fault> {
    let source: Source = visit.api.get(&path(visit, "")).await?;
    let of_source = visit.of_project(format!("/destinations?limit=1000&sourceId={}", segment(&source.id)));
    let destinations: Destinations = visit.api.get(&of_source).await?;
    let all = std::iter::once((String::new(), "all of them".to_owned()));
    let words = all.chain(destinations.data.iter().map(|one| (one.id.clone(), one.label()))).collect();
    let fields = vec![
        Field::line("from", "Came in from (UTC)", "Such as 2026-03-12T12:05:34Z."),
        Field::line("before", "Came in before (UTC)", "Left empty: until now."),
        Field::line("destinationId", "To", "Each gets new forwards, from their first attempt on.")
            .shown_as(Widget::Choice(words)),
    ];
    Ok(Sheet {
        title: format!("Forward again what {} took in", source.name),
        intro: "At most 1000 webhooks at once; what is older than the retention of its topic is gone. You are asked before anything is sent.".to_owned(),
        action: page(visit, "/replay"),
        back: page(visit, ""),
        button: "Count them",
        tabs: vec![Tab { id: "replay", label: "", groups: vec![Group::open("", fields)] }],
        hidden: Vec::new(),
        wrong: Vec::new(),
        end: None,
        schedule: None,
    })
}

pub async fn ask_replay(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("Forward again", "sources").await?;
    replay_sheet(&visit).await?.show(frame, StatusCode::OK)
}

pub async fn replay(visit: Visit, form: Form) -> Result<Response, Fault> {
    #[derive(Deserialize)]
    struct Replayed {
        events: u64,
        forwards: u64,
        next_cursor: Option<String>,
    }
    let is_confirmed = form.is_on("confirmed");
    let fields: Vec<(&str, &str)> =
        ["from", "before", "destinationId"].into_iter().filter_map(|name| Some((name, form.text(name)?))).collect();
    let mut body: Map<String, Value> = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).into())).collect();
    body.insert("limit".to_owned(), 1000.into());
    body.insert("dry_run".to_owned(), json!(!is_confirmed));
    let asked = visit.api.post::<Replayed>(&path(&visit, "/replay"), &Value::Object(body)).await;
    let Replayed { events, forwards, next_cursor } = match asked {
        Ok(replayed) => replayed,
        Err(refused) => {
            let frame = visit.frame("Forward again", "sources").await?;
            return replay_sheet(&visit).await?.refused(frame, &form, refused);
        }
    };
    let back = page(&visit, "");
    if is_confirmed {
        let more = if next_cursor.is_some() { " There are more; begin where these end." } else { "" };
        return Ok(visit.done(&back, format!("{forwards} new forwards of {events} webhooks are on their way.{more}")));
    }
    if forwards == 0 {
        return Ok(visit.not_done(&page(&visit, "/replay"), "Nothing came in at that time that is still kept."));
    }
    let frame = visit.frame("Forward again", "sources").await?;
    let facts = ["Each is a new forward under the same idempotency key: a destination that knows the key drops it; one that does not acts twice.".to_owned()];
    let title = format!("Forward {events} webhooks again, as {forwards} forwards?");
    let mut all = fields.clone();
    all.push(("confirmed", "true"));
    let (action, button) = (page(&visit, "/replay"), format!("Forward {forwards}"));
    ask(frame, Question { title: &title, facts: &facts, action: &action, fields: &all, button: &button, back: &back })
}
