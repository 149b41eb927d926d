//! The routes of `/api/v1` and `/health`, one file per resource.
//!
//! Handlers read a request, ask the engine, and write the answer. They must not know of policies: the engine refuses what may not be.

mod alerts;
mod audit;
mod camel;
mod channels;
mod configuration;
mod connections;
mod deliveries;
mod delivery_acts;
mod destinations;
mod dlq;
mod docs;
mod documentation;
mod endpoint_acts;
mod endpoints;
mod events;
mod fhir_call;
mod filter;
mod flow;
mod forwards;
mod health;
mod held;
pub(crate) mod idempotency;
mod ingress;
mod jobs;
mod keys;
mod merge;
mod metrics;
mod ping;
mod projects;
mod publish_batch;
mod queues;
mod raw;
mod raw_answer;
mod reception;
mod schedule;
mod security;
mod send;
mod services;
mod shapes;
mod soap_call;
mod sorting;
mod sources;
mod subscriptions;
mod table;
mod topic_messages;
mod topics;
mod transformations;
mod users;
mod wsdl;

pub(crate) use camel::shown as camel_name;
pub use documentation::openapi_document;
pub use health::while_starting;
pub use raw::RemoteAnswer;
pub(crate) use send::caller_cid;
pub use send::read_message;
pub(crate) use sorting::WORDS as SORT_WORDS;
pub use table::routes;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;
use postrider_core::id::ProjectId;
use postrider_core::masking::MaskedHeaders;
use postrider_core::message::HeaderList;
use postrider_engine::{Clock, ConnectionRef, Engine};
use postrider_store::{Jobs, StoreRead};
use serde_json::{Value, json};

use self::reception::{Reception, receive};
use crate::auth::AdminKey;
use crate::gate::{Caller, Gate, admit};
use crate::keyed::Keyed;
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
    options: Arc<ApiOptions>,
    started_at: Timestamp,
    admin: Option<AdminKey>,
    /// The only project that the caller may see, if there is one.
    only_project: Option<ProjectId>,
    sees_bodies: bool,
}

impl AppState {
    pub fn new(engine: Engine, clock: Arc<dyn Clock>, options: ApiOptions) -> Self {
        let started_at = clock.now();
        AppState {
            engine,
            clock,
            options: Arc::new(options),
            started_at,
            admin: None,
            only_project: None,
            sees_bodies: true,
        }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn only_project(&self) -> Option<ProjectId> {
        self.only_project
    }

    fn masked(&self) -> &MaskedHeaders {
        &self.options.masked_headers
    }

    fn seen(&self) -> shapes::Seen<'_> {
        shapes::Seen { masked: self.masked(), bodies: self.sees_bodies }
    }

    /// D14: a credential of ours must not be stored with a request nor sent to anybody.
    fn refuse_our_keys(&self, headers: &HeaderList) -> Result<(), Problem> {
        let is_ours = |key: &[u8]| {
            self.engine.key_holder(key).is_some() || self.admin.as_ref().is_some_and(|admin| admin.opens(key))
        };
        for (name, value) in headers.iter() {
            let is_candidate = name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("x-api-key");
            if is_candidate && presented(value).iter().any(|key| is_ours(key)) {
                let message = format!("the header `{name}` carries a key of this server");
                return Err(Problem::field("headers", message, "the remote system's own credential"));
            }
        }
        Ok(())
    }

    /// Bodies are health data: a viewer sees none unless that is allowed by name.
    fn check_sees_bodies(&self) -> Result<(), Problem> {
        if self.sees_bodies {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "a viewer sees no bodies unless an owner allows it (`seesBodies`)")
            .with_member("code", "bodies_hidden".into()))
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
pub struct Site(Arc<AppState>);

/// The state with an engine that acts for whoever the gate let in; what they do stands in the audit log under their name.
struct Acting(AppState);

impl FromRequestParts<Site> for Acting {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Problem> {
        // Only a route that needs nobody comes without a caller, and those have nothing to act on.
        let caller = parts.extensions.get::<Caller>().ok_or_else(|| Problem::unauthorized(false))?;
        let state = AppState::clone(&site.0);
        let engine = state.engine.acting_as(Arc::clone(&caller.actor));
        let (only_project, sees_bodies) = (caller.only_project(), caller.sees_bodies());
        Ok(Acting(AppState { engine, only_project, sees_bodies, ..state }))
    }
}

/// All routes, behind the gate and with a problem for everything that goes wrong; the channels' addresses in front of them.
pub fn router(state: AppState, admin: AdminKey) -> Router {
    let api = api(state.clone(), admin.clone());
    with_channels(api, state, admin)
}

/// Puts the channels' addresses in front of whatever else there is (D16).
pub(crate) fn with_channels(others: Router, state: AppState, admin: AdminKey) -> Router {
    let reception = Arc::new(Reception(AppState { admin: Some(admin), ..state }));
    others.layer(from_fn_with_state(reception, receive))
}

/// The same without channels.
pub(crate) fn api(state: AppState, admin: AdminKey) -> Router {
    let (router, rules) = table::routes().finish();
    let keyed = Keyed::new(state.engine.clone(), Arc::clone(&state.clock), state.options.body.clone());
    let gate = Arc::new(Gate { engine: state.engine.clone(), admin: admin.clone(), rules, keyed: Arc::new(keyed) });
    router
        .fallback(async || nothing_here())
        .layer(from_fn_with_state(gate, admit))
        .with_state(Site(Arc::new(AppState { admin: Some(admin), ..state })))
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
        // Nothing at all is no change that anybody could mean.
        if bytes.is_empty() && matches!(parts.method, Method::PUT | Method::PATCH) {
            return Err(Problem::field("body", "the body is missing", "a JSON object"));
        }
        let fields = Fields::read(&parts.headers, &bytes)?;
        Ok(Input { headers: parts.headers, bytes, fields })
    }
}

/// What a credential header may have a key in: its last word, and both parts of what `Basic` encodes (RFC 7617).
fn presented(value: &str) -> Vec<Vec<u8>> {
    let last = value.trim().rsplit(' ').next().unwrap_or_default();
    let mut keys = vec![last.as_bytes().to_vec()];
    let word = last.trim_end_matches('=');
    let decoded = STANDARD_NO_PAD.decode(word).or_else(|_| URL_SAFE_NO_PAD.decode(word));
    if let Ok(decoded) = decoded {
        let colon = decoded.iter().position(|byte| *byte == b':');
        let (user, password) = colon.map_or((&decoded[..], &[][..]), |at| (&decoded[..at], &decoded[at + 1..]));
        keys.extend([user.to_vec(), password.to_vec()]);
    }
    keys
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
