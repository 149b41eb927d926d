//! `/deliveries`: the log and everything that waits, to read. Changes are in `delivery_acts`.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use postrider_core::connection::Connection;
use postrider_core::delivery::Delivery;
use postrider_core::id::ConnectionId;
use serde_json::json;

use super::shapes::{attempt_json, delivery_json, with_deferral};
use super::{Acting, AppState, filter, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let filter = filter::of_query(&state, project, &mut query).await?;
    let page = query.page()?;
    query.finish()?;
    let found = state.read().deliveries(&filter, page).await?;
    let connections = connections_of(&state, &found.items).await?;
    let known = |delivery: &Delivery| connections.get(&delivery.connection_id);
    let deferred = state.engine.deferred(&found.items).await?;
    let shown = |delivery: &Delivery| {
        with_deferral(delivery_json(delivery, known(delivery), state.seen()), deferred.get(&delivery.id))
    };
    let data = found.items.iter().map(shown).collect();
    Ok(list_response(data, found.next_cursor))
}

/// The connections that these deliveries go to, each read once.
pub(super) async fn connections_of(
    state: &AppState,
    deliveries: &[Delivery],
) -> Result<BTreeMap<ConnectionId, Connection>, Problem> {
    let mut connections = BTreeMap::new();
    for delivery in deliveries {
        let id = delivery.connection_id;
        if let std::collections::btree_map::Entry::Vacant(place) = connections.entry(id)
            && let Some(connection) = state.read().connection(id).await?
        {
            place.insert(connection);
        }
    }
    Ok(connections)
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let delivery = state.delivery(project, &segments).await?;
    answer(&state, &delivery).await
}

pub(super) async fn answer(state: &AppState, delivery: &Delivery) -> Result<Response, Problem> {
    let connection = state.read().connection(delivery.connection_id).await?;
    let deferred = state.engine.deferred(std::slice::from_ref(delivery)).await?;
    let shown = delivery_json(delivery, connection.as_ref(), state.seen());
    Ok(ok(&with_deferral(shown, deferred.get(&delivery.id))))
}

/// `?bodies=false` leaves out what was answered; then nobody has seen a body.
pub async fn attempts(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let with_bodies = !query.has("bodies") || query.flag("bodies")?;
    query.finish()?;
    let project = state.project(&segments).await?;
    let delivery = state.delivery(project, &segments).await?;
    let mut attempts = state.read().attempts(delivery.id).await?;
    if !state.sees_bodies || !with_bodies {
        attempts.iter_mut().for_each(|attempt| attempt.response_body.clear());
    }
    let seen: usize = attempts.iter().map(|attempt| attempt.response_body.len()).sum();
    if seen > 0 {
        // D44: what the remote answered is a body as well.
        let seen = json!({"attempts": attempts.len(), "body_bytes": seen});
        state.engine.note_view(project, "delivery.attempts.view", &delivery.id.to_string(), seen).await?;
    }
    Ok(list_response(attempts.iter().map(|attempt| attempt_json(attempt, state.seen())).collect(), None))
}

/// The body as a download. Whatever is in it, a browser is told neither to run nor to guess it.
pub async fn body(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let original = query.flag("original")?;
    query.finish()?;
    state.check_sees_bodies()?;
    let project = state.project(&segments).await?;
    let delivery = state.delivery(project, &segments).await?;
    let bytes = state.engine.view_body(&delivery, original).await?;
    let bytes = bytes.ok_or_else(|| Problem::not_found("body of delivery", segments.get("id")))?;
    let content_type = delivery
        .head
        .headers
        .get("content-type")
        .and_then(|value| HeaderValue::from_str(value).ok())
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    let disposition = format!("attachment; filename=\"{}\"", delivery.id);
    headers.insert(
        CONTENT_DISPOSITION,
        HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment")),
    );
    Ok(response)
}
