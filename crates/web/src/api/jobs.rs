//! Bulk acts and their jobs: `/deliveries/retry` and the like, `/dlq/…`, `/jobs` (Z23, P08).
//!
//! It must not know how a job is worked off.

use axum::response::Response;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use postrider_core::delivery::Status;
use postrider_core::id::{DeliveryId, JobId, ProjectId};
use postrider_core::job::{JobAct, JobControl};
use postrider_core::topic::TopicName;
use postrider_engine::{JobOrder, JobTarget};
use postrider_store::{DeliveryFilter, Job, JobScope};
use serde_json::{Map, Value, json};

use super::{Acting, AppState, Input, connection_ref, filter, json_response, list_response, ok};
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

/// Ids of one job, at most (`job_ids_max`); a filter has no such limit.
pub(super) const JOB_IDS_MAX: usize = 10_000;

/// What a path asks for, before the request says more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Retry,
    Resend,
    Discard,
    SetAside,
    Forward,
}

macro_rules! bulk {
    ($($name:ident: $asked:ident, $dead_only:literal;)*) => {$(
        pub async fn $name(
            state: Acting,
            segments: Segments,
            query: Query,
            input: Input,
        ) -> Result<Response, Problem> {
            bulk(state, segments, query, input, Asked::$asked, $dead_only).await
        }
    )*};
}

bulk! {
    retry: Retry, false;
    resend: Resend, false;
    discard: Discard, false;
    set_aside: SetAside, false;
    forward: Forward, false;
    resend_dead: Resend, true;
    discard_dead: Discard, true;
    forward_dead: Forward, true;
}

pub(super) async fn bulk(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
    asked: Asked,
    dead_only: bool,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let fields = &mut input.fields;
    let dry_run = fields.flag("dry_run").unwrap_or(false);
    let act = act(fields, asked);
    let given = fields.take("filter");
    let ids = ids(fields, JOB_IDS_MAX);
    match (&given, &ids) {
        (Some(_), Some(_)) => fields.refuse("filter", "`filter` and `deliveryIds` are both there", "one of the two"),
        (None, None) => {
            let allowed = "`deliveryIds`, or `filter`, which may be {} for all";
            fields.refuse("filter", "neither `filter` nor `deliveryIds` is there", allowed);
        }
        _ => {}
    }
    let known: &[&str] = match asked {
        Asked::Forward => &["filter", "deliveryIds", "dry_run", "topic", "keep_header"],
        _ => &["filter", "deliveryIds", "dry_run"],
    };
    input.fields.finish(known)?;
    let target = match (given, ids) {
        (Some(given), _) => {
            let found = filter::of_json(&state, project, &given).await?;
            JobTarget::Filter(Box::new(if dead_only { of_the_dlq(found)? } else { found }))
        }
        (None, ids) => JobTarget::Ids(ids.unwrap_or_default()),
    };
    let act = act.ok_or_else(|| Problem::field("topic", "`topic` is missing", super::topics::NAMES))?;
    begin(&state, project, JobOrder { act, target }, dry_run).await
}

fn of_the_dlq(mut filter: DeliveryFilter) -> Result<DeliveryFilter, Problem> {
    if !filter.statuses.is_empty() {
        let message = "everything in the DLQ has the status DLQ";
        return Err(Problem::bad_request("filter.status", message, "no `status` here"));
    }
    filter.statuses = vec![Status::Dlq];
    Ok(filter)
}

/// `None`: what it needs is missing or wrong, and has been refused.
fn act(fields: &mut Fields, asked: Asked) -> Option<JobAct> {
    match asked {
        Asked::Retry => Some(JobAct::Retry),
        Asked::Resend => Some(JobAct::Resend),
        Asked::Discard => Some(JobAct::Discard),
        Asked::SetAside => Some(JobAct::SetAside),
        Asked::Forward => {
            let keep_header = fields.flag("keep_header").unwrap_or(true);
            let given = fields.text("topic");
            match TopicName::new(fields.required("topic", given)?) {
                Ok(topic) => Some(JobAct::Forward { topic, keep_header }),
                Err(error) => {
                    fields.refuse("topic", format!("`topic` is no topic's name: {error}"), super::topics::NAMES);
                    None
                }
            }
        }
    }
}

/// `deliveryIds`, each of them read.
pub(super) fn ids(fields: &mut Fields, ids_max: usize) -> Option<Vec<DeliveryId>> {
    fields.ids("deliveryIds", ids_max, "a delivery's id")
}

/// 202 with the job and its address, or for a dry run 200 with how many it would be about.
async fn begin(state: &AppState, project: ProjectId, order: JobOrder, dry_run: bool) -> Result<Response, Problem> {
    if dry_run {
        return count(state, project, &order).await;
    }
    let job = state.engine.create_job(project, order).await?;
    let mut response = json_response(StatusCode::ACCEPTED, &job_json(state, &job).await?);
    if let Ok(address) = HeaderValue::from_str(&address(&job)) {
        response.headers_mut().insert(LOCATION, address);
    }
    Ok(response)
}

/// The answer to a dry run.
pub(super) async fn count(state: &AppState, project: ProjectId, order: &JobOrder) -> Result<Response, Problem> {
    let (matched, complete) = state.engine.count_for(project, order).await?;
    Ok(ok(&json!({"dry_run": true, "act": order.act.as_str(), "matched": matched, "complete": complete})))
}

/// A filter's job from a path that takes ids in another way, such as `/dlq/retry`.
pub(super) async fn begin_with_filter(
    state: &AppState,
    project: ProjectId,
    act: JobAct,
    filter: DeliveryFilter,
    dry_run: bool,
) -> Result<Response, Problem> {
    let target = JobTarget::Filter(Box::new(of_the_dlq(filter)?));
    begin(state, project, JobOrder { act, target }, dry_run).await
}

/// Everything that waits for one connection goes to the DLQ (D31, D44).
pub async fn set_queue_aside(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    let named = connection_ref(&segments, &mut query)?;
    query.finish()?;
    let dry_run = input.fields.flag("dry_run").unwrap_or(false);
    input.fields.finish(&["dry_run"])?;
    let project = state.project(&segments).await?;
    let connection = state.engine.connection(project, &named).await?;
    let filter = DeliveryFilter { connection_id: Some(connection.id), ..DeliveryFilter::default() };
    let order = JobOrder { act: JobAct::SetAside, target: JobTarget::Filter(Box::new(filter)) };
    begin(&state, project, order, dry_run).await
}

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    query.finish()?;
    let found = state.read_jobs().jobs(project, page).await?;
    let mut data = Vec::with_capacity(found.items.len());
    for job in &found.items {
        data.push(job_json(&state, job).await?);
    }
    Ok(list_response(data, found.next_cursor))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let job = state.engine.job(project, job_id(&segments)?).await?;
    Ok(ok(&job_json(&state, &job).await?))
}

pub async fn pause(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    control(state, segments, query, JobControl::Pause).await
}

pub async fn resume(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    control(state, segments, query, JobControl::Resume).await
}

pub async fn cancel(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    control(state, segments, query, JobControl::Cancel).await
}

async fn control(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    control: JobControl,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let job = state.engine.control_job(project, job_id(&segments)?, control).await?;
    Ok(ok(&job_json(&state, &job).await?))
}

/// What is not shaped like an id names no job.
fn job_id(segments: &Segments) -> Result<JobId, Problem> {
    let text = segments.get("id");
    text.parse().map_err(|_| Problem::not_found("job", text))
}

fn address(job: &Job) -> String {
    format!("/api/v1/projects/{}/jobs/{}", job.project_id, job.id)
}

async fn job_json(state: &AppState, job: &Job) -> Result<Value, Problem> {
    let (filter, requested) = match &job.scope {
        JobScope::Ids { requested } => (Value::Null, json!(requested)),
        JobScope::Filter(given) => {
            let connection = match given.connection_id {
                Some(id) => state.read().connection(id).await?,
                None => None,
            };
            (filter::shown(given, connection.as_ref().map(|known| known.name.as_str())), Value::Null)
        }
    };
    let (topic, keep_header) = match &job.act {
        JobAct::Forward { topic, keep_header } => (json!(topic), json!(keep_header)),
        JobAct::Retry | JobAct::Resend | JobAct::Discard | JobAct::SetAside => (Value::Null, Value::Null),
    };
    let skipped: Map<String, Value> =
        job.skipped.iter().map(|(reason, count)| (reason.as_str().to_owned(), json!(count))).collect();
    Ok(json!({
        "id": job.id,
        "address": address(job),
        "act": job.act.as_str(),
        "topic": topic,
        "keep_header": keep_header,
        "state": job.state,
        "who": job.who,
        "filter": filter,
        "requested": requested,
        "matched": job.matched,
        "done": job.done,
        "skipped": skipped,
        "skippedTotal": job.skipped_in_all(),
        "outstanding": job.outstanding,
        "createdAt": job.created_at,
        "changedAt": job.changed_at,
        "endedAt": job.ended_at,
    }))
}
