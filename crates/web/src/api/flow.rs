//! `/flow`: what was delivered, what failed and how long attempts took, in the last hour, day or week; from memory (P05, P06).
//!
//! Of the server that answers, since its start: with several servers each tells of its own. It must not know how it is drawn.

use axum::response::Response;
use postrider_core::flow::FlowRange;
use postrider_engine::Flow;
use serde_json::{Value, json};

use super::{Acting, ok};
use crate::problem::{Problem, clipped};
use crate::read::{Query, Segments};

/// `?range=hour|day|week`
pub async fn of_project(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let given = query.take("range");
    query.finish()?;
    let range = match given.as_deref() {
        None => FlowRange::Hour,
        Some(given) => FlowRange::parse(given).ok_or_else(|| {
            Problem::bad_request("range", format!("`range` is `{}`", clipped(given)), FlowRange::ALLOWED)
        })?,
    };
    let buckets = state.engine.flow(project, range);
    let all = buckets.iter().fold(Flow::default(), |all, (_, flow)| all.and(flow));
    let data: Vec<Value> = buckets
        .iter()
        .map(|(at, flow)| {
            let mut json = figures(flow);
            json["at"] = json!(at);
            json
        })
        .collect();
    Ok(ok(&json!({
        "range": range.as_str(),
        "step_seconds": range.step().as_millis() / 1000,
        "since": state.started_at,
        "total": figures(&all),
        "data": data,
    })))
}

fn figures(flow: &Flow) -> Value {
    json!({
        "delivered": flow.delivered,
        "failed": flow.failed,
        "dead": flow.dead,
        "p50_ms": flow.took(0.5),
        "p95_ms": flow.took(0.95),
        "p99_ms": flow.took(0.99),
    })
}

/// The last hour of each connection with attempts in it, by the minute, and how the last attempt that failed did so.
pub async fn of_connections(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    query.finish()?;
    let connections = state.engine.connections();
    let of_project = connections.iter().filter(|connection| connection.project_id == project);
    let data: Vec<Value> = of_project
        .filter_map(|connection| {
            let (pulse, error) = (state.engine.pulse(connection.id), state.engine.last_error(connection.id));
            if pulse.is_none() && error.is_none() {
                return None;
            }
            let pulse = pulse.unwrap_or_default();
            let error = error.map(|last| {
                json!({"at": last.at, "failure": last.failure.as_str(), "error": state.seen().error(last.error.as_deref())})
            });
            Some(json!({
                "connectionId": connection.id,
                "connection": connection.name,
                "type": connection.kind(),
                "delivered": pulse.iter().map(|minute| minute.delivered).collect::<Vec<_>>(),
                "failed": pulse.iter().map(|minute| minute.failed).collect::<Vec<_>>(),
                "lastError": error,
            }))
        })
        .collect();
    Ok(ok(&json!({"data": data})))
}
