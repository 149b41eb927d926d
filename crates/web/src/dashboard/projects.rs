//! Projects and their settings, alerts included. A project is not deleted: its log must be accounted for. It must not know what a setting does.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::Timestamp;
use postrider_core::settings::objects::PROJECT_KEYS;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fault::Fault;
use super::fields::{self, Field, field_of};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::listing::{Cell, Empty, Listing, column};
use super::parts::{Moment, Paging};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    name: String,
    owner_email: Option<String>,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct Projects {
    data: Vec<Project>,
}

pub async fn list(visit: Visit) -> Result<Response, Fault> {
    let found: Projects = visit.api.get("/api/v1/projects").await?;
    let now = visit.now();
    let rows = found.data.iter().map(|project| {
        let href = format!("/ui/projects/{}/settings", segment(&project.name));
        vec![
            Cell::Link { href, text: project.name.clone(), below: String::new() },
            Cell::Text(project.owner_email.clone().unwrap_or_default()),
            Cell::Time(Some(Moment { at: project.created_at, now })),
        ]
    });
    show(&Listing {
        title: "Projects".to_owned(),
        intro: String::new(),
        heads: vec![("New project", "/ui/all-projects/new".to_owned())],
        columns: vec![column("Project"), column("Owner"), column("Made")],
        order: None,
        rows: rows.collect(),
        paging: Paging::default(),
        empty: Empty { title: "No project", text: "", example: "" },
        frame: visit.frame("Projects", "projects").await?,
    })
}

fn groups(name: Option<Field>, known: &Map<String, Value>) -> Vec<Group> {
    let (alerts, own): (Vec<_>, Vec<_>) = PROJECT_KEYS.iter().partition(|doc| doc.name.starts_with("alert"));
    let fields = |docs: Vec<_>| docs.into_iter().map(|doc| field_of(doc, known));
    let first = name.into_iter().chain(fields(own)).collect();
    vec![Group::open("", first), Group::open("When somebody is told", fields(alerts).collect())]
}

fn new_sheet() -> Sheet {
    let name = Field::line("name", "Name", "1 to 200 characters without /; it stands in addresses and never changes.")
        .required();
    Sheet {
        title: "New project".to_owned(),
        intro: "A project has connections, endpoints, topics, keys and users of its own.".to_owned(),
        action: "/ui/all-projects/new".to_owned(),
        back: "/ui/all-projects".to_owned(),
        button: "Create",
        hidden: Vec::new(),
        tabs: vec![Tab { id: "project", label: "Project", groups: groups(Some(name), &Map::new()) }],
        wrong: Vec::new(),
        end: None,
        schedule: None,
    }
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New project", "projects").await?;
    new_sheet().show(frame, StatusCode::OK)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let mut body = fields::written(PROJECT_KEYS, &form);
    body.insert("name".to_owned(), form.get("name").unwrap_or_default().trim().into());
    match visit.api.post::<Project>("/api/v1/projects", &Value::Object(body)).await {
        Ok(made) => {
            Ok(visit.done(&format!("/ui/projects/{}", segment(&made.name)), format!("{} is there.", made.name)))
        }
        Err(refused) => {
            let frame = visit.frame("New project", "projects").await?;
            new_sheet().refused(frame, &form, refused)
        }
    }
}

fn sheet(visit: &Visit, known: &Map<String, Value>) -> Sheet {
    Sheet {
        title: format!("Settings of {}", visit.project()),
        intro: String::new(),
        action: visit.page_of_project("/settings"),
        back: visit.page_of_project(""),
        button: "Save",
        tabs: vec![Tab { id: "project", label: "Project", groups: groups(None, known) }],
        ..new_sheet()
    }
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let known: Map<String, Value> = visit.api.get(&visit.of_project("")).await?;
    let frame = visit.frame("Project settings", "settings").await?;
    sheet(&visit, &known).show(frame, StatusCode::OK)
}

pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let written = fields::written(PROJECT_KEYS, &form);
    // A merge: what the form leaves out takes its default.
    let body: Map<String, Value> = PROJECT_KEYS
        .iter()
        .map(|doc| (doc.name.to_owned(), written.get(doc.name).cloned().unwrap_or_default()))
        .collect();
    match visit.api.ask::<Value>(Method::PATCH, &visit.of_project(""), Some(&Value::Object(body))).await {
        Ok(_) => Ok(visit.done(&visit.page_of_project("/settings"), "The settings are changed.")),
        Err(refused) => {
            let known: Map<String, Value> = visit.api.get(&visit.of_project("")).await?;
            let frame = visit.frame("Project settings", "settings").await?;
            sheet(&visit, &known).refused(frame, &form, refused)
        }
    }
}
