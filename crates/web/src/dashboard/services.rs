//! The services of a project: those at addresses that are configured here, and beside them the code that runs in this server or in its host.
//!
//! It must not know how a service is run.

use axum::response::Response;
use postrider_core::access::Scope;
use postrider_core::connection::{ConnectionKind, Family};
use serde::Deserialize;
use serde_json::Value;

use super::connections::{Pulses, State, new_label};
use super::families::page_of;
use super::fault::Fault;
use super::listing::{ACTS, Act, Cell, Empty, Listing, column, numbers};
use super::parts::{Badge, Paging, Tone};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
struct Service {
    name: String,
    source: String,
    configured: bool,
    address: Option<String>,
    #[serde(default)]
    hooks: Value,
    /// Of one that is configured.
    state: Option<State>,
}

#[derive(Deserialize)]
struct Services {
    data: Vec<Service>,
    next_cursor: Option<String>,
}

impl Service {
    fn runs_where(&self) -> String {
        match self.source.as_str() {
            "in_process" => "in this process".to_owned(),
            "hosted" => "in the host that this server started".to_owned(),
            _ => self.address.clone().unwrap_or_default(),
        }
    }

    fn badge(&self) -> Badge {
        let (tone, word) = match &self.state {
            None => (Tone::Good, "there"),
            Some(state) if state.paused => (Tone::Warning, "paused"),
            Some(state) if state.waiting > 0 => (Tone::Waiting, "waiting"),
            Some(_) => (Tone::Good, "clear"),
        };
        Badge { tone, word }
    }

    fn acknowledges(&self) -> &'static str {
        let has = self.hooks.as_array().is_some_and(|hooks| hooks.iter().any(|hook| hook == "queue-response"));
        if has || self.hooks == "queue-response" { "by itself" } else { "" }
    }
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let found: Services = visit.api.get(&visit.of_project(format!("/services?limit=100{more}"))).await?;
    let pulses = Pulses::of(&visit).await?;
    let frame = visit.frame("Services", "services").await?;
    let kind = ConnectionKind::Service.as_str();
    let rows = found.data.iter().map(|one| {
        let page = visit.page_of_project(page_of(kind, &one.name, ""));
        let (waiting, dead) = one.state.as_ref().map_or((0, 0), |state| (state.waiting, state.dead));
        let first = if one.configured {
            Cell::Link { href: page.clone(), text: one.name.clone(), below: one.runs_where() }
        } else {
            Cell::Two(one.name.clone(), one.runs_where())
        };
        let mut acts = Vec::new();
        if let Some(state) = &one.state {
            acts.push(Act::link("Delivery queue", format!("of {}", one.name), format!("{page}/queue")));
            if visit.may(Scope::Operate) {
                let (label, verb) = if state.paused { ("Resume", "resume") } else { ("Pause", "pause") };
                acts.push(Act::button(label, one.name.as_str(), format!("{page}/{verb}"), &frame));
            }
        }
        vec![
            first,
            Cell::State(one.badge()),
            Cell::Text(one.acknowledges().to_owned()),
            Cell::Drawn(pulses.spark(kind, &one.name)),
            Cell::Number(waiting),
            Cell::Trouble(dead),
            Cell::Error(pulses.last_error(kind, &one.name, frame.now)),
            Cell::Acts(acts),
        ]
    });
    let heads = if visit.may(Scope::Admin) {
        vec![(new_label(Family::Service), visit.page_of_project(format!("/connections/new/{kind}")))]
    } else {
        Vec::new()
    };
    show(&Listing {
        title: "Services".to_owned(),
        intro: "What channels run. What waits here was pushed by subscriptions; requests of a channel wait in the channel's own queue.".to_owned(),
        heads,
        columns: vec![
            column("Service"),
            column("State"),
            column("Acknowledges"),
            column("Last hour"),
            numbers("Waiting"),
            numbers("Dead letters"),
            column("Last error"),
            ACTS,
        ],
        order: None,
        rows: rows.collect(),
        paging: Paging::of(&visit.page_of_project("/services"), cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty {
            title: "No service yet",
            text: "A service is the code that a channel runs for each request: at an address of yours, in any language; in Python beside this server \
                   (`serve --services DIR`); or in the process of a program that uses the Rust crate. Make one of the first kind here, or:",
            example: "postrider services create orders address=http://127.0.0.1:9000",
        },
        frame,
    })
}
