//! `/dlq`: Failed Messages, in the second seed's shape (R10, R11). The retry of one is that of its delivery.

use std::collections::BTreeSet;

use axum::response::Response;
use http::StatusCode;
use postrider_core::decide::ByHand;
use postrider_core::delivery::Status;
use postrider_core::job::JobAct;
use postrider_engine::{JobOrder, JobTarget};
use serde_json::json;

use super::deliveries::connections_of;
use super::shapes::dead_letter_json;
use super::{Acting, Input, filter, jobs, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

/// Ids of one bulk retry, at most.
pub(super) const IDS_MAX: usize = 1000;

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let mut filter = filter::of_query(&state, project, &mut query).await?;
    if !filter.statuses.is_empty() {
        return Err(Problem::bad_request("status", "everything in the DLQ has the status DLQ", "no `status` here"));
    }
    filter.statuses = vec![Status::Dlq];
    let page = query.page()?;
    query.finish()?;
    let found = state.read().deliveries(&filter, page).await?;
    let connections = connections_of(&state, &found.items).await?;
    let data = found
        .items
        .iter()
        .map(|item| dead_letter_json(item, connections.get(&item.connection_id), state.seen()))
        .collect();
    Ok(list_response(data, found.next_cursor))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let delivery = state.delivery(project, &segments).await?;
    if delivery.progress.status != Status::Dlq {
        return Err(Problem::not_found("dead letter", segments.get("id")));
    }
    let connection = state.read().connection(delivery.connection_id).await?;
    Ok(ok(&dead_letter_json(&delivery, connection.as_ref(), state.seen())))
}

/// `{deliveryIds}` → `{retried, requested}`, in the order given, so that they keep it in the queue (D27). What was refused is told one by one.
/// `{filter}` → a job (P08).
pub async fn retry_several(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let dry_run = input.fields.flag("dry_run").unwrap_or(false);
    if let Some(given) = input.fields.take("filter") {
        input.fields.finish(&["filter", "dry_run"])?;
        let filter = filter::of_json(&state, project, &given).await?;
        return jobs::begin_with_filter(&state, project, JobAct::Retry, filter, dry_run).await;
    }
    let given = jobs::ids(&mut input.fields, IDS_MAX);
    let mut ids = input.fields.required("deliveryIds", given).unwrap_or_default();
    // As in a job, each is taken once; a second retry of it would be refused for the first one's sake.
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    input.fields.finish(&["deliveryIds", "filter", "dry_run"])?;
    if dry_run {
        return jobs::count(&state, project, &JobOrder { act: JobAct::Retry, target: JobTarget::Ids(ids) }).await;
    }
    let mut retried = 0u64;
    let mut refused = Vec::new();
    for id in &ids {
        match state.engine.by_hand(project, *id, ByHand::Retry).await {
            Ok(_) => retried += 1,
            Err(refusal) => {
                let problem = Problem::from(refusal);
                // What fails for all of them is told at once, as long as nothing has been done yet.
                if problem.status() >= StatusCode::INTERNAL_SERVER_ERROR && retried == 0 {
                    return Err(problem);
                }
                refused
                    .push(json!({"deliveryId": id, "status": problem.status().as_u16(), "detail": problem.detail()}));
            }
        }
    }
    Ok(ok(&json!({"retried": retried, "requested": ids.len(), "refused": refused})))
}
