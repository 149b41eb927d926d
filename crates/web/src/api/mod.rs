//! The routes of `/api/v1` and `/health`, one file per resource.
//!
//! Handlers read a request, ask the engine, and write the answer. They must not know of policies: the engine refuses what may not be.

mod configuration;
mod connections;
mod deliveries;
mod delivery_acts;
mod dlq;
mod filter;
mod health;
mod idempotency;
mod jobs;
mod metrics;
mod projects;
mod publish_batch;
mod queues;
mod schedule;
mod send;
mod shapes;
mod topic_messages;
mod topics;

pub use send::read_message;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, StatusCode};
use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;
use postrider_core::id::ProjectId;
use postrider_engine::{Clock, ConnectionRef, Engine};
use postrider_store::{Jobs, StoreRead};
use serde_json::{Value, json};

use crate::auth::{AdminKey, require_key};
use crate::problem::{Problem, unknown_path, wrong_method};
use crate::read::{BodyBounds, Fields, Query, Segments, collect, delivery_id};

/// The API's own limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiOptions {
    pub body: BodyBounds,
}

/// What every handler works with.
#[derive(Clone)]
pub struct AppState {
    engine: Engine,
    clock: Arc<dyn Clock>,
    options: ApiOptions,
    started_at: Timestamp,
}

impl AppState {
    pub fn new(engine: Engine, clock: Arc<dyn Clock>, options: ApiOptions) -> Self {
        let started_at = clock.now();
        AppState { engine, clock, options, started_at }
    }

    fn read(&self) -> &dyn StoreRead {
        self.engine.read()
    }

    fn read_jobs(&self) -> &dyn Jobs {
        self.engine.read_jobs()
    }

    async fn project(&self, segments: &Segments) -> Result<ProjectId, Problem> {
        Ok(self.engine.project(segments.get("project")).await?)
    }

    /// The delivery in the path; one of another project does not exist here.
    async fn delivery(&self, project: ProjectId, segments: &Segments) -> Result<Delivery, Problem> {
        let text = segments.get("id");
        let found = self.read().delivery(delivery_id(text)?).await?;
        found.filter(|delivery| delivery.project_id == project).ok_or_else(|| Problem::not_found("delivery", text))
    }
}

/// All routes, behind the key (but health) and with a problem for everything that goes wrong.
pub fn router(state: AppState, admin: AdminKey) -> Router {
    let project = Router::new()
        .route("/", get(projects::one))
        .route("/connections", get(connections::list).post(connections::create))
        .route(
            "/connections/{name}",
            get(connections::one).put(connections::replace).patch(connections::merge).delete(connections::delete),
        )
        .route("/connections/{name}/pause", post(connections::pause))
        .route("/connections/{name}/resume", post(connections::resume))
        .route("/connections/{name}/send", post(send::send))
        .route("/connections/{name}/publish", post(send::publish))
        .route("/connections/{name}/publish/batch", post(publish_batch::publish_batch))
        .route("/connections/{name}/queue", get(queues::queue))
        .route("/connections/{name}/queue/attempt-now", post(queues::attempt_head_now))
        .route("/connections/{name}/queue/set-aside", post(jobs::set_queue_aside))
        .route("/connections/{name}/dlq", get(queues::dead_letters))
        .route("/connections/{name}/schedule", get(schedule::of_connection))
        .route("/deliveries", get(deliveries::list))
        .route("/deliveries/retry", post(jobs::retry))
        .route("/deliveries/resend", post(jobs::resend))
        .route("/deliveries/discard", post(jobs::discard))
        .route("/deliveries/set-aside", post(jobs::set_aside))
        .route("/deliveries/forward", post(jobs::forward))
        .route("/deliveries/{id}", get(deliveries::one).patch(delivery_acts::edit).delete(delivery_acts::discard))
        .route("/deliveries/{id}/attempts", get(deliveries::attempts))
        .route("/deliveries/{id}/body", get(deliveries::body))
        .route("/deliveries/{id}/retry", post(delivery_acts::retry))
        .route("/deliveries/{id}/resend", post(delivery_acts::resend))
        .route("/deliveries/{id}/set-aside", post(delivery_acts::set_aside))
        .route("/deliveries/{id}/attempt-now", post(delivery_acts::attempt_now))
        .route("/deliveries/{id}/forward", post(delivery_acts::forward))
        .route("/dlq", get(dlq::list))
        .route("/dlq/retry", post(dlq::retry_several))
        .route("/dlq/resend", post(jobs::resend_dead))
        .route("/dlq/discard", post(jobs::discard_dead))
        .route("/dlq/forward", post(jobs::forward_dead))
        .route("/dlq/{id}", get(dlq::one))
        .route("/dlq/{id}/retry", post(delivery_acts::retry))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{id}", get(jobs::one))
        .route("/jobs/{id}/pause", post(jobs::pause))
        .route("/jobs/{id}/resume", post(jobs::resume))
        .route("/jobs/{id}/cancel", post(jobs::cancel))
        .route("/topics", get(topics::list).post(topics::create))
        .route("/topics/{topic}", get(topics::one).delete(topics::delete))
        .route("/topics/{topic}/publish", post(topic_messages::publish))
        .route("/topics/{topic}/messages", get(topic_messages::list))
        .route("/topics/{topic}/subscriptions", get(topics::subscriptions).post(topics::subscribe))
        .route("/topics/{topic}/subscriptions/{name}", axum::routing::delete(topics::unsubscribe))
        .route("/topics/{topic}/subscriptions/{name}/pull", post(topic_messages::pull))
        .route("/topics/{topic}/subscriptions/{name}/ack", post(topic_messages::acknowledge));
    Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/projects", get(projects::list))
        .route("/api/v1/schedule", get(schedule::of_preset))
        .route("/api/v1/import", post(configuration::import))
        .route("/api/v1/export", get(configuration::export))
        .nest("/api/v1/projects/{project}", project)
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(admin, require_key))
        .layer(map_response(with_safe_headers))
        .with_state(state)
}

/// No answer of the API is to be kept by a cache or guessed at by a browser.
async fn with_safe_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A request's JSON object, read within the limits, and its bytes.
struct Input {
    headers: HeaderMap,
    bytes: Bytes,
    fields: Fields,
}

impl FromRequest<AppState> for Input {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (parts, body): (_, Body) = request.into_parts();
        let bytes = collect(&parts.headers, body, &state.options.body).await?;
        let fields = Fields::read(&parts.headers, &bytes)?;
        Ok(Input { headers: parts.headers, bytes, fields })
    }
}

/// The connection that a path and `?type=` name.
fn connection_ref(segments: &Segments, query: &mut Query) -> Result<ConnectionRef, Problem> {
    Ok(ConnectionRef { name: segments.get("name").to_owned(), kind: query.kind()? })
}

fn json_response(status: StatusCode, value: &Value) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, json)], value.to_string()).into_response()
}

fn ok(value: &Value) -> Response {
    json_response(StatusCode::OK, value)
}

/// `{"data": […], "next_cursor": …}`
fn list_response(data: Vec<Value>, next_cursor: Option<String>) -> Response {
    ok(&json!({"data": data, "next_cursor": next_cursor}))
}
