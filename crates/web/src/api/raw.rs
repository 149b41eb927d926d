//! `/connections/{name}/raw[/path]`: a drop-in proxy (D13, D14). What a client would send to the remote system it sends here, and it gets
//! the remote system's own answer, or word that the request is safely in the queue.
//!
//! It must not know how anything is delivered.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use postrider_core::message::{HeaderList, Message, RequestHead};
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_core::{Answer, Failure};
use postrider_engine::{ConnectionRef, SendOptions};

use super::Acting;
use super::idempotency::{self, RAW_HEADER};
use super::raw_answer::{CutShort, Unmeasured};
use super::send::{caller_cid, caller_trace, not_taken, result_response};
use crate::auth::API_KEY_HEADER;
use crate::problem::{Problem, clipped};
use crate::read::{collect_content, decoded};

/// What belongs to one hop (RFC 9110, section 7.6.1), beside the fields that `Connection` names.
pub(super) const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// What the caller says to us and not to the remote system; framing is written anew by the sender.
const FOR_US: [&str; 7] =
    [API_KEY_HEADER, RAW_HEADER, "x-postrider-cid", "x-postrider-msg-id", "host", "content-length", "expect"];
const CID: HeaderName = HeaderName::from_static("x-postrider-cid");
const MSG_ID: HeaderName = HeaderName::from_static("x-postrider-msg-id");

/// An answer that is the remote system's own: nothing of ours is put on it.
#[derive(Clone, Copy, Debug)]
pub struct RemoteAnswer;

pub async fn raw(Acting(state): Acting, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let target = Target::of(parts.uri.path(), parts.uri.query())?;
    let project = state.engine.project(&target.project).await?;
    let named = ConnectionRef { name: target.connection, kind: None };
    let connection = state.engine.connection(project, &named).await?;
    if connection.spec.target.mllp().is_some() {
        let allowed = "a connection over HTTP; messages of HL7 go to /send and /publish";
        return Err(Problem::field(
            "type",
            "`raw` is for requests over HTTP, and this connection is of type `mllp`",
            allowed,
        ));
    }
    let method = parts.method.as_str().parse().map_err(|error: postrider_core::message::MessageError| {
        Problem::bad_request("method", error.to_string(), "an HTTP method such as POST")
    })?;
    let cid = caller_cid(&parts.headers)?;
    let headers = passed_on(&parts.headers)?;
    state.refuse_our_keys(&headers)?;
    let body = collect_content(&parts.headers, body, &state.options.body).await?;
    let head = RequestHead { method, path: target.rest, params: Vec::new(), headers, trace: None, soap: None };
    let mut idempotency = None;
    // Z12: a request that only reads is made anew each time.
    if !connection.spec.target.only_reads(&head) {
        let scope = format!("/connections/{}/raw{}", connection.id, head.path);
        let place = (head.method.as_str(), project, scope.as_str());
        idempotency = idempotency::read_named(RAW_HEADER, &parts.headers, place, &body, state.clock.now())?;
    }
    let only_head = head.method.as_str() == "HEAD";
    let options = SendOptions { cid, idempotency, trace: caller_trace(&parts.headers) };
    let outcome = state.engine.send(project, &named, Message { head, body }, options).await.map_err(not_taken)?;
    Ok(answer(&outcome, only_head))
}

/// What the address says, taken from it as it was sent: decoding and encoding again could make another address of it.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    project: String,
    connection: String,
    /// Behind `/raw`, with the query.
    rest: String,
}

impl Target {
    /// `/api/v1/projects/{project}/connections/{name}/raw[/path]`, which the router has matched.
    fn of(path: &str, query: Option<&str>) -> Result<Target, Problem> {
        let mut segments = path.splitn(9, '/').skip(4);
        let project = segments.next().unwrap_or_default();
        let connection = segments.nth(1).unwrap_or_default();
        let rest = segments.nth(1).map(|rest| format!("/{rest}")).unwrap_or_default();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Ok(Target {
            project: decoded("project", project)?,
            connection: decoded("name", connection)?,
            rest: format!("{rest}{query}"),
        })
    }
}

/// The caller's headers without what is for this hop or for us (D14).
fn passed_on(headers: &HeaderMap) -> Result<HeaderList, Problem> {
    let named = named_by_connection(headers.get_all("connection").iter().map(HeaderValue::as_bytes));
    let mut list = HeaderList::default();
    for (name, value) in headers {
        let name = name.as_str();
        if HOP_BY_HOP.contains(&name) || FOR_US.contains(&name) || named.iter().any(|hop| hop == name) {
            continue;
        }
        let text = std::str::from_utf8(value.as_bytes()).ok();
        let pushed = text.map(|text| list.push(name.to_owned(), text.to_owned()));
        if !matches!(pushed, Some(Ok(()))) {
            let message = format!("the header `{}` cannot be passed on", clipped(name));
            let allowed = "a name of at most 256 characters, and a value in UTF-8 without control characters";
            return Err(Problem::bad_request(clipped(name), message, allowed));
        }
    }
    Ok(list)
}

pub(super) fn named_by_connection<'a>(values: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let text = values.map(|value| String::from_utf8_lossy(value).to_ascii_lowercase()).collect::<Vec<_>>().join(",");
    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// D13: the remote system's answer; 202 with the result when it is queued; 502 or 504 with the result when there is no answer or the
/// request is in the DLQ.
fn answer(outcome: &Outcome, only_head: bool) -> Response {
    let mut response = match (outcome.state, &outcome.response) {
        (OutcomeState::NotDelivered, None) if outcome.msg_id.is_none() => {
            result_response(StatusCode::SERVICE_UNAVAILABLE, outcome)
        }
        (OutcomeState::IsInQueue, _) => result_response(StatusCode::ACCEPTED, outcome),
        (OutcomeState::IsOk | OutcomeState::NotDelivered, Some(answer)) => remote_answer(answer, only_head),
        (OutcomeState::IsInDlq, _) | (OutcomeState::IsOk | OutcomeState::NotDelivered, None) => {
            let timed_out = outcome.failure == Some(Failure::Timeout);
            result_response(if timed_out { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY }, outcome)
        }
    };
    let headers = response.headers_mut();
    let id = outcome.msg_id.map(|id| id.to_string());
    for (name, text) in [(CID, Some(outcome.cid.to_string())), (MSG_ID, id)] {
        if let Some(Ok(value)) = text.map(|text| HeaderValue::from_str(&text)) {
            headers.insert(name, value);
        }
    }
    response
}

pub(super) fn remote_answer(answer: &Answer, only_head: bool) -> Response {
    let status = answer.status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_GATEWAY);
    let named = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let named = named_by_connection(named.map(|(_, value)| value.as_bytes()));
    let mut headers = HeaderMap::new();
    for (name, value) in answer.headers.iter() {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        else {
            continue;
        };
        // The length is that of what is sent from here, unless it speaks of a body that never comes (RFC 9110, section 8.6).
        let of_ours = name == CONTENT_LENGTH && !(only_head || status == StatusCode::NOT_MODIFIED);
        let hop = HOP_BY_HOP.contains(&name.as_str()) || named.iter().any(|hop| hop == name.as_str());
        if !hop && !of_ours {
            headers.append(name, value);
        }
    }
    let body = if only_head || status == StatusCode::NOT_MODIFIED {
        Body::new(Unmeasured)
    } else if answer.incomplete {
        Body::new(CutShort::after(answer.body.clone()))
    } else {
        Body::from(answer.body.clone())
    };
    let mut response = (status, headers, body).into_response();
    response.extensions_mut().insert(RemoteAnswer);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use postrider_core::id::{Cid, DeliveryId};

    #[test]
    fn d13_the_address_is_taken_as_it_was_sent() {
        let of = |path: &str, query| Target::of(path, query).unwrap();
        let base = "/api/v1/projects/de%66ault/connections/Billing%20API/raw";
        let target = of(base, None);
        assert_eq!((target.project.as_str(), target.connection.as_str()), ("default", "Billing API"));
        assert_eq!(target.rest, "");
        for (rest, query, wanted) in [
            ("/", None, "/"),
            ("/a%2Fb/c%20d", Some("x=%20&y=+&z"), "/a%2Fb/c%20d?x=%20&y=+&z"),
            ("/raw/raw", None, "/raw/raw"),
            ("//x", Some(""), "//x?"),
            ("/connections/x/raw", None, "/connections/x/raw"),
        ] {
            assert_eq!(of(&format!("{base}{rest}"), query).rest, wanted);
        }
        assert!(Target::of("/api/v1/projects/p/connections/a%2Fb/raw", None).is_err());
        assert!(Target::of("/api/v1/projects/p/connections/%ff/raw", None).is_err());
    }

    #[test]
    fn d14_the_callers_own_credentials_go_on_and_ours_do_not() {
        let given = [
            ("authorization", "Basic x"),
            ("x-api-key", "prk_secret"),
            ("idempotency-key", "theirs"),
            ("x-postrider-idempotency-key", "ours"),
            ("connection", "X-Hop, Close"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "x"),
            ("te", "trailers"),
            ("cookie", "a=b"),
            ("host", "postrider"),
            ("content-length", "5"),
            ("expect", "100-continue"),
            ("x-kept", "zwei ä"),
        ];
        let headers = given
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap()));
        let list = passed_on(&HeaderMap::from_iter(headers)).unwrap();
        let kept: Vec<&str> = list.iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["authorization", "idempotency-key", "cookie", "x-kept"]);
        let latin = HeaderMap::from_iter([(HeaderName::from_static("x-a"), HeaderValue::from_bytes(b"\xe4").unwrap())]);
        assert_eq!(passed_on(&latin).unwrap_err().status(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn d13_the_status_is_the_remotes_or_says_where_the_request_is() {
        let outcome = |state, status: Option<u16>, failure| Outcome {
            state,
            msg_id: Some(DeliveryId::from_u128(1)),
            cid: Cid::from_stored("c"),
            error: None,
            failure,
            response: status.map(|status| Answer {
                status: Some(status),
                body: Bytes::from_static(b"x"),
                ..Answer::default()
            }),
        };
        for (state, status, failure, wanted) in [
            (OutcomeState::IsOk, Some(201), None, 201),
            (OutcomeState::NotDelivered, Some(404), Some(Failure::Status), 404),
            (OutcomeState::NotDelivered, Some(503), Some(Failure::Status), 503),
            (OutcomeState::NotDelivered, None, Some(Failure::Timeout), 504),
            (OutcomeState::NotDelivered, None, Some(Failure::Unreachable), 502),
            (OutcomeState::NotDelivered, None, Some(Failure::SecretUnreadable), 502),
            (OutcomeState::IsInQueue, Some(500), Some(Failure::Status), 202),
            (OutcomeState::IsInQueue, None, None, 202),
            (OutcomeState::IsInDlq, Some(500), Some(Failure::Status), 502),
            (OutcomeState::IsInDlq, None, Some(Failure::Timeout), 504),
        ] {
            let response = answer(&outcome(state, status, failure), false);
            assert_eq!(response.status(), wanted, "{state:?} {status:?}");
            let remotes = response.extensions().get::<RemoteAnswer>().is_some();
            assert_eq!(remotes, status == Some(wanted), "{state:?} {status:?}");
            assert_eq!(response.headers()["x-postrider-msg-id"], DeliveryId::from_u128(1).to_string());
        }
    }
}
