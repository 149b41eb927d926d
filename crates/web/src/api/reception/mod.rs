//! Requests at the addresses of channels: who may, how much, stored or run, acknowledged (Z40-Z46). In front of the API's own routes and of its gate.
//!
//! Nothing here waits for anything but the caller's own bytes and the engine. It must not know how a request is stored or run.

mod acknowledgment;
mod envelope;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use postrider_core::channel_path::is_reserved;
use postrider_core::connection::{Connection, SoapDoor};
use postrider_core::message::{HeaderList, Message, MessageError, RequestHead, is_ours};
use postrider_engine::{AUTHENTICATED_HEADER, Accepted, Admission, At, Doorkeeper, Refusal, SendOptions};

use super::raw::{HOP_BY_HOP, named_by_connection};
use super::send::caller_trace;
use super::{AppState, idempotency};
use crate::problem::{Problem, clipped, method_not_allowed, nothing_here};
use crate::read::collect_content;
use crate::server::Answering;
use acknowledgment::Told;
use envelope::Asked;

/// What frames a request, and is written anew.
const FRAMING: [&str; 3] = ["host", "content-length", "expect"];
/// How long a caller is asked to wait when nothing can be taken.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Who looks after the channels' addresses.
pub struct Reception(pub AppState);

/// The dashboard is at this very address too: whatever a service sends, a browser runs nothing of it with the rights of who is logged in there.
fn kept_apart(mut response: Response) -> Response {
    response.headers_mut().append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    response
}

/// What a request came to before it was taken.
struct Arrival {
    message: Message,
    options: SendOptions,
    /// What its envelope asks for, on a SOAP channel.
    asked: Option<Asked>,
}

impl Reception {
    /// What there is for this request at the channels' addresses.
    pub fn find(&self, request: &Request) -> At {
        let (engine, path) = (&self.0.engine, request.uri().path());
        if !engine.has_channels() || is_reserved(path) {
            return At::Nothing;
        }
        engine.channel_at(request.method().as_str(), path, |_| envelope::action_of(request.headers()))
    }

    /// The answer to what was found for it.
    pub fn answer(self: &Arc<Self>, found: At, request: Request) -> Answering {
        let refused = match found {
            At::Channel { channel, params } => {
                let reception = Arc::clone(self);
                return Box::pin(async move { kept_apart(reception.take(channel, params, request).await) });
            }
            At::OtherAction => {
                let action = envelope::action_of(request.headers());
                envelope::refused_action(request.headers(), &action)
            }
            At::OtherMethods(allowed) => match self.described(&request) {
                Some(wsdl) => wsdl,
                None => method_not_allowed(&allowed).into_response(),
            },
            At::Nothing => nothing_here().into_response(),
        };
        Box::pin(std::future::ready(refused))
    }

    async fn take(&self, channel: Arc<Connection>, params: Vec<(String, String)>, request: Request) -> Response {
        let soap = soap_of(&channel).cloned();
        let arrived = match self.arrival(&channel, params, request).await {
            Ok(arrived) => arrived,
            Err(problem) => return refused(problem, soap.as_ref()),
        };
        let Arrival { message, options, asked } = arrived;
        let only_head = message.head.method.as_str() == "HEAD";
        // Most services write no acknowledgments, and then nobody needs the message again.
        let kept = self.0.engine.may_have_queue_response(&channel).then(|| message.clone());
        match self.0.engine.accept(&channel, message, options).await {
            Ok(Accepted::Stored(receipt)) => {
                let by_service = match &kept {
                    Some(message) => self.0.engine.queue_response(&channel, message, &receipt).await,
                    None => None,
                };
                acknowledgment::of(&Told { channel: &channel, asked: asked.as_ref(), receipt: &receipt }, by_service)
            }
            Ok(Accepted::Ran(outcome)) => acknowledgment::of_run(&outcome, soap.as_ref(), only_head),
            Err(refusal) => refused(not_taken(refusal), soap.as_ref()),
        }
    }

    /// # Errors
    /// Our own refusals; nothing is stored.
    async fn arrival(
        &self,
        channel: &Connection,
        params: Vec<(String, String)>,
        request: Request,
    ) -> Result<Arrival, Problem> {
        let state = &self.0;
        let (parts, body): (Parts, Body) = request.into_parts();
        let doorkeeper = state.engine.doorkeeper(channel);
        let now = state.clock.now();
        // Strangers are sent away before their bodies are read, unless the body is what they are known by.
        if !doorkeeper.needs_the_body() {
            let_in(doorkeeper.admits(&parts.headers, b"", now))?;
        }
        if !channel.spec.is_active {
            return Err(not_taken(Refusal::Inactive(channel.name.clone())));
        }
        let body = collect_content(&parts.headers, body, &state.options.body).await?;
        if doorkeeper.needs_the_body() {
            let_in(doorkeeper.admits(&parts.headers, &body, now))?;
        }
        let asked = soap_of(channel).map(|soap| envelope::read(soap, &parts.headers, &body)).transpose()?;
        let headers = kept(&parts.headers, &doorkeeper, channel.spec.security.as_deref())?;
        state.refuse_our_keys(&headers)?;
        let method = parts.method.as_str().parse().map_err(|error: MessageError| {
            Problem::bad_request("method", error.to_string(), "an HTTP method such as POST")
        })?;
        let head = RequestHead { method, path: target(&parts), params, headers, trace: None, soap: None };
        let signed = doorkeeper.signed_id(&parts.headers).map(|id| {
            let target = format!("{} {}", parts.method, parts.uri.path());
            let request = [target.as_bytes(), b"\n", &of_one_request(&parts, &body)].concat();
            idempotency::of_signed(channel.id, id, &request, now)
        });
        let idempotency = match parts.headers.contains_key(idempotency::HEADER) && signed.is_none() {
            false => signed,
            true => {
                let scope = format!("/channels/{}{}", channel.id, parts.uri.path());
                let place = (parts.method.as_str(), channel.project_id, scope.as_str());
                let asked_for = of_one_request(&parts, &body);
                idempotency::read_named(idempotency::HEADER, &parts.headers, place, &asked_for, now)?
            }
        };
        let options = SendOptions { cid: None, idempotency, trace: caller_trace(&parts.headers) };
        Ok(Arrival { message: Message { head, body }, options, asked })
    }

    /// The WSDL of a SOAP channel, at `?wsdl`. Shown to whom the channel would take a request from.
    fn described(&self, request: &Request) -> Option<Response> {
        let query = request.uri().query()?;
        if request.method() != http::Method::GET || !query.eq_ignore_ascii_case("wsdl") {
            return None;
        }
        let any = |channel: &Connection| soap_of(channel).map(|soap| soap.action.clone()).unwrap_or_default();
        let At::Channel { channel, .. } = self.0.engine.channel_at("POST", request.uri().path(), any) else {
            return None;
        };
        let soap = soap_of(&channel)?;
        let admission = self.0.engine.doorkeeper(&channel).admits(request.headers(), b"", self.0.clock.now());
        Some(match let_in(admission) {
            Ok(()) => envelope::described(&channel, soap, request),
            Err(problem) => problem.into_response(),
        })
    }
}

fn soap_of(channel: &Connection) -> Option<&SoapDoor> {
    channel.spec.target.channel()?.door.soap()
}

/// A refusal in the words of the protocol.
fn refused(problem: Problem, soap: Option<&SoapDoor>) -> Response {
    match soap {
        None => problem.into_response(),
        Some(soap) => envelope::fault_of(soap.version, &problem),
    }
}

fn let_in(admission: Admission) -> Result<(), Problem> {
    match admission {
        Admission::Granted => Ok(()),
        Admission::Refused(challenge) => {
            let problem =
                Problem::new(StatusCode::UNAUTHORIZED, "what this channel asks of its callers is missing or wrong");
            Err(match challenge {
                Some(challenge) => problem.with_header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge)),
                None => problem,
            })
        }
        Admission::Unreadable => Err(unavailable("this channel cannot tell who may call it now")),
    }
}

/// 503: the caller is asked to come again, and nothing was stored (D07).
fn unavailable(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_header(RETRY_AFTER, RETRY_AFTER_SECONDS)
}

/// Callers of a channel are others than those of the API: what they can do about it is to come again.
fn not_taken(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Full { limit } => unavailable(format!("nothing can be taken now: the limit `{limit}` is reached")),
        Refusal::Inactive(_) | Refusal::NotFound { .. } => unavailable("this channel takes nothing now"),
        other => Problem::from(other),
    }
}

/// As it arrived.
fn target(parts: &Parts) -> String {
    parts.uri.path_and_query().map(|target| target.as_str().to_owned()).unwrap_or_default()
}

/// What makes a repeat the same request: query and body.
fn of_one_request(parts: &Parts, body: &Bytes) -> Bytes {
    match parts.uri.query() {
        None => body.clone(),
        Some(query) => [query.as_bytes(), b"\n", body].concat().into(),
    }
}

/// The headers as they arrived, without what belongs to one hop, what is ours to say, and the credential that opened the door (D14). Who was
/// authenticated is said in a header of ours.
fn kept(headers: &HeaderMap, doorkeeper: &Doorkeeper, security: Option<&str>) -> Result<HeaderList, Problem> {
    let named = named_by_connection(headers.get_all("connection").iter().map(HeaderValue::as_bytes));
    let is_dropped = |name: &HeaderName| {
        let text = name.as_str();
        HOP_BY_HOP.contains(&text)
            || FRAMING.contains(&text)
            || is_ours(text)
            || doorkeeper.proof_in() == Some(name)
            || named.iter().any(|hop| hop == text)
    };
    let mut list = HeaderList::default();
    for (name, value) in headers.iter().filter(|(name, _)| !is_dropped(name)) {
        let text = std::str::from_utf8(value.as_bytes()).ok();
        let pushed = text.map(|text| list.push(name.as_str().to_owned(), text.to_owned()));
        if !matches!(pushed, Some(Ok(()))) {
            let message = format!("the header `{}` cannot be kept", clipped(name.as_str()));
            let allowed = "a name of at most 256 characters, and a value in UTF-8 without control characters";
            return Err(Problem::bad_request(clipped(name.as_str()), message, allowed));
        }
    }
    if let Some(security) = security {
        // A name has no control characters.
        let _ = list.push(AUTHENTICATED_HEADER.to_owned(), security.to_owned());
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z41_headers_are_kept_as_they_came_but_for_one_hop_and_ours() {
        let given = [
            ("content-type", "application/json"),
            ("x-api-key", "theirs"),
            ("authorization", "Basic x"),
            ("cookie", "a=b"),
            ("x-postrider-cid", "forged"),
            ("x-postrider-authenticated", "forged"),
            ("connection", "X-Hop"),
            ("x-hop", "1"),
            ("host", "postrider"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("idempotency-key", "k"),
        ];
        let headers = given.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let headers = HeaderMap::from_iter(headers);
        let names = |list: HeaderList| list.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
        let open = names(kept(&headers, &Doorkeeper::default(), None).unwrap());
        assert_eq!(
            open,
            [
                "content-type: application/json",
                "x-api-key: theirs",
                "authorization: Basic x",
                "cookie: a=b",
                "idempotency-key: k"
            ]
        );
        let guarded = names(kept(&headers, &Doorkeeper::default(), Some("Shop")).unwrap());
        assert_eq!(guarded.last().unwrap(), "x-postrider-authenticated: Shop");
        let latin = HeaderMap::from_iter([(HeaderName::from_static("x-a"), HeaderValue::from_bytes(b"\xe4").unwrap())]);
        assert_eq!(kept(&latin, &Doorkeeper::default(), None).unwrap_err().status(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn d07_what_is_full_asks_to_come_again() {
        let response = not_taken(Refusal::Full { limit: "queue_messages_max" }).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "5");
        assert_eq!(not_taken(Refusal::Conflict("x".to_owned())).status(), StatusCode::CONFLICT);
        let large = not_taken(Refusal::TooLarge { given: 2, allowed: 1 });
        assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
