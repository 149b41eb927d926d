//! A stored request and its connection become the request on the wire.
//!
//! Body bytes go as they are, with their length and never in chunks (oracle 8). It must not know of sockets.

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{Method, Request, Uri};
use http_body_util::Full;
use postrider_core::connection::Target;
use postrider_core::path_template::FillError;

use super::link::OutgoingRequest;
use super::route::Route;
use super::{OUR_USER_AGENT, Outgoing, service, webhook};
use crate::auth::Authorization;

const CID: HeaderName = HeaderName::from_static("x-postrider-cid");
const MSG_ID: HeaderName = HeaderName::from_static("x-postrider-msg-id");
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Why a request cannot be built for its connection; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsendable {
    #[error("{0}")]
    Path(#[from] FillError),
    #[error("the path and query are no valid address: together they may have 65,534 bytes")]
    Address,
    #[error("the method {0} cannot be delivered")]
    Method(String),
    #[error("a connection of this type does not go over HTTP")]
    Kind,
    #[error("nothing says how a request to this endpoint is signed")]
    NotSigned,
    #[error("the header `{0}` cannot be sent")]
    Header(String),
}

/// Builds the same request for the same arguments, so that an attempt whose socket was dead can be built again.
pub(super) fn build(
    route: &Route,
    outgoing: &Outgoing,
    authorization: Option<&Authorization>,
) -> Result<OutgoingRequest, Unsendable> {
    if let Some(run) = &outgoing.service {
        let mut request = service::build(route, run, outgoing)?;
        authorize(&mut request, authorization);
        return Ok(request);
    }
    let head = &outgoing.head;
    let method = method(head.method.as_str())?;
    let (target, headers) = match &route.connection.spec.target {
        Target::Rest(rest) => (rest.url_path.fill(&head.params, &head.path)?, headers(route, outgoing)?),
        Target::Soap(soap) => (soap.http.url_path.fill(&head.params, &head.path)?, headers(route, outgoing)?),
        Target::Fhir(fhir) => (fhir.http.url_path.fill(&head.params, &head.path)?, headers(route, outgoing)?),
        Target::Mllp(_) | Target::Channel(_) | Target::Service(_) => return Err(Unsendable::Kind),
        Target::Webhook(endpoint) => {
            let attempt = outgoing.webhook.as_ref().ok_or(Unsendable::NotSigned)?;
            (endpoint.url.target().to_owned(), webhook::headers(route, endpoint, outgoing, attempt)?)
        }
    };
    let mut request = Request::new(Full::new(outgoing.body.clone()));
    *request.uri_mut() = Uri::try_from(target).map_err(|_| Unsendable::Address)?;
    *request.headers_mut() = headers;
    authorize(&mut request, authorization);
    *request.method_mut() = method;
    Ok(request)
}

fn authorize(request: &mut OutgoingRequest, authorization: Option<&Authorization>) {
    if let Some(Authorization { name, value, .. }) = authorization {
        // What the definition says holds, whatever the caller sent along under that name.
        request.headers_mut().insert(name.clone(), value.clone());
    }
}

/// Whoever takes the request can go on with the trace that it belongs to.
pub(super) fn continue_trace(map: &mut HeaderMap, outgoing: &Outgoing) -> Result<(), Unsendable> {
    if let Some(trace) = &outgoing.trace {
        map.insert(TRACE_PARENT, text_value(trace.parent(), &TRACE_PARENT)?);
        map.remove(TRACE_STATE);
        if let Some(state) = trace.state() {
            map.insert(TRACE_STATE, text_value(state.to_owned(), &TRACE_STATE)?);
        }
    }
    Ok(())
}

pub(super) fn method(text: &str) -> Result<Method, Unsendable> {
    match text {
        // It opens a tunnel and has no body; a proxy that said yes would wait for us.
        "CONNECT" => Err(Unsendable::Method(text.to_owned())),
        _ => Method::from_bytes(text.as_bytes()).map_err(|_| Unsendable::Method(text.to_owned())),
    }
}

fn headers(route: &Route, outgoing: &Outgoing) -> Result<HeaderMap, Unsendable> {
    let given = &outgoing.head.headers;
    let mut map = HeaderMap::with_capacity(given.len() + 8);
    map.insert(HOST, route.origin.host_header.clone());
    let named_as_hop = given.get("connection").map(|_| hop_names(outgoing));
    for (name, value) in given.iter() {
        let unsendable = || Unsendable::Header(name.to_owned());
        let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
        if is_ours(&field) || named_as_hop.as_ref().is_some_and(|hops| hops.contains(&field)) {
            continue;
        }
        map.append(field, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unsendable())?);
    }
    let nothing_to_say = outgoing.body.is_empty() && outgoing.head.method.only_reads();
    if !nothing_to_say {
        map.entry(CONTENT_TYPE).or_insert_with(|| route.content_type.clone());
        map.insert(CONTENT_LENGTH, HeaderValue::from(outgoing.body.len()));
    }
    let id = text_value(outgoing.delivery_id.to_string(), &MSG_ID)?;
    map.entry(IDEMPOTENCY_KEY).or_insert_with(|| id.clone());
    map.insert(MSG_ID, id);
    map.insert(CID, HeaderValue::from_str(outgoing.cid.as_str()).map_err(|_| Unsendable::Header(CID.to_string()))?);
    map.entry(USER_AGENT).or_insert(OUR_USER_AGENT);
    continue_trace(&mut map, outgoing)?;
    Ok(map)
}

pub(super) fn text_value(text: String, name: &HeaderName) -> Result<HeaderValue, Unsendable> {
    HeaderValue::from_maybe_shared(Bytes::from(text)).map_err(|_| Unsendable::Header(name.to_string()))
}

/// What belongs to one hop or is ours to say (RFC 9110, section 7.6.1; D14); a stored request's own is dropped.
fn is_ours(field: &HeaderName) -> bool {
    is_of_one_hop(field) || [CID, MSG_ID].contains(field)
}

/// What frames a request or belongs to one hop.
pub(super) fn is_of_one_hop(field: &HeaderName) -> bool {
    [HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING, TE, TRAILER, UPGRADE, EXPECT].contains(field)
        || [KEEP_ALIVE, PROXY_CONNECTION, http::header::PROXY_AUTHORIZATION].contains(field)
}

/// The fields that the stored request's `Connection` names.
pub(super) fn hop_names(outgoing: &Outgoing) -> Vec<HeaderName> {
    let connection = outgoing.head.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    connection
        .flat_map(|(_, value)| value.split(','))
        .filter_map(|token| HeaderName::from_bytes(token.trim().as_bytes()).ok())
        .collect()
}
