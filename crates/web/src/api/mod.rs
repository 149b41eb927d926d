//! The routes of `/api/v1` and `/health`, one file per resource.
//!
//! Handlers read a request, ask the engine, and write the answer. They must not know of policies: the engine refuses what may not be.

mod audit;
mod configuration;
mod connections;
mod deliveries;
mod delivery_acts;
mod dlq;
mod docs;
mod documentation;
mod filter;
mod health;
mod idempotency;
mod jobs;
mod keys;
mod merge;
mod metrics;
mod projects;
mod publish_batch;
mod queues;
mod raw;
mod raw_answer;
mod schedule;
mod security;
mod send;
mod shapes;
mod table;
mod topic_messages;
mod topics;

pub use documentation::openapi_document;
pub use health::while_starting;
pub use send::read_message;
pub use table::routes;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;
use postrider_core::id::ProjectId;
use postrider_core::masking::MaskedHeaders;
use postrider_core::message::HeaderList;
use postrider_engine::{Clock, ConnectionRef, Engine};
use postrider_store::{Jobs, StoreRead};
use serde_json::{Value, json};

use crate::auth::AdminKey;
use crate::gate::{Caller, Gate, admit};
use crate::problem::{Problem, nothing_here};
use crate::read::{BodyBounds, Fields, Query, Segments, collect, delivery_id};

/// The API's own limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiOptions {
    pub body: BodyBounds,
    /// Whose values nobody is shown (D14).
    pub masked_headers: MaskedHeaders,
}

/// What every handler works with.
#[derive(Clone)]
pub struct AppState {
    engine: Engine,
    clock: Arc<dyn Clock>,
    options: ApiOptions,
    started_at: Timestamp,
    admin: Option<AdminKey>,
    /// The only project that the caller may see, if there is one.
    only_project: Option<ProjectId>,
}

impl AppState {
    pub fn new(engine: Engine, clock: Arc<dyn Clock>, options: ApiOptions) -> Self {
        let started_at = clock.now();
        AppState { engine, clock, options, started_at, admin: None, only_project: None }
    }

    fn only_project(&self) -> Option<ProjectId> {
        self.only_project
    }

    fn masked(&self) -> &MaskedHeaders {
        &self.options.masked_headers
    }

    /// D14: a credential of ours must not be stored with a request nor sent to anybody.
    fn refuse_our_keys(&self, headers: &HeaderList) -> Result<(), Problem> {
        for (name, value) in headers.iter() {
            let is_candidate = name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("x-api-key");
            let key = value.rsplit(' ').next().unwrap_or_default().as_bytes();
            let is_ours =
                || self.engine.key_holder(key).is_some() || self.admin.as_ref().is_some_and(|admin| admin.opens(key));
            if is_candidate && is_ours() {
                let message = format!("the header `{name}` carries a key of this server");
                return Err(Problem::field("headers", message, "the remote system's own credential"));
            }
        }
        Ok(())
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

/// What the router holds. No handler can take the engine from it without saying on whose behalf: `Acting` is the way.
#[derive(Clone)]
pub struct Site(AppState);

/// The state with an engine that acts for whoever the gate let in; what they do stands in the audit log under their name.
struct Acting(AppState);

impl FromRequestParts<Site> for Acting {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Problem> {
        // Only a route that needs nobody comes without a caller, and those have nothing to act on.
        let caller = parts.extensions.get::<Caller>().ok_or_else(|| Problem::unauthorized(false))?;
        let mut state = site.0.clone();
        state.engine = state.engine.acting_as(Arc::clone(&caller.actor));
        state.only_project = caller.only_project();
        Ok(Acting(state))
    }
}

/// All routes, behind the gate and with a problem for everything that goes wrong.
pub fn router(state: AppState, admin: AdminKey) -> Router {
    let (router, rules) = table::routes().finish();
    let gate = Gate { engine: state.engine.clone(), admin: admin.clone(), rules: Arc::new(rules) };
    router
        .fallback(async || nothing_here())
        .layer(from_fn_with_state(gate, admit))
        .layer(map_response(with_safe_headers))
        .with_state(Site(AppState { admin: Some(admin), ..state }))
}

/// No answer of the API is to be kept by a cache or guessed at by a browser.
async fn with_safe_headers(mut response: Response) -> Response {
    if response.extensions().get::<raw::RemoteAnswer>().is_some() {
        return response;
    }
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

impl FromRequest<Site> for Input {
    type Rejection = Problem;

    async fn from_request(request: Request, site: &Site) -> Result<Self, Problem> {
        let (parts, body): (_, Body) = request.into_parts();
        let bytes = collect(&parts.headers, body, &site.0.options.body).await?;
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
