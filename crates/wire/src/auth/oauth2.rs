//! Tokens by client credentials (RFC 6749, section 4.4): one request at a time for each definition, whoever waits for it.
//!
//! The fetch has a time of its own and goes on when those who wait give up. It must not know of connections or deliveries.
#![allow(
    clippy::disallowed_methods,
    reason = "how long a token lives is between us and the token server; no decision about a delivery reads it"
)]

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use postrider_core::log;
use postrider_core::security::{ClientAuth, ClientCredentials};
use postrider_core::{NoAnswer, NoAnswerKind, Reply, Secret};
use tokio::sync::watch;
use tokio::time::Instant;

use super::answer::{self, ANSWER_BYTES_MAX, Granted};
use super::assertion::{self, Signer};
use super::basic;
use super::cache::{Cache, Look, Token};
use crate::egress::Progress;
use crate::send::Stamp;
use crate::send::cause;
use crate::send::connect::Connector;
use crate::send::link::{Broken, OutgoingRequest};
use crate::send::origin::{NotAnOrigin, Origin};

/// From connect to the end of the answer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What stands as itself in a form; a space is `%20`, which every server reads.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*');

type Fetched = Result<Arc<Token>, NoAnswer>;
type Flight = watch::Receiver<Option<Fetched>>;

/// Where one definition's tokens come from, and the one that is held.
pub(super) struct TokenSource {
    origin: Origin,
    target: Uri,
    headers: HeaderMap,
    form: Bytes,
    /// Adds an assertion of its own to each request.
    signer: Option<Signer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cache: Cache,
    /// The request under way.
    flight: Option<Flight>,
}

impl TokenSource {
    pub(super) fn new(
        client: &ClientCredentials,
        secret: &Secret,
        signer: Option<Signer>,
    ) -> Result<TokenSource, NotAnOrigin> {
        let origin = Origin::new(client.token_url.origin(), &client.tls)?;
        let form = form(client, secret);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, origin.host_header.clone());
        headers.insert(CONTENT_TYPE, FORM);
        headers.insert(ACCEPT, JSON);
        headers.insert(USER_AGENT, crate::send::OUR_USER_AGENT);
        if client.client_auth == ClientAuth::Basic {
            // RFC 6749, section 2.3.1: both are form-encoded first, so that a colon in the id cannot end it.
            let (id, secret) = (encoded(&client.client_id), Secret::new(encoded(secret.expose())));
            let mut value = HeaderValue::from_str(&basic(&id, &secret)).map_err(|_| NotAnOrigin)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let target = client.token_url.target().parse().map_err(|_| NotAnOrigin)?;
        Ok(TokenSource { origin, target, headers, form: form.into(), signer, state: Mutex::default() })
    }

    /// The token that is held, or the next one. `Err` is how the attempt that needs it failed (D32).
    pub(super) async fn token(self: &Arc<Self>, connector: &Arc<Connector>, stamp: Option<Stamp>) -> Fetched {
        let mut flight = {
            let mut state = self.lock();
            match state.cache.look(Instant::now()) {
                Look::Fresh(token) => return Ok(token),
                Look::Ageing(token) => {
                    self.join_flight(&mut state, connector, stamp);
                    return Ok(token);
                }
                Look::Nothing => self.join_flight(&mut state, connector, stamp),
            }
        };
        let landed = flight.wait_for(Option::is_some).await;
        let lost = || Err(NoAnswer { kind: NoAnswerKind::Internal, detail: "fetching a token broke down".to_owned() });
        landed.map_or_else(|_| lost(), |fetched| fetched.clone().unwrap_or_else(lost))
    }

    pub(super) fn refused(&self, token: &Arc<Token>) {
        self.lock().cache.drop_token(token);
    }

    /// The request under way, begun if there is none.
    fn join_flight(self: &Arc<Self>, state: &mut State, connector: &Arc<Connector>, stamp: Option<Stamp>) -> Flight {
        // Without its sender a request has broken down and will never land.
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return flight.clone();
        }
        let (land, flight) = watch::channel(None);
        state.flight = Some(flight.clone());
        let (source, connector) = (Arc::clone(self), Arc::clone(connector));
        tokio::spawn(async move {
            let asked_at = Instant::now();
            let fetched = source.fetch(&connector, stamp).await;
            let fetched = source.landed(fetched, asked_at);
            land.send_replace(Some(fetched));
        });
        flight
    }

    fn landed(&self, fetched: Result<Granted, NoAnswer>, asked_at: Instant) -> Fetched {
        let mut state = self.lock();
        state.flight = None;
        match fetched {
            Ok(Granted { header, lives }) => {
                let token = Arc::new(Token { header });
                state.cache.hold(Arc::clone(&token), asked_at, lives);
                Ok(token)
            }
            Err(none) => {
                state.cache.not_refreshed(Instant::now());
                tracing::debug!(event = log::TOKEN_NOT_FETCHED, detail = none.detail, "no token");
                Err(none)
            }
        }
    }

    async fn fetch(&self, connector: &Connector, stamp: Option<Stamp>) -> Result<Granted, NoAnswer> {
        let host = self.origin.host.shown();
        let unreachable =
            |why: &str| NoAnswer { kind: NoAnswerKind::Unreachable, detail: format!("no token from {host}: {why}") };
        let request = self.request(stamp).map_err(|why| unreachable(&why))?;
        let mut deadline = pin!(tokio::time::sleep(FETCH_TIMEOUT));
        let progress = Progress::new();
        let opened = tokio::select! {
            biased;
            opened = connector.open(&self.origin, &progress) => opened,
            () = deadline.as_mut() => return Err(unreachable("no connection within 30 s")),
        };
        let mut link = opened.map_err(|error| of_token(cause::not_connected(&self.origin.host, &error)))?;
        let response = match link.ask(request, false, deadline.as_mut()).await {
            Ok(response) => response,
            Err(Broken::Deadline) => return Err(unreachable("no answer within 30 s")),
            Err(Broken::Failed { error, sent }) => {
                return Err(of_token(cause::broken_off(&self.origin.host, &error, sent)));
            }
        };
        let (head, body) = response.into_parts();
        let body = link.read_body(body, ANSWER_BYTES_MAX, deadline).await;
        if body.incomplete {
            return Err(unreachable("its answer was cut off or longer than 64 KiB"));
        }
        answer::read(head.status.as_u16(), &body.bytes).map_err(|why| unreachable(&why))
    }

    fn request(&self, stamp: Option<Stamp>) -> Result<OutgoingRequest, String> {
        let form = match &self.signer {
            None => self.form.clone(),
            Some(signer) => {
                let stamp = stamp.ok_or("an attempt without a stamp")?;
                let signed = signer.assertion(stamp).map_err(|why| format!("`private_key` {why}"))?;
                let form = String::from_utf8_lossy(&self.form);
                // Letters, digits, `-`, `_` and dots: nothing of an assertion has to be encoded.
                format!("{form}&client_assertion_type={}&client_assertion={signed}", encoded(assertion::TYPE)).into()
            }
        };
        let length = form.len();
        let mut request = Request::new(Full::new(form));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        Ok(request)
    }

    /// Whether a request for a token needs a time and a nonce of its own.
    pub(super) fn is_stamped(&self) -> bool {
        self.signer.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same failure, said of the token.
fn of_token(reply: Reply) -> NoAnswer {
    match reply {
        Reply::Unanswered(none) => NoAnswer { detail: format!("no token: {}", none.detail), ..none },
        Reply::Answered(_) => NoAnswer { kind: NoAnswerKind::Internal, detail: "no token".to_owned() },
    }
}

fn form(client: &ClientCredentials, secret: &Secret) -> String {
    let scope = client.scopes.join(" ");
    let mut pairs = vec![("grant_type", "client_credentials")];
    if !scope.is_empty() {
        pairs.push(("scope", &scope));
    }
    if client.client_auth == ClientAuth::Body {
        pairs.extend([("client_id", client.client_id.as_str()), ("client_secret", secret.expose())]);
    }
    pairs.extend(client.extra_params.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::security::{SecurityKind, SecuritySpec};
    use serde_json::json;

    fn source(keys: serde_json::Value) -> TokenSource {
        let read = postrider_core::settings::security::parse(SecurityKind::OAuth2, keys.as_object().unwrap()).unwrap();
        let SecuritySpec::OAuth2(client) = read.spec else { panic!() };
        TokenSource::new(&client, &read.secret.unwrap(), None).unwrap()
    }

    #[test]
    fn the_client_proves_itself_in_the_header_or_in_the_form() {
        let keys = json!({
            "token_url": "https://a.example/token?x=1", "client_id": "a:b", "client_secret": "p w&", "scopes": "r w",
            "extra_params": {"audience": "https://api?"},
        });
        let basic = source(keys.clone());
        // `a%3Ab:p%20w%26`
        assert_eq!(basic.headers[AUTHORIZATION], "Basic YSUzQWI6cCUyMHclMjY=");
        assert_eq!(basic.form, "grant_type=client_credentials&scope=r%20w&audience=https%3A%2F%2Fapi%3F");
        assert_eq!(basic.request(None).unwrap().uri(), "/token?x=1");
        let mut keys = keys;
        keys["client_auth"] = json!("body");
        let body = source(keys);
        assert!(!body.headers.contains_key(AUTHORIZATION));
        assert!(std::str::from_utf8(&body.form).unwrap().contains("&client_id=a%3Ab&client_secret=p%20w%26&"));
        assert!(!format!("{:?}", basic.request(None).unwrap().headers()).contains("YSUz"));
    }
}
