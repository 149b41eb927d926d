//! Jobs: one act over many deliveries, how far it is, and what it left out and why. It must not know how one is worked off.

use askama::Template;
use axum::response::Response;
use postrider_core::Timestamp;
use postrider_core::access::Scope;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fault::{Fault, sentence};
use super::form::{Form, safe_way};
use super::frame::Frame;
use super::parts::{Badge, Count, Moment, Paging, Tone};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    id: String,
    act: String,
    topic: Option<String>,
    state: String,
    who: String,
    requested: Option<u64>,
    matched: Option<u64>,
    done: u64,
    #[serde(default)]
    skipped: Map<String, Value>,
    skipped_total: u64,
    outstanding: u64,
    created_at: Timestamp,
    ended_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Jobs {
    data: Vec<Job>,
    next_cursor: Option<String>,
}

impl Job {
    fn title(&self) -> String {
        match (&self.topic, self.act.as_str()) {
            (Some(topic), _) => format!("Forward to {topic}"),
            (None, "set_aside") => "Set aside".to_owned(),
            (None, act) => sentence(act).trim_end_matches('.').to_owned(),
        }
    }

    fn badge(&self) -> Badge {
        let (tone, word) = match self.state.as_str() {
            "RUNNING" => (Tone::Waiting, "running"),
            "PAUSED" => (Tone::Warning, "paused"),
            "CANCELLED" => (Tone::Quiet, "cancelled"),
            _ => (Tone::Good, "done"),
        };
        Badge { tone, word }
    }

    fn is_running(&self) -> bool {
        self.state == "RUNNING"
    }

    fn has_ended(&self) -> bool {
        matches!(self.state.as_str(), "DONE" | "CANCELLED")
    }

    /// How many it is about, once that is known.
    fn all(&self) -> Option<u64> {
        self.matched.or(self.requested)
    }

    fn handled(&self) -> u64 {
        self.done + self.skipped_total
    }

    /// How what was done is taken back, and where; nothing for what cannot be.
    fn undo(&self) -> Option<(&'static str, &'static str)> {
        match self.act.as_str() {
            "set_aside" if self.done > 0 => Some((
                "To take it back, retry them from the dead-letter queue: each goes to the tail of its queue.",
                "/failed",
            )),
            "discard" if self.done > 0 => Some((
                "To take it back, resend them from the delivery log, as long as it keeps them.",
                "/deliveries?status=DISCARDED",
            )),
            _ => None,
        }
    }

    fn reasons(&self) -> Vec<(String, String)> {
        let said = |reason: &str| match reason {
            "already_delivered" => "delivered before it was their turn",
            "in_flight" => "in flight at that moment",
            "wrong_status" => "no longer in a state in which that can be done",
            "not_found" => "gone from the log",
            "connection_gone" => "of a connection that was deleted",
            "no_topic" => "for a topic that does not exist",
            "no_room" => "for subscriptions whose queues are full, or that are too many",
            "changing" => "changed by somebody else at that moment",
            _ => "left out",
        };
        self.skipped.iter().map(|(reason, count)| (count.to_string(), said(reason).to_owned())).collect()
    }
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsPage<'a> {
    frame: Frame,
    visit: &'a Visit,
    jobs: Vec<Job>,
    paging: Paging,
}

pub async fn list(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let query = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let found: Jobs = visit.api.get(&visit.of_project(format!("/jobs?limit=50{query}"))).await?;
    let frame = visit.frame("Jobs", "jobs").await?;
    let paging = Paging::of(&visit.page_of_project("/jobs"), cursor.as_deref(), found.next_cursor.as_deref());
    show(&JobsPage { frame, jobs: found.data, paging, visit: &visit })
}

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage<'a> {
    frame: Frame,
    visit: &'a Visit,
    job: Job,
    back: String,
    may_operate: bool,
}

pub async fn one(mut visit: Visit) -> Result<Response, Fault> {
    let back = visit.query.take("back").unwrap_or_default();
    let back = safe_way(&back).map_or_else(|| visit.page_of_project("/jobs"), str::to_owned);
    let path = format!("/jobs/{}", segment(visit.segments.get("job")));
    let job: Job = visit.api.get(&visit.of_project(path)).await?;
    let frame = visit.frame(&job.title(), "jobs").await?;
    show(&JobPage { frame, job, back, may_operate: visit.may(Scope::Operate), visit: &visit })
}

/// `verb=pause|resume|cancel`
pub async fn control(visit: Visit, form: Form) -> Response {
    let id = segment(visit.segments.get("job")).to_string();
    let page = form.way_back(&visit.page_of_project(format!("/jobs/{id}")));
    let (verb, said) = match form.get("verb") {
        Some("pause") => ("pause", "The job is paused. What has been handed over by then is still done."),
        Some("resume") => ("resume", "The job goes on."),
        _ => ("cancel", "The job is cancelled. What has been done stays done."),
    };
    match visit.api.post::<Value>(&visit.of_project(format!("/jobs/{id}/{verb}")), &json!({})).await {
        Ok(_) => visit.done(&page, said),
        Err(refused) => visit.not_done(&page, sentence(&refused.detail)),
    }
}
