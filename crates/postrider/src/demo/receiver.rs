//! The demo's remote systems: one server on the loopback, each path with its own trouble, and an address where nothing listens.
//!
//! It tells attempts of one request apart by the header that all of them carry.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub const BILLING: &str = "/billing";
pub const FLAKY: &str = "/flaky";
pub const CLAIMS: &str = "/claims";
pub const SLOW: &str = "/slow";
pub const ORDERS: &str = "/orders";
pub const PARTNER: &str = "/partner";
pub const REGISTRY: &str = "/registry";
/// Where the service of the channel is; the channel's own path comes behind it.
pub const INTAKE: &str = "/intake";

/// Longer than any timeout of the demo.
const HANG: Duration = Duration::from_secs(30);
/// Requests that are remembered at most; then all are forgotten, and fail a few times more.
const REMEMBERED_MAX: usize = 10_000;
const BODY_BYTES_MAX: usize = 1 << 20;
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

/// Where the demo's connections lead.
#[derive(Clone, Debug)]
pub struct Places {
    /// `http://127.0.0.1:PORT`, where the paths above are.
    pub receiver: String,
    /// The same, and nothing listens there.
    pub nowhere: String,
    /// The demo's own server, where its channel is.
    pub server: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    Status(u16),
    TooMany { retry_after_s: u32 },
    Hang,
}

/// How often each request has come to each path.
type Memory = Arc<Mutex<HashMap<String, u32>>>;

/// `server`: the address of the demo's own server.
pub async fn start(server: &str) -> std::io::Result<(JoinHandle<()>, Places)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let receiver = format!("http://{}", listener.local_addr()?);
    // A port that was free a moment ago, and is closed again.
    let closed = TcpListener::bind("127.0.0.1:0").await?;
    let nowhere = format!("http://{}", closed.local_addr()?);
    drop(closed);
    let server = server.trim_end_matches('/').to_owned();
    Ok((tokio::spawn(accept(listener)), Places { receiver, nowhere, server }))
}

async fn accept(listener: TcpListener) {
    let memory = Memory::default();
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_BACK_OFF).await;
            continue;
        };
        let memory = Arc::clone(&memory);
        let service = service_fn(move |request| answer(request, Arc::clone(&memory)));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // A caller that goes away in the middle is part of the demo.
        connections.spawn(async move { drop(connection.await) });
    }
}

async fn answer(request: Request<Incoming>, memory: Memory) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let id = request.headers().get("x-postrider-msg-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let time = count(&memory, format!("{path} {id}"));
    // Read to the end, so that the connection can be used again.
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await.map(|body| body.to_bytes());
    if path == REGISTRY {
        return Ok(registry(&body.unwrap_or_default()));
    }
    let (status, retry_after_s) = match reaction(&path, time) {
        Reaction::Status(status) => (status, None),
        Reaction::TooMany { retry_after_s } => (429, Some(retry_after_s)),
        Reaction::Hang => {
            tokio::time::sleep(HANG).await;
            (200, None)
        }
    };
    let body = format!("{{\"from\": \"the demo's receiver\", \"path\": \"{path}\", \"time\": {time}}}\n");
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after_s {
        headers.insert(http::header::RETRY_AFTER, seconds.into());
    }
    Ok(response)
}

/// Takes patients whose date of birth is written as it wants it, and says what is wrong with the others.
fn registry(body: &[u8]) -> Response<Full<Bytes>> {
    let patient: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let birth_date = patient.get("birthDate").and_then(serde_json::Value::as_str).unwrap_or_default();
    let (status, said) = if is_date(birth_date) {
        (http::StatusCode::CREATED, r#"{"registered": true}"#.to_owned())
    } else {
        let error = serde_json::json!({"error": "birthDate must be YYYY-MM-DD", "birthDate": birth_date});
        (http::StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
    };
    let mut response = Response::new(Full::new(Bytes::from(said)));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

/// The how-manieth time this is, from 1.
fn count(memory: &Memory, key: String) -> u32 {
    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
    if memory.len() >= REMEMBERED_MAX {
        memory.clear();
    }
    let time = memory.entry(key).or_default();
    *time += 1;
    *time
}

/// What a path does when the same request comes for the `time`-th time.
fn reaction(path: &str, time: u32) -> Reaction {
    match path {
        BILLING => Reaction::Status(200),
        FLAKY if time <= 3 => Reaction::Status(503),
        // A whole round fails; the retry from the DLQ gets through.
        ORDERS if time <= 2 => Reaction::Status(503),
        FLAKY | ORDERS => Reaction::Status(200),
        PARTNER if time == 1 => Reaction::TooMany { retry_after_s: 2 },
        PARTNER => Reaction::Status(200),
        // Each run fails once, and then the service takes the order.
        path if path.starts_with(INTAKE) => Reaction::Status(if time == 1 { 503 } else { 200 }),
        CLAIMS => Reaction::Status(500),
        SLOW => Reaction::Hang,
        _ => Reaction::Status(404),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_its_own_trouble() {
        let statuses = |path| (1..=5).map(|time| reaction(path, time)).collect::<Vec<_>>();
        assert!(statuses(BILLING).iter().all(|reaction| *reaction == Reaction::Status(200)));
        assert_eq!(statuses(FLAKY)[2..4], [Reaction::Status(503), Reaction::Status(200)]);
        assert_eq!(statuses(ORDERS)[1..3], [Reaction::Status(503), Reaction::Status(200)]);
        assert_eq!(statuses(PARTNER)[..2], [Reaction::TooMany { retry_after_s: 2 }, Reaction::Status(200)]);
        assert!(statuses(CLAIMS).iter().all(|reaction| *reaction == Reaction::Status(500)));
        assert_eq!(statuses(SLOW)[0], Reaction::Hang);
        assert_eq!(statuses("/intake/demo/orders")[..2], [Reaction::Status(503), Reaction::Status(200)]);
    }

    #[test]
    fn the_registry_says_what_is_wrong_with_a_date() {
        assert_eq!(registry(br#"{"birthDate": "1974-12-25"}"#).status(), 201);
        for body in [&br#"{"birthDate": "25.12.1974"}"#[..], b"{}", b"no json", br#"{"birthDate": "1974-12-2x"}"#] {
            assert_eq!(registry(body).status(), 422);
        }
    }

    #[test]
    fn what_it_remembers_is_bounded() {
        let memory = Memory::default();
        assert_eq!((count(&memory, "a".into()), count(&memory, "a".into())), (1, 2));
        for n in 0..2 * REMEMBERED_MAX {
            count(&memory, n.to_string());
        }
        assert!(memory.lock().unwrap().len() <= REMEMBERED_MAX);
    }
}
