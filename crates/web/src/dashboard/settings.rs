//! The settings of a connection, a channel or a service as a form, with the delivery in a tab of its own: a new one, and changes of one.
//!
//! It must not know what any setting means: fields come from the definitions, and the API judges them.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::connection::{ConnectionKind, Family};
use postrider_core::settings::{ALIASES, DELIVERY_KEYS, KeyDoc, keys_of};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::connections::{Connection, api, new_label, page};
use super::families::{kind_label, kinds, page_of, parsed, purpose, words};
use super::fault::Fault;
use super::fields::{self, Field, Widget, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::listing::{Cell, Empty, Listing, column};
use super::parts::Paging;
use super::schedule;
use super::visit::{Visit, show};

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
    let is_channel = kind.family() == Family::Channel;
    // A channel has its own word for how long a run may take.
    let is_alias = move |doc: &KeyDoc| {
        ALIASES.iter().any(|(alias, _)| *alias == doc.name) || (is_channel && doc.name == "timeout")
    };
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
    let fields = tabs.iter_mut().flat_map(|tab| &mut tab.groups).flat_map(|group| &mut group.fields);
    for field in fields.filter(|field| field.name == "service") {
        // One that is not there yet may be named too.
        let Ok(list) = visit.api.get::<List>(&visit.of_project("/services?limit=1000")).await else { continue };
        field.widget = Widget::Suggested(list.data.into_iter().map(|named| named.name).collect());
    }
}

/// The keys of the kind itself.
pub fn own_fields(kind: ConnectionKind, written: &Map<String, Value>) -> Vec<Field> {
    let own = form_keys(kind, written).filter(|doc| !DELIVERY_KEYS.iter().any(|delivery| delivery.name == doc.name));
    own.map(|doc| field_of(doc, written)).collect()
}

async fn sheet(visit: &Visit, kind: ConnectionKind, name: &str, written: &Map<String, Value>) -> Sheet {
    let picture = schedule::of_settings(visit, kind.as_str(), written).await;
    let words = words(kind.family());
    let unique = format!("Unique among the {}s of this kind. A new name keeps the queue.", words.noun);
    let named = Field::line("name", "Name", &unique);
    let mut own = vec![named.required().holding(name)];
    own.extend(own_fields(kind, written));
    let way = visit.page_of_project(format!("/schedule?type={}", kind.as_str()));
    let mut tabs = vec![
        Tab { id: "connection", label: tab_label(kind.family()), groups: vec![Group::open("", own)] },
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

const fn tab_label(family: Family) -> &'static str {
    match family {
        Family::Connection => "Connection",
        Family::Channel => "Channel",
        Family::Service => "Service",
    }
}

async fn new_sheet(visit: &Visit, kind: ConnectionKind, written: &Map<String, Value>) -> Sheet {
    let sheet = sheet(visit, kind, "", written).await;
    let (words, label) = (words(kind.family()), kind_label(kind.as_str()));
    let title = match kind.family() {
        Family::Service => "New service".to_owned(),
        _ => format!("New {label} {}", words.noun),
    };
    Sheet {
        title,
        intro: "What is left empty has its default.".to_owned(),
        action: visit.page_of_project(format!("/connections/new/{}", kind.as_str())),
        back: visit.page_of_project(format!("/{}", words.place)),
        button: "Create",
        ..sheet
    }
}

/// Which kind it shall be.
async fn which(visit: Visit, family: Family) -> Result<Response, Fault> {
    let (words, title) = (words(family), new_label(family));
    let rows = kinds(family).map(|kind| {
        let href = visit.page_of_project(format!("/connections/new/{}", kind.as_str()));
        let link = Cell::Link { href, text: kind_label(kind.as_str()), below: String::new() };
        vec![link, Cell::Text(purpose(kind).to_owned())]
    });
    show(&Listing {
        title: title.to_owned(),
        intro: words.what.to_owned(),
        heads: Vec::new(),
        columns: vec![column("Kind"), column("For")],
        order: None,
        rows: rows.collect(),
        paging: Paging::default(),
        empty: Empty { title: "", text: "", example: "" },
        frame: visit.frame(title, words.place).await?,
    })
}

pub async fn choose(visit: Visit) -> Result<Response, Fault> {
    which(visit, Family::Connection).await
}

pub async fn choose_channel(visit: Visit) -> Result<Response, Fault> {
    which(visit, Family::Channel).await
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let frame = visit.frame(new_label(kind.family()), words(kind.family()).place).await?;
    new_sheet(&visit, kind, &Map::new()).await.show(frame, StatusCode::OK)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let written = fields::written(form_keys(kind, &Map::new()), &form);
    let sheet = new_sheet(&visit, kind, &written).await;
    let frame = visit.frame(new_label(kind.family()), words(kind.family()).place).await?;
    if form.get("preview") == Some("1") {
        return sheet.with_typed(&form).show(frame, StatusCode::OK);
    }
    let mut body = written;
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    // A channel's type is what it speaks, and a service has none.
    if kind.family() != Family::Service {
        body.insert("type".to_owned(), kind.channel_type().unwrap_or(kind.as_str()).into());
    }
    let list = visit.of_project(format!("/{}", words(kind.family()).place));
    match visit.api.post::<Connection>(&list, &Value::Object(body)).await {
        Ok(made) => {
            let page = visit.page_of_project(page_of(kind.as_str(), &made.name, ""));
            Ok(visit.done(&page, format!("{} is there.", made.name)))
        }
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let known: Map<String, Value> = visit.api.get(&api(&visit, "", "")).await?;
    let frame = visit.frame("Settings", words(kind.family()).place).await?;
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
    let known: Map<String, Value> = visit.api.get(&api(&visit, "", "")).await?;
    let written = fields::written_over(form_keys(kind, &known), &form, &known);
    let sheet = edit_sheet(&visit, kind, &known, &written).await;
    let frame = visit.frame("Settings", words(kind.family()).place).await?;
    if form.get("preview") == Some("1") {
        return sheet.with_typed(&form).show(frame, StatusCode::OK);
    }
    let mut body = written;
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    body.insert("version".to_owned(), form.get("version").and_then(|text| text.parse::<u64>().ok()).into());
    let asked = visit.api.ask::<Connection>(Method::PUT, &api(&visit, "", ""), Some(&Value::Object(body))).await;
    match asked {
        Ok(changed) => {
            let page = visit.page_of_project(page_of(kind.as_str(), &changed.name, ""));
            Ok(visit.done(&page, "The settings are changed."))
        }
        Err(refused) => sheet.refused(frame, &form, refused),
    }
}
