//! Sources of incoming webhooks: how each does, what it refused, where it forwards to; and its address and secret, which are shown once.
//!
//! It must not know how a webhook proves itself.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use http::Method;
use postrider_core::Timestamp;
use postrider_core::access::Scope;
use serde::Deserialize;
use serde_json::{Value, json};

use super::destinations::{Destination, Destinations};
use super::fault::Fault;
use super::form::Form;
use super::frame::Frame;
use super::listing::{Cell, Empty, Listing, column, numbers};
use super::parts::{Badge, Count, Moment, Paging, Tone};
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    pub id: String,
    pub name: String,
    pub provider: String,
    pub topic: String,
    #[serde(default)]
    pub description: String,
    pub enabled: bool,
    pub secret_configured: bool,
    pub secret_unreadable: Option<Value>,
    pub former_token_opens_until: Option<Timestamp>,
    pub former_secret_verifies_until: Option<Timestamp>,
    pub figures: Figures,
    pub destinations: u64,
    /// Only of one that was just made, or that was just given another address or secret.
    pub ingress_path: Option<String>,
    pub ingress_url: Option<String>,
    pub secret: Option<String>,
}

/// Of the server that answers, since its start.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    pub accepted: u64,
    pub duplicates: u64,
    pub handshakes: u64,
    /// By reason.
    pub rejected: BTreeMap<String, u64>,
    pub last_accepted_at: Option<Timestamp>,
    pub last_rejections: Vec<Rejection>,
}

#[derive(Deserialize)]
pub struct Rejection {
    pub at: Timestamp,
    pub reason: String,
    pub detail: Option<String>,
    pub address: Option<String>,
}

#[derive(Deserialize)]
struct Sources {
    data: Vec<Source>,
    next_cursor: Option<String>,
}

impl Source {
    pub fn badge(&self) -> Badge {
        let (tone, word) = match self {
            Source { secret_unreadable: Some(_), .. } => (Tone::Bad, "secret unreadable"),
            Source { enabled: false, .. } => (Tone::Quiet, "off"),
            Source { destinations: 0, .. } => (Tone::Warning, "goes nowhere"),
            _ => (Tone::Good, "on"),
        };
        Badge { tone, word }
    }
}

impl Figures {
    pub fn refused(&self) -> u64 {
        self.rejected.values().sum()
    }

    /// The newest, wherever it stands.
    fn last_rejection(&self, now: Timestamp) -> Option<(Moment, String, String)> {
        let last = self.last_rejections.iter().max_by_key(|rejection| rejection.at)?;
        Some((Moment { at: last.at, now }, last.reason.clone(), last.detail.clone().unwrap_or_default()))
    }
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let found: Sources = visit.api.get(&visit.of_project(format!("/sources?limit=100{more}"))).await?;
    let (now, page) = (visit.now(), visit.page_of_project("/sources"));
    let rows = found.data.iter().map(|source| {
        vec![
            Cell::Link {
                href: format!("{page}/{}", segment(&source.id)),
                text: source.name.clone(),
                below: format!("{} · {}", source.provider, source.topic),
            },
            Cell::State(source.badge()),
            Cell::Number(source.destinations),
            Cell::Number(source.figures.accepted),
            Cell::Number(source.figures.duplicates),
            Cell::Trouble(source.figures.refused()),
            Cell::Time(source.figures.last_accepted_at.map(|at| Moment { at, now })),
            Cell::Error(source.figures.last_rejection(now)),
        ]
    });
    let heads =
        if visit.may(Scope::Admin) { vec![("New source", visit.page_of_project("/new-source"))] } else { Vec::new() };
    show(&Listing {
        title: "Sources".to_owned(),
        intro: "Where webhooks of others come in. Figures are this server's, since it started.".to_owned(),
        heads,
        columns: vec![
            column("Source"),
            column("State"),
            numbers("Destinations"),
            numbers("Accepted"),
            numbers("Repeats"),
            numbers("Refused"),
            column("Last accepted"),
            column("Last refused"),
        ],
        order: None,
        rows: rows.collect(),
        paging: Paging::of(&page, cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty {
            title: "No source yet",
            text: "A source is an address for the webhooks of one provider: GitHub, Stripe, Slack and others, or any with an HMAC signature. What comes \
                   in is verified, stored, answered at once, and forwarded to each of its destinations until it is there.",
            example: "",
        },
        frame: visit.frame("Sources", "sources").await?,
    })
}

pub fn path(visit: &Visit, rest: &str) -> String {
    visit.of_project(format!("/sources/{}{rest}", segment(visit.segments.get("source"))))
}

pub fn page(visit: &Visit, rest: &str) -> String {
    visit.page_of_project(format!("/sources/{}{rest}", segment(visit.segments.get("source"))))
}

#[derive(Template)]
#[template(path = "source.html")]
struct SourcePage<'a> {
    frame: Frame,
    visit: &'a Visit,
    source: Source,
    page: String,
    destinations: Vec<Destination>,
    may_operate: bool,
    may_change: bool,
}

pub async fn one(visit: Visit) -> Result<Response, Fault> {
    let mut source: Source = visit.api.get(&path(&visit, "")).await?;
    source.figures.last_rejections.sort_by_key(|rejection| std::cmp::Reverse(rejection.at));
    let of_source = visit.of_project(format!("/destinations?limit=1000&sourceId={}", segment(&source.id)));
    let destinations: Destinations = visit.api.get(&of_source).await?;
    show(&SourcePage {
        frame: visit.frame(&source.name, "sources").await?,
        page: page(&visit, ""),
        destinations: destinations.data,
        may_operate: visit.may(Scope::Operate),
        may_change: visit.may(Scope::Admin),
        source,
        visit: &visit,
    })
}

/// What is shown once: what the provider has to be told.
#[derive(Template)]
#[template(path = "credentials.html")]
struct CredentialsPage {
    frame: Frame,
    name: String,
    /// Each with what it is.
    shown: Vec<(&'static str, &'static str, String)>,
    next: String,
}

pub async fn shown_once(visit: &Visit, source: Source) -> Result<Response, Fault> {
    let mut shown = Vec::new();
    if let Some(url) = source.ingress_url {
        shown.push(("address", "The address", url));
    } else if let Some(path) = source.ingress_path {
        shown.push(("address", "The address, behind that of this server", path));
    }
    if let Some(secret) = source.secret {
        shown.push(("secret", "The secret", secret));
    }
    show(&CredentialsPage {
        frame: visit.frame("Address and secret", "sources").await?,
        next: visit.page_of_project(format!("/sources/{}", segment(&source.id))),
        name: source.name,
        shown,
    })
}

/// `on=true|false`
pub async fn switch(visit: Visit, form: Form) -> Response {
    let back = page(&visit, "");
    let is_on = form.is_on("on");
    let said = if is_on {
        "It is on: webhooks are taken in."
    } else {
        "It is off: whoever sends here is answered 410, and nothing is stored."
    };
    match visit.api.ask::<Value>(Method::PATCH, &path(&visit, ""), Some(&json!({"enabled": is_on}))).await {
        Ok(_) => visit.done(&back, said),
        Err(refused) => visit.refused(&back, refused),
    }
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let source: Source = visit.api.get(&path(&visit, "")).await?;
    let frame = visit.frame("Delete", "sources").await?;
    let mut facts = vec![
        "Its address is gone for good: whoever sends there is answered 404. A new source has another address."
            .to_owned(),
        "Forwards that are there already go on; the messages of its topic stay for its retention.".to_owned(),
    ];
    if source.destinations > 0 {
        facts.insert(1, format!("Its {} destinations stay, as subscriptions to its topic.", source.destinations));
    }
    let title = format!("Delete {}?", source.name);
    let (action, back) = (page(&visit, "/delete"), page(&visit, ""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Delete it", back: &back },
    )
}

pub async fn delete(visit: Visit, _: Form) -> Response {
    match visit.api.ask::<Value>(Method::DELETE, &path(&visit, ""), None).await {
        Ok(_) => visit.done(&visit.page_of_project("/sources"), "The source is deleted."),
        Err(refused) => visit.refused(&page(&visit, ""), refused),
    }
}
