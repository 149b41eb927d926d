//! Keys of the API: of a project, or of the installation. A key is on a page once, right after it was made. It must not know what a key opens.

use axum::response::Response;
use http::{Method, StatusCode};
use postrider_core::Timestamp;
use postrider_core::access::Scope;
use serde::Deserialize;
use serde_json::{Value, json};

use super::endpoints::SecretPage;
use super::fault::Fault;
use super::fields::{Field, Widget};
use super::form::Form;
use super::forms::{Group, Sheet, Tab};
use super::listing::{ACTS, Act, Cell, Empty, Listing, column};
use super::parts::{Moment, Paging};
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    id: String,
    name: String,
    scopes: Vec<String>,
    hint: String,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    former_works_until: Option<Timestamp>,
    /// Only of one that was just made.
    key: Option<String>,
}

#[derive(Deserialize)]
struct Keys {
    data: Vec<Key>,
}

/// Below the project in the path, or of the installation.
fn path(visit: &Visit, rest: &str) -> String {
    if visit.project().is_empty() { format!("/api/v1/keys{rest}") } else { visit.of_project(format!("/keys{rest}")) }
}

fn page(visit: &Visit, rest: &str) -> String {
    if visit.project().is_empty() { format!("/ui/keys{rest}") } else { visit.page_of_project(format!("/keys{rest}")) }
}

fn place(visit: &Visit) -> &'static str {
    if visit.project().is_empty() { "installation-keys" } else { "keys" }
}

pub async fn list(visit: Visit) -> Result<Response, Fault> {
    let found: Keys = visit.api.get(&path(&visit, "")).await?;
    let now = visit.now();
    let moment = |at: Option<Timestamp>| Cell::Time(at.map(|at| Moment { at, now }));
    let rows = found.data.iter().map(|key| {
        let of = &key.name;
        let acts = [("Make anew", "rotate"), ("Revoke", "revoke")]
            .map(|(label, verb)| Act::link(label, of.as_str(), page(&visit, &format!("/{}/{verb}", segment(&key.id)))));
        let until = match key.former_works_until.filter(|end| *end > now) {
            Some(end) => format!("{} (the former one works until {} UTC)", key.hint, super::parts::plain(end)),
            None => key.hint.clone(),
        };
        vec![
            Cell::Two(key.name.clone(), until),
            Cell::Text(key.scopes.join(", ")),
            moment(key.last_used_at),
            moment(key.expires_at),
            moment(Some(key.created_at)),
            Cell::Acts(acts.into()),
        ]
    });
    let of_installation = visit.project().is_empty();
    show(&Listing {
        title: if of_installation { "Keys of the installation".to_owned() } else { "Keys".to_owned() },
        intro: String::new(),
        heads: vec![("New key", page(&visit, "/new"))],
        columns: vec![column("Key"), column("Scopes"), column("Last used"), column("Ends"), column("Made"), ACTS],
        order: None,
        rows: rows.collect(),
        paging: Paging::default(),
        empty: Empty {
            title: "No key yet",
            text: "A program acts with a key, and can do what the key's scopes say: read, send, operate, admin. A key is shown once, when it is made.",
            example: "",
        },
        frame: visit.frame("Keys", place(&visit)).await?,
    })
}

fn sheet(visit: &Visit) -> Sheet {
    let words = Scope::ALL.map(Scope::as_str);
    let scopes = words.map(|word| {
        let meaning = match word {
            "read" => "See configuration, deliveries, attempts and bodies.",
            "send" => "Send and publish; nothing can be read with it alone.",
            "operate" => "Act on deliveries and pause connections; includes read.",
            _ => "Change the configuration, keys included; includes all others.",
        };
        Field::line(&format!("scope_{word}"), word, meaning).shown_as(Widget::Box)
    });
    let mut all = vec![Field::line("name", "Name", "Who or what uses it.").required()];
    all.push(Field::line("expiresAt", "Ends", "A time such as 2027-03-12T12:00:00Z; empty: never."));
    Sheet {
        title: "New key".to_owned(),
        intro: String::new(),
        action: page(visit, "/new"),
        back: page(visit, ""),
        button: "Make the key",
        hidden: Vec::new(),
        tabs: vec![Tab {
            id: "key",
            label: "Key",
            groups: vec![Group::open("", all), Group::open("Scopes", scopes.into())],
        }],
        wrong: Vec::new(),
        end: None,
        schedule: None,
    }
}

pub async fn new(visit: Visit) -> Result<Response, Fault> {
    let frame = visit.frame("New key", place(&visit)).await?;
    sheet(&visit).show(frame, StatusCode::OK)
}

pub async fn create(visit: Visit, form: Form) -> Result<Response, Fault> {
    let scopes = Scope::ALL.map(Scope::as_str).into_iter().filter(|word| form.is_on(&format!("scope_{word}")));
    let mut body = json!({"name": form.text("name"), "scopes": scopes.collect::<Vec<_>>()});
    if let Some(at) = form.text("expiresAt") {
        body["expiresAt"] = at.into();
    }
    match visit.api.post::<Key>(&path(&visit, ""), &body).await {
        Ok(made) => shown_once(&visit, &made).await,
        Err(refused) => {
            let frame = visit.frame("New key", place(&visit)).await?;
            sheet(&visit).refused(frame, &form, refused)
        }
    }
}

async fn shown_once(visit: &Visit, key: &Key) -> Result<Response, Fault> {
    show(&SecretPage {
        frame: visit.frame("The key", place(visit)).await?,
        title: format!("The key {}", key.name),
        what: "Sent as Authorization: Bearer, or as X-API-Key.",
        secret: key.key.as_deref().unwrap_or_default(),
        next: page(visit, ""),
    })
}

fn of_key(visit: &Visit, rest: &str) -> String {
    format!("/{}{rest}", segment(visit.segments.get("key")))
}

pub async fn ask_rotate(visit: Visit) -> Result<Response, Fault> {
    let key: Key = visit.api.get(&path(&visit, &of_key(&visit, ""))).await?;
    let frame = visit.frame("Make anew", place(&visit)).await?;
    let facts = ["The former key works for another day beside the new one.".to_owned()];
    let title = format!("Make the key {} anew?", key.name);
    let (action, back) = (page(&visit, &of_key(&visit, "/rotate")), page(&visit, ""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Make it anew", back: &back },
    )
}

pub async fn rotate(visit: Visit, _: Form) -> Result<Response, Fault> {
    match visit.api.post::<Key>(&path(&visit, &of_key(&visit, "/rotate")), &json!({})).await {
        Ok(made) => shown_once(&visit, &made).await,
        Err(refused) => Ok(visit.refused(&page(&visit, ""), refused)),
    }
}

pub async fn ask_revoke(visit: Visit) -> Result<Response, Fault> {
    let key: Key = visit.api.get(&path(&visit, &of_key(&visit, ""))).await?;
    let frame = visit.frame("Revoke", place(&visit)).await?;
    let facts = ["Whatever uses it is refused from now on. It cannot be brought back.".to_owned()];
    let title = format!("Revoke the key {}?", key.name);
    let (action, back) = (page(&visit, &of_key(&visit, "/revoke")), page(&visit, ""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Revoke it", back: &back },
    )
}

pub async fn revoke(visit: Visit, _: Form) -> Response {
    match visit.api.ask::<Value>(Method::DELETE, &path(&visit, &of_key(&visit, "")), None).await {
        Ok(_) => visit.done(&page(&visit, ""), "The key is revoked."),
        Err(refused) => visit.refused(&page(&visit, ""), refused),
    }
}
