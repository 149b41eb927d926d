//! One delivery: how it stands and why, what to do, its attempts on a line of time, and the answers that came.
//!
//! The page shows no body, so that looking at it by itself every few seconds is no look at health data. It must not know what an act does.

use askama::Template;
use axum::response::Response;
use postrider_core::access::Scope;
use postrider_core::{Timestamp, Wait};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::delivery::{Delivery, header_lines};
use super::fault::Fault;
use super::frame::Frame;
use super::parts::{Moment, Span};
use super::timeline::{Event, Shape, Timeline, Tried, WIDTH, timeline};
use super::visit::{Visit, segment, show};
use crate::body_view::{Kind, Limits, View, pretty};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub number: u32,
    pub started_at: Timestamp,
    pub took_ms: u64,
    pub failure: Option<String>,
    pub status: Option<u16>,
    pub error: Option<String>,
    #[serde(default)]
    pub response_headers: Map<String, Value>,
    pub response_body: Option<String>,
    pub response_body_base64: Option<String>,
    pub response_bytes: u64,
    pub incomplete: bool,
}

#[derive(Deserialize)]
struct Attempts {
    data: Vec<Attempt>,
}

impl Attempt {
    fn took(&self) -> Span {
        Span(Wait::from_millis(self.took_ms))
    }

    fn headers(&self) -> Vec<(String, String)> {
        header_lines(&self.response_headers)
    }

    /// What is kept of the answer, by its kind.
    fn answer(&self) -> View {
        let text = self.response_body.clone().map(String::into_bytes);
        let bytes = text.or_else(|| super::body::base64(self.response_body_base64.as_deref()?)).unwrap_or_default();
        let said = self.response_headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        pretty(Kind::of(said.and_then(|(_, value)| value.as_str()), &bytes), &bytes, Limits::FIRST)
    }
}

#[derive(Template)]
#[template(path = "one.html")]
struct OnePage<'a> {
    frame: Frame,
    visit: &'a Visit,
    delivery: Delivery,
    attempts: Vec<Attempt>,
    timeline: Timeline,
    may_operate: bool,
    sees_bodies: bool,
}

impl OnePage<'_> {
    fn way(&self, rest: &str) -> String {
        self.visit.page_of_project(format!("/deliveries/{}{rest}", segment(&self.delivery.id)))
    }

    fn headers(&self) -> Vec<(String, String)> {
        header_lines(&self.delivery.headers)
    }

    fn params(&self) -> Vec<(String, String)> {
        self.delivery.params.as_object().map(header_lines).unwrap_or_default()
    }

    fn last_status(&self) -> Option<u16> {
        self.attempts.last().and_then(|attempt| attempt.status)
    }
}

pub async fn page(visit: Visit) -> Result<Response, Fault> {
    let id = segment(visit.segments.get("delivery")).to_string();
    let delivery: Delivery = visit.api.get(&visit.of_project(format!("/deliveries/{id}"))).await?;
    let attempts: Attempts =
        visit.api.get(&visit.of_project(format!("/deliveries/{id}/attempts?bodies=false"))).await?;
    let mut events = events_of(&delivery);
    if visit.may(Scope::Admin) {
        events.extend(acts_by_hand(&visit, &delivery.id).await?);
    }
    let tried: Vec<Tried> = attempts.data.iter().map(tried).collect();
    let next = delivery.next_attempt_at.filter(|_| delivery.is_waiting());
    let frame = visit.frame(&delivery.what(), "deliveries").await?;
    show(&OnePage {
        timeline: timeline(delivery.created_at, &tried, events, next),
        frame,
        delivery,
        attempts: attempts.data,
        may_operate: visit.may(Scope::Operate),
        sees_bodies: visit.session.caller.sees_bodies(),
        visit: &visit,
    })
}

fn tried(attempt: &Attempt) -> Tried {
    Tried {
        number: attempt.number,
        started_at: attempt.started_at,
        took: Wait::from_millis(attempt.took_ms),
        failure: attempt.failure.clone(),
        status: attempt.status,
        error: attempt.error.clone(),
    }
}

/// What happened to it besides attempts.
fn events_of(delivery: &Delivery) -> Vec<Event> {
    let set_aside = delivery.dead_at.filter(|_| delivery.is_dead()).map(|at| Event {
        at,
        shape: Shape::SetAside,
        title: "Into the dead-letter queue".to_owned(),
    });
    let ended = delivery.ended_at.filter(|_| !delivery.is_delivered()).map(|at| Event {
        at,
        shape: Shape::Ended,
        title: delivery.badge().word.to_owned(),
    });
    set_aside.into_iter().chain(ended).collect()
}

/// From the audit log, which only those may read who administer.
async fn acts_by_hand(visit: &Visit, id: &str) -> Result<Vec<Event>, Fault> {
    #[derive(Deserialize)]
    struct Actor {
        name: String,
    }
    #[derive(Deserialize)]
    struct Entry {
        at: Timestamp,
        action: String,
        actor: Actor,
    }
    #[derive(Deserialize)]
    struct Entries {
        data: Vec<Entry>,
    }
    let path = visit.of_project(format!("/audit?object={}&limit=100", segment(id)));
    let found: Entries = visit.api.get(&path).await?;
    let acts = found.data.into_iter().filter_map(|entry| {
        let what = match entry.action.as_str() {
            "delivery.retry" => "Retried",
            "delivery.resend" => "Sent again",
            "delivery.edit" => "Edited",
            "delivery.attempt_now" => "Attempted now",
            "delivery.set_aside" => "Set aside",
            _ => return None,
        };
        Some(Event { at: entry.at, shape: Shape::ByHand, title: format!("{what} by {}", entry.actor.name) })
    });
    Ok(acts.collect())
}

#[derive(Template)]
#[template(path = "answers.html")]
struct AnswersPage<'a> {
    frame: Frame,
    visit: &'a Visit,
    delivery: Delivery,
    attempts: Vec<Attempt>,
}

impl AnswersPage<'_> {
    fn way(&self) -> String {
        self.visit.page_of_project(format!("/deliveries/{}", segment(&self.delivery.id)))
    }
}

/// What the remote system answered, attempt by attempt. That it was seen stands in the audit log.
pub async fn answers(visit: Visit) -> Result<Response, Fault> {
    let id = segment(visit.segments.get("delivery")).to_string();
    let delivery: Delivery = visit.api.get(&visit.of_project(format!("/deliveries/{id}"))).await?;
    if !visit.session.caller.sees_bodies() {
        return Err(super::body::hidden());
    }
    let attempts: Attempts = visit.api.get(&visit.of_project(format!("/deliveries/{id}/attempts"))).await?;
    let frame = visit.frame("Answers", "deliveries").await?;
    show(&AnswersPage { frame, delivery, attempts: attempts.data, visit: &visit })
}
