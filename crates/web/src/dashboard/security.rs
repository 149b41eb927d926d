//! Security definitions: who we say we are to remote systems. A secret goes in and is never shown. It must not know how a credential is made.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::access::Scope;
use postrider_core::security::SecurityKind;
use postrider_core::settings::security_keys;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fault::{Fault, nothing_here};
use super::fields::{self, Field, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::listing::{Cell, Empty, Listing, column};
use super::parts::{Moment, Paging};
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    updated_at: postrider_core::Timestamp,
}

#[derive(Deserialize)]
struct Definitions {
    data: Vec<Definition>,
    next_cursor: Option<String>,
}

const KINDS: [(&str, &str); 5] = [
    ("basic_auth", "HTTP Basic"),
    ("apikey", "API key"),
    ("bearer", "Bearer token"),
    ("oauth2", "OAuth 2.0 client credentials"),
    ("wss", "WS-Security UsernameToken"),
];

fn label(kind: &str) -> String {
    KINDS.iter().find(|(known, _)| *known == kind).map_or_else(|| kind.to_owned(), |(_, label)| (*label).to_owned())
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let path = visit.of_project(format!("/security?limit=100{more}"));
    let found: Definitions = visit.api.get(&path).await?;
    let (now, page) = (visit.now(), visit.page_of_project("/security"));
    let may_change = visit.may(Scope::Admin);
    let rows = found.data.iter().map(|one| {
        let first = if may_change {
            Cell::Link { href: format!("{page}/{}", segment(&one.name)), text: one.name.clone(), below: String::new() }
        } else {
            Cell::Text(one.name.clone())
        };
        vec![first, Cell::Text(label(&one.kind)), Cell::Time(Some(Moment { at: one.updated_at, now }))]
    });
    let heads = if may_change {
        KINDS.iter().map(|(kind, label)| (*label, visit.page_of_project(format!("/new-security/{kind}")))).collect()
    } else {
        Vec::new()
    };
    show(&Listing {
        title: "Security".to_owned(),
        intro: if may_change { "Make a new one of the kind:".to_owned() } else { String::new() },
        heads,
        columns: vec![column("Name"), column("Kind"), column("Changed")],
        order: None,
        rows: rows.collect(),
        paging: Paging::of(&page, cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty {
            title: "No security definition yet",
            text: "A security definition holds the credentials that attempts carry. Connections name it, so that a password is changed in one place. \
                   Secrets are sealed before they are stored, and never shown.",
            example: "",
        },
        frame: visit.frame("Security", "security").await?,
    })
}

fn sheet(visit: &Visit, kind: SecurityKind, name: &str, written: &Map<String, Value>) -> Sheet {
    let mut all = vec![Field::line("name", "Name", "What connections call it.").required().holding(name)];
    all.extend(security_keys(kind).iter().map(|doc| field_of(doc, written)));
    Sheet {
        title: format!("New security definition: {}", label(kind.as_str())),
        intro: String::new(),
        action: visit.page_of_project(format!("/new-security/{}", kind.as_str())),
        back: visit.page_of_project("/security"),
        button: "Create",
        hidden: Vec::new(),
        tabs: vec![Tab { id: "security", label: "Security", groups: vec![Group::open("", all)] }],
        wrong: Vec::new(),
        end: None,
        schedule: None,
    }
}

fn parsed(kind: &str) -> Result<SecurityKind, Fault> {
    SecurityKind::parse(kind).ok_or_else(nothing_here)
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let frame = visit.frame("New security definition", "security").await?;
    sheet(&visit, kind, "", &Map::new()).show(frame, StatusCode::OK)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    let mut body = fields::written(security_keys(kind), &form);
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    body.insert("type".to_owned(), kind.as_str().into());
    match visit.api.post::<Definition>(&visit.of_project("/security"), &Value::Object(body)).await {
        Ok(made) => Ok(visit.done(&visit.page_of_project("/security"), format!("{} is there.", made.name))),
        Err(refused) => {
            let frame = visit.frame("New security definition", "security").await?;
            sheet(&visit, kind, "", &Map::new()).refused(frame, &form, refused)
        }
    }
}

fn path(visit: &Visit) -> String {
    visit.of_project(format!("/security/{}", segment(visit.segments.get("name"))))
}

fn page(visit: &Visit, rest: &str) -> String {
    visit.page_of_project(format!("/security/{}{rest}", segment(visit.segments.get("name"))))
}

fn edit_sheet(visit: &Visit, kind: SecurityKind, known: &Map<String, Value>) -> Sheet {
    let name = known.get("name").and_then(Value::as_str).unwrap_or_default();
    let version = known.get("version").map(Value::to_string).unwrap_or_default();
    Sheet {
        title: format!("Security definition {name}"),
        intro: format!("{}. A secret that is left empty stays as it is.", label(kind.as_str())),
        action: page(visit, ""),
        button: "Save",
        hidden: vec![("version", version)],
        end: Some(("Delete", page(visit, "/delete"))),
        ..sheet(visit, kind, name, known)
    }
}

async fn known(visit: &Visit) -> Result<(SecurityKind, Map<String, Value>), Fault> {
    let known: Map<String, Value> = visit.api.get(&path(visit)).await?;
    let kind = parsed(known.get("type").and_then(Value::as_str).unwrap_or_default())?;
    Ok((kind, known))
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let (kind, known) = known(&visit).await?;
    let frame = visit.frame("Security definition", "security").await?;
    edit_sheet(&visit, kind, &known).show(frame, StatusCode::OK)
}

pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let (kind, known) = known(&visit).await?;
    let mut body = fields::written_over(security_keys(kind), &form, &known);
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    body.insert("version".to_owned(), form.get("version").and_then(|text| text.parse::<u64>().ok()).into());
    match visit.api.ask::<Value>(Method::PUT, &path(&visit), Some(&Value::Object(body))).await {
        Ok(_) => {
            Ok(visit.done(&visit.page_of_project("/security"), "It is changed, and holds from the next attempt on."))
        }
        Err(refused) => {
            let frame = visit.frame("Security definition", "security").await?;
            edit_sheet(&visit, kind, &known).refused(frame, &form, refused)
        }
    }
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let name = visit.segments.get("name").to_owned();
    let frame = visit.frame("Delete", "security").await?;
    let facts = ["Its secret is gone. It is refused while a connection names it.".to_owned()];
    let title = format!("Delete the security definition {name}?");
    let (action, back) = (page(&visit, "/delete"), page(&visit, ""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Delete it", back: &back },
    )
}

pub async fn delete(visit: Visit, _: Form) -> Response {
    match visit.api.ask::<Value>(Method::DELETE, &path(&visit), None).await {
        Ok(_) => visit.done(&visit.page_of_project("/security"), "The security definition is deleted."),
        Err(refused) => visit.refused(&page(&visit, ""), refused),
    }
}
