//! Jobs: one act over many deliveries, by ids or by filter, and what became of it (Z23, P08).

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::page::query;
use super::{Client, ClientError, DeliveryQuery, Page, PageQuery, segment};

/// How often a job that is waited for is looked at, at first and at last.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// What is done to each delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobAct {
    Retry,
    /// By filter and time range this is a replay.
    Resend,
    Discard,
    SetAside,
    /// To a topic, with or without the note in the headers.
    Forward {
        topic: String,
        keep_header: bool,
    },
}

/// Which deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobTarget {
    /// At most 10,000, in this order.
    Ids(Vec<String>),
    /// Those that the list shows for the same query; its page is not looked at. Without a status, those to which the act can be done.
    Filter(Box<DeliveryQuery>),
}

/// A job as the server shows it. Times are RFC 3339 in UTC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: String,
    /// `retry`, `resend`, `discard`, `set_aside`, `forward`.
    pub act: String,
    /// `RUNNING`, `PAUSED`, `CANCELLED`, `DONE`.
    pub state: String,
    #[serde(default)]
    pub who: String,
    /// How many it is about; `None` until they have been counted.
    #[serde(default)]
    pub matched: Option<u64>,
    #[serde(default)]
    pub done: u64,
    /// What was left as it was, by reason, such as `already_delivered`.
    #[serde(default)]
    pub skipped: BTreeMap<String, u64>,
    #[serde(default)]
    pub skipped_total: u64,
    /// Handed to the owners of queues and not yet answered.
    #[serde(default)]
    pub outstanding: u64,
    #[serde(default)]
    pub created_at: Option<String>,
    #[serde(default)]
    pub ended_at: Option<String>,
    /// Everything else that the server tells, such as the filter.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Job {
    pub fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }
}

/// What a dry run counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matching {
    pub matched: u64,
    /// `false`: there are more than could be counted in the time that a dry run gets.
    pub complete: bool,
}

impl JobAct {
    const fn path(&self) -> &'static str {
        match self {
            JobAct::Retry => "/deliveries/retry",
            JobAct::Resend => "/deliveries/resend",
            JobAct::Discard => "/deliveries/discard",
            JobAct::SetAside => "/deliveries/set-aside",
            JobAct::Forward { .. } => "/deliveries/forward",
        }
    }
}

impl Client {
    /// Begins a job; it goes on by itself, also over a restart of the server.
    pub async fn begin_job(&self, act: &JobAct, target: &JobTarget) -> Result<Job, ClientError> {
        self.transport.json(Method::POST, &self.under_project(act.path()), &request(act, target, false)).await
    }

    /// How many deliveries such a job would be about. Nothing is changed.
    pub async fn count_for_job(&self, act: &JobAct, target: &JobTarget) -> Result<Matching, ClientError> {
        self.transport.json(Method::POST, &self.under_project(act.path()), &request(act, target, true)).await
    }

    /// Newest first.
    pub async fn jobs(&self, page: &PageQuery) -> Result<Page<Job>, ClientError> {
        self.transport.get(&self.under_project(&format!("/jobs{}", query(&page.pairs())))).await
    }

    pub async fn job(&self, id: &str) -> Result<Job, ClientError> {
        self.transport.get(&self.under_job(id, "")).await
    }

    /// It stands still until it is resumed. What was handed to the owners of queues is still done.
    pub async fn pause_job(&self, id: &str) -> Result<Job, ClientError> {
        self.transport.act(Method::POST, &self.under_job(id, "/pause")).await
    }

    pub async fn resume_job(&self, id: &str) -> Result<Job, ClientError> {
        self.transport.act(Method::POST, &self.under_job(id, "/resume")).await
    }

    /// What it has done stays done.
    pub async fn cancel_job(&self, id: &str) -> Result<Job, ClientError> {
        self.transport.act(Method::POST, &self.under_job(id, "/cancel")).await
    }

    /// Waits for the job's end, and shows it at every look. A server that cannot be reached ends the waiting, not the job.
    pub async fn wait_for_job(&self, id: &str, mut seen: impl FnMut(&Job)) -> Result<Job, ClientError> {
        let mut look = FIRST_LOOK;
        loop {
            let job = self.job(id).await?;
            seen(&job);
            if job.has_ended() {
                return Ok(job);
            }
            tokio::time::sleep(look).await;
            look = (look * 2).min(LONGEST_LOOK);
        }
    }

    /// The head of a connection's queue is attempted without waiting for its time (D44).
    pub async fn attempt_head_now(&self, connection: &str) -> Result<super::Delivery, ClientError> {
        self.transport.act(Method::POST, &self.under_connection(connection, "/queue/attempt-now")).await
    }

    fn under_job(&self, id: &str, rest: &str) -> String {
        self.under_project(&format!("/jobs/{}{rest}", segment(id)))
    }
}

fn request(act: &JobAct, target: &JobTarget, dry_run: bool) -> Value {
    let mut object = Map::new();
    match target {
        JobTarget::Ids(ids) => object.insert("deliveryIds".into(), json!(ids)),
        JobTarget::Filter(asked) => object.insert("filter".into(), filter(asked)),
    };
    if let JobAct::Forward { topic, keep_header } = act {
        object.insert("topic".into(), json!(topic));
        object.insert("keep_header".into(), json!(keep_header));
    }
    if dry_run {
        object.insert("dry_run".into(), true.into());
    }
    Value::Object(object)
}

/// A name that comes several times has a list.
pub(super) fn filter(asked: &DeliveryQuery) -> Value {
    let mut object: Map<String, Value> = Map::new();
    for (name, value) in asked.conditions() {
        match object.get_mut(&name) {
            None => drop(object.insert(name, value.into())),
            Some(Value::Array(values)) => values.push(value.into()),
            Some(first) => *first = Value::Array(vec![first.take(), value.into()]),
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_and_which() {
        let asked = DeliveryQuery {
            connection: Some("rest:Billing API".into()),
            statuses: vec!["DLQ".into(), "FAILED".into()],
            more: vec![("attempts_min".into(), "3".into())],
            ..DeliveryQuery::default()
        };
        let act = JobAct::Forward { topic: "a.b".into(), keep_header: false };
        assert_eq!(
            request(&act, &JobTarget::Filter(Box::new(asked)), true),
            json!({
                "filter": {"connection": "Billing API", "type": "rest", "status": ["DLQ", "FAILED"], "attempts_min": "3"},
                "topic": "a.b", "keep_header": false, "dry_run": true,
            })
        );
        let ids = request(&JobAct::Retry, &JobTarget::Ids(vec!["msg_1".into()]), false);
        assert_eq!(ids, json!({"deliveryIds": ["msg_1"]}));
    }
}
