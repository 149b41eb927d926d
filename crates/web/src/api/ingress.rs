//! `/ingress/{token}`: where webhooks come in. The address is the credential; it is neither logged nor shown, and no key is asked for.
//!
//! Who is refused is told why and leaves a count. It must not know how a webhook proves itself.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use postrider_core::message::HeaderList;
use postrider_core::source::Provider;
use postrider_engine::{Handshake, IncomingWebhook, NotLetIn, Refusal, Welcome};
use serde_json::json;

use super::raw::{HOP_BY_HOP, named_by_connection};
use super::{Site, json_response};
use crate::gate::PeerAddress;
use crate::problem::Problem;
use crate::read::collect_content;

/// What the provider says to us alone; framing is written anew by whoever sends it on, and the answer to a forward is not for the provider to choose.
const FOR_US: [&str; 4] = ["host", "content-length", "expect", "accept-encoding"];
/// Longer tokens are none.
const TOKEN_BYTES_MAX: usize = 128;

pub async fn receive(State(site): State<Site>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let state = &site.0;
    let from = parts.extensions.get::<PeerAddress>().map(|peer| peer.0.ip());
    let token = parts.uri.path().rsplit('/').next().unwrap_or_default();
    if token.len() > TOKEN_BYTES_MAX {
        return Err(not_let_in(NotLetIn::Unknown));
    }
    let source = state.engine.ingress(token, from).map_err(not_let_in)?;
    let id = source.row.source.id;
    let body = collect_content(&parts.headers, body, &state.options.body).await.inspect_err(|problem| {
        let reason = if problem.status() == StatusCode::PAYLOAD_TOO_LARGE { "too_large" } else { "body_unread" };
        state.engine.note_rejected(id, reason, problem.detail(), from);
    })?;
    let carried = carried(&parts.headers);
    state.refuse_our_keys(&carried).inspect_err(|problem| {
        state.engine.note_rejected(id, "our_key", problem.detail(), from);
    })?;
    let webhook = IncomingWebhook {
        method: parts.method.as_str().to_owned(),
        token: token.to_owned(),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers,
        carried,
        body,
        from,
    };
    let welcome = state.engine.receive(&source, webhook).await.map_err(not_let_in)?;
    Ok(answer(welcome, source.row.source.spec.provider))
}

fn answer(welcome: Welcome, provider: Provider) -> Response {
    match welcome {
        Welcome::Handshake(Handshake::Challenge(text)) => {
            ([(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))], Body::from(text)).into_response()
        }
        Welcome::Handshake(Handshake::Ping) => json_response(StatusCode::OK, &json!({"status": "pong"})),
        // It reads what it is answered as instructions, and finds none in nothing.
        _ if provider == Provider::Twilio => StatusCode::NO_CONTENT.into_response(),
        Welcome::Stored { event, cid, .. } => {
            json_response(StatusCode::ACCEPTED, &json!({"status": "accepted", "eventId": event, "cid": cid}))
        }
        Welcome::Duplicate(event) => json_response(StatusCode::OK, &json!({"status": "duplicate", "eventId": event})),
    }
}

/// Providers give up on 410 and come again on 429 and 503.
fn not_let_in(why: NotLetIn) -> Problem {
    let detail = why.to_string();
    match why {
        NotLetIn::Unknown => Problem::new(StatusCode::NOT_FOUND, detail),
        NotLetIn::Disabled => Problem::new(StatusCode::GONE, detail),
        NotLetIn::TooFast => Problem::come_again(StatusCode::TOO_MANY_REQUESTS, detail, HeaderValue::from_static("1")),
        NotLetIn::Rejected(_) | NotLetIn::Replayed => Problem::new(StatusCode::UNAUTHORIZED, detail),
        NotLetIn::Refused(Refusal::Full { .. } | Refusal::Unavailable(_) | Refusal::Stopping) => {
            Problem::unavailable("webhooks cannot be taken in now; send it again")
        }
        NotLetIn::Refused(refusal) => refusal.into(),
    }
}

/// The headers that go on: all but those of this hop, and what cannot be carried as text.
fn carried(headers: &HeaderMap) -> HeaderList {
    let named = named_by_connection(headers.get_all("connection").iter().map(HeaderValue::as_bytes));
    let mut list = HeaderList::default();
    for (name, value) in headers {
        let name = name.as_str();
        let is_of_this_hop =
            HOP_BY_HOP.contains(&name) || FOR_US.contains(&name) || named.iter().any(|hop| hop == name);
        if let (false, Ok(text)) = (is_of_this_hop, std::str::from_utf8(value.as_bytes())) {
            // A value with a control character in it is left out.
            let _ = list.push(name.to_owned(), text.to_owned());
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    #[test]
    fn r12_signatures_go_on_and_what_is_of_this_hop_does_not() {
        let given = [
            ("x-hub-signature-256", "sha256=00"),
            ("content-type", "application/json"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("host", "postrider"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("accept-encoding", "gzip"),
            ("proxy-authorization", "x"),
            ("user-agent", "GitHub-Hookshot/1"),
        ];
        let mut headers = HeaderMap::from_iter(
            given.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))),
        );
        headers.insert("x-latin", HeaderValue::from_bytes(b"\xe4").unwrap());
        let carried = carried(&headers);
        let kept: Vec<&str> = carried.iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["x-hub-signature-256", "content-type", "user-agent"]);
    }
}
