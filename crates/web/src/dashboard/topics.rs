//! Topics: what is published to them, how long it is kept, and who pulls from them. It must not know how messages are kept.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::access::Scope;
use postrider_core::settings::objects::TOPIC_KEYS;
use postrider_core::{Timestamp, Wait};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fault::{Fault, sentence};
use super::fields::{self, Field, Widget, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::listing::{ACTS, Act, Cell, Empty, Listing, column};
use super::parts::{Moment, Paging, Span};
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Topic {
    name: String,
    description: String,
    #[serde(rename = "retention_seconds")]
    retention_seconds: u64,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct Topics {
    data: Vec<Topic>,
    next_cursor: Option<String>,
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let path = visit.of_project(format!("/topics?limit=100{more}"));
    let found: Topics = visit.api.get(&path).await?;
    let (now, page) = (visit.now(), visit.page_of_project("/topics"));
    let rows = found.data.iter().map(|topic| {
        vec![
            Cell::Link {
                href: format!("{page}/{}", segment(&topic.name)),
                text: topic.name.clone(),
                below: topic.description.clone(),
            },
            Cell::Text(Span(Wait::from_secs(topic.retention_seconds)).to_string()),
            Cell::Time(Some(Moment { at: topic.created_at, now })),
        ]
    });
    show(&Listing {
        title: "Topics".to_owned(),
        intro: String::new(),
        heads: if visit.may(Scope::Admin) {
            vec![("New topic", visit.page_of_project("/new-topic"))]
        } else {
            Vec::new()
        },
        columns: vec![column("Topic"), column("Messages are kept for"), column("Made")],
        order: None,
        rows: rows.collect(),
        paging: Paging::of(&page, cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty {
            title: "No topic yet",
            text: "A topic keeps its messages for its retention, subscribers or not. An event is a message on the topic of its type, and a dead-letter \
                   queue can forward to one.",
            example: "",
        },
        frame: visit.frame("Topics", "topics").await?,
    })
}

fn sheet(visit: &Visit) -> Sheet {
    let name = Field::line("name", "Name", postrider_core::settings::objects::TOPIC_NAMES).required();
    let mut all = vec![name];
    all.extend(TOPIC_KEYS.iter().map(|doc| field_of(doc, &Map::new())));
    Sheet {
        title: "New topic".to_owned(),
        intro: String::new(),
        action: visit.page_of_project("/new-topic"),
        back: visit.page_of_project("/topics"),
        button: "Create",
        hidden: Vec::new(),
        tabs: vec![Tab { id: "topic", label: "Topic", groups: vec![Group::open("", all)] }],
        wrong: Vec::new(),
        end: None,
        schedule: None,
    }
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New topic", "topics").await?;
    sheet(&visit).show(frame, StatusCode::OK)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let mut body = fields::written(TOPIC_KEYS, &form);
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    match visit.api.post::<Topic>(&visit.of_project("/topics"), &Value::Object(body)).await {
        Ok(made) => Ok(visit.done(&visit.page_of_project("/topics"), format!("{} is there.", made.name))),
        Err(refused) => {
            let frame = visit.frame("New topic", "topics").await?;
            sheet(&visit).refused(frame, &form, refused)
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pulling {
    name: String,
    #[serde(rename = "redeliver_after_seconds")]
    redeliver_after_seconds: u64,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct PullingList {
    data: Vec<Pulling>,
}

fn path(visit: &Visit, rest: &str) -> String {
    visit.of_project(format!("/topics/{}{rest}", segment(visit.segments.get("topic"))))
}

fn page(visit: &Visit, rest: &str) -> String {
    visit.page_of_project(format!("/topics/{}{rest}", segment(visit.segments.get("topic"))))
}

/// Who pulls from it. Its messages are health data, and nothing shows them in passing.
pub async fn one(visit: Visit) -> Result<Response, Fault> {
    let topic: Topic = visit.api.get(&path(&visit, "")).await?;
    let list: PullingList = visit.api.get(&path(&visit, "/subscriptions")).await?;
    let now = visit.now();
    let may_change = visit.may(Scope::Admin);
    let rows = list.data.iter().map(|one| {
        let mut cells = vec![
            Cell::Text(one.name.clone()),
            Cell::Text(Span(Wait::from_secs(one.redeliver_after_seconds)).to_string()),
            Cell::Time(Some(Moment { at: one.created_at, now })),
        ];
        if may_change {
            let href = page(&visit, &format!("/subscriptions/{}/delete", segment(&one.name)));
            cells.push(Cell::Acts(vec![Act::link("Delete", one.name.clone(), href)]));
        }
        cells
    });
    let mut columns = vec![column("Subscription"), column("Given out again after"), column("Made")];
    if may_change {
        columns.push(ACTS);
    }
    let mut heads = Vec::new();
    if may_change {
        heads.push(("New subscription", page(&visit, "/subscriptions/new")));
    }
    if visit.may(Scope::Send) {
        heads.push(("Publish a message", page(&visit, "/publish")));
    }
    if may_change {
        heads.push(("Delete the topic", page(&visit, "/delete")));
    }
    show(&Listing {
        title: topic.name.clone(),
        intro: topic.description.clone(),
        heads,
        columns,
        order: None,
        rows: rows.collect(),
        paging: Paging::default(),
        empty: Empty {
            title: "Nobody pulls from this topic",
            text: "A subscription gives out each message until it is acknowledged. Whoever pulls asks for messages when they can take them.",
            example: "",
        },
        frame: visit.frame(&topic.name, "topics").await?,
    })
}

fn subscription_sheet(visit: &Visit) -> Sheet {
    let name = Field::line("name", "Name", "What those who pull call it.").required();
    let again =
        postrider_core::settings::objects::SUBSCRIPTION_KEYS.iter().filter(|doc| doc.name == "redeliver_after_seconds");
    let mut all = vec![name];
    all.extend(again.map(|doc| field_of(doc, &Map::new())));
    let topic = visit.segments.get("topic");
    Sheet {
        title: format!("New subscription to {topic}"),
        action: page(visit, "/subscriptions/new"),
        back: page(visit, ""),
        tabs: vec![Tab { id: "subscription", label: "Subscription", groups: vec![Group::open("", all)] }],
        ..sheet(visit)
    }
}

pub async fn new_subscription(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New subscription", "topics").await?;
    subscription_sheet(&visit).show(frame, StatusCode::OK)
}

pub async fn subscribe(visit: Visit, form: Form) -> Result<Response, Fault> {
    let again =
        postrider_core::settings::objects::SUBSCRIPTION_KEYS.iter().filter(|doc| doc.name == "redeliver_after_seconds");
    let mut body = fields::written(again, &form);
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    match visit.api.post::<Value>(&path(&visit, "/subscriptions"), &Value::Object(body)).await {
        Ok(_) => Ok(visit.done(&page(&visit, ""), "The subscription is there.")),
        Err(refused) => {
            let frame = visit.frame("New subscription", "topics").await?;
            subscription_sheet(&visit).refused(frame, &form, refused)
        }
    }
}

async fn message_sheet(visit: &Visit) -> Result<Sheet, Fault> {
    let topic: Topic = visit.api.get(&path(visit, "")).await?;
    let body = Field::line("body", "Body", "Kept as it stands here.").shown_as(Widget::Lines);
    Ok(Sheet {
        title: format!("Publish a message to {}", topic.name),
        intro: "Whoever pulls from the topic is given it, and it is pushed wherever a subscription selects it."
            .to_owned(),
        action: page(visit, "/publish"),
        back: page(visit, ""),
        button: "Publish",
        tabs: vec![Tab { id: "message", label: "Message", groups: vec![Group::open("", vec![body])] }],
        ..sheet(visit)
    })
}

pub async fn ask_publish(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("Publish", "topics").await?;
    message_sheet(&visit).await?.show(frame, StatusCode::OK)
}

pub async fn publish(visit: Visit, form: Form) -> Result<Response, Fault> {
    let body = json!({"body": form.get("body").unwrap_or_default()});
    match visit.api.post::<Value>(&path(&visit, "/publish"), &body).await {
        Ok(_) => Ok(visit.done(&page(&visit, ""), "It is published.")),
        Err(refused) => {
            let frame = visit.frame("Publish", "topics").await?;
            message_sheet(&visit).await?.refused(frame, &form, refused)
        }
    }
}

/// The topic, or where the path names one, a subscription of it.
fn deleted(visit: &Visit) -> (String, String, String) {
    let (topic, name) = (visit.segments.get("topic"), visit.segments.get("name"));
    let rest = if name.is_empty() { String::new() } else { format!("/subscriptions/{}", segment(name)) };
    let what = if name.is_empty() { format!("the topic {topic}") } else { format!("the subscription {name}") };
    (what, path(visit, &rest), page(visit, &format!("{rest}/delete")))
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let (what, _, action) = deleted(&visit);
    let frame = visit.frame("Delete", "topics").await?;
    let facts = ["What it keeps and nobody has acknowledged is gone.".to_owned()];
    let (title, back) = (format!("Delete {what}?"), page(&visit, ""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Delete it", back: &back },
    )
}

pub async fn delete(visit: Visit, _: Form) -> Response {
    let (what, path, _) = deleted(&visit);
    let after = if visit.segments.get("name").is_empty() { visit.page_of_project("/topics") } else { page(&visit, "") };
    match visit.api.ask::<Value>(Method::DELETE, &path, None).await {
        Ok(_) => visit.done(&after, sentence(&format!("{what} is deleted"))),
        Err(refused) => visit.refused(&page(&visit, ""), refused),
    }
}
