//! Credentials on the wire: the header of each kind, and tokens against a token server that does what a test says.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postrider_core::NoAnswerKind::{NotAllowed, Unreachable};
use postrider_core::security::SecurityKind;
use postrider_core::settings::security;
use postrider_core::{Reply, Wait};
use postrider_wire::{Credentials, HttpSender, Outgoing, Sender};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::cases::{SHORT, answered, connection, head, outgoing, sender, unanswered};
use crate::raw_peer::{Peer, Seen, Talk};

fn credentials(kind: SecurityKind, keys: Value) -> Option<Arc<Credentials>> {
    let read = security::parse(kind, keys.as_object().unwrap()).unwrap();
    Some(Arc::new(Credentials::new(&read.spec, &read.secret.unwrap()).unwrap()))
}

fn with(peer: &Peer, credentials: &Option<Arc<Credentials>>) -> Outgoing {
    Outgoing { credentials: credentials.clone(), ..outgoing(&connection(&peer.url())) }
}

/// Answers 200 to each request, or 401 to those whose token is in the list, and keeps what it saw.
struct Remote {
    peer: Peer,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Remote {
    async fn refusing(refused: &'static [&'static str]) -> Remote {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let kept = Arc::clone(&seen);
        let peer = Peer::start(move |mut talk: Talk| {
            let kept = Arc::clone(&kept);
            async move {
                while let Some(request) = talk.read_request().await {
                    let bad = refused.iter().any(|token| request.header("authorization") == Some(*token));
                    kept.lock().unwrap().push(request);
                    let line = if bad { "401 Unauthorized" } else { "200 OK" };
                    talk.write(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
                }
            }
        })
        .await;
        Remote { peer, seen }
    }

    async fn new() -> Remote {
        Remote::refusing(&[]).await
    }

    fn authorizations(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|seen| seen.header("authorization").unwrap_or("none").to_owned()).collect()
    }
}

/// Gives `t1`, `t2`, … with this life, each after a permit.
struct TokenServer {
    peer: Peer,
    asked: Arc<AtomicUsize>,
    last: Arc<Mutex<Option<Seen>>>,
    permits: Arc<Semaphore>,
}

impl TokenServer {
    async fn held_back(expires_in: Value) -> TokenServer {
        let (asked, last) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Option<Seen>>>::default());
        let permits = Arc::new(Semaphore::new(0));
        let (counter, keep, gate) = (asked.clone(), last.clone(), permits.clone());
        let peer = Peer::start(move |mut talk: Talk| {
            let (counter, keep, gate, expires_in) = (counter.clone(), keep.clone(), gate.clone(), expires_in.clone());
            async move {
                while let Some(request) = talk.read_request().await {
                    *keep.lock().unwrap() = Some(request);
                    let number = counter.fetch_add(1, SeqCst) + 1;
                    gate.acquire().await.unwrap().forget();
                    let body =
                        json!({"access_token": format!("t{number}"), "token_type": "Bearer", "expires_in": expires_in});
                    let body = body.to_string();
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                    talk.write(format!("{head}{body}").as_bytes()).await;
                }
            }
        })
        .await;
        TokenServer { peer, asked, last, permits }
    }

    async fn new(expires_in: Value) -> TokenServer {
        let server = TokenServer::held_back(expires_in).await;
        server.permits.add_permits(1000);
        server
    }

    fn client(&self) -> Option<Arc<Credentials>> {
        oauth2(&format!("{}/token?tenant=a", self.peer.url()))
    }

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

fn oauth2(token_url: &str) -> Option<Arc<Credentials>> {
    let keys = json!({
        "token_url": token_url, "client_id": "lab", "client_secret": "hunter2", "scopes": "read write",
        "extra_params": {"audience": "claims"},
    });
    credentials(SecurityKind::OAuth2, keys)
}

async fn status(sender: &HttpSender, outgoing: Outgoing) -> u16 {
    answered(sender.send(outgoing).await).status.unwrap()
}

#[tokio::test]
async fn each_kind_of_credentials_is_on_the_wire_and_wins_over_the_callers() {
    let remote = Remote::new().await;
    let basic = credentials(SecurityKind::BasicAuth, json!({"username": "Aladdin", "password": "open sesame"}));
    let bearer = credentials(SecurityKind::Bearer, json!({"token": "tok"}));
    let key = credentials(SecurityKind::ApiKey, json!({"key": "k1", "header": "X-Lab-Key"}));
    let sender = sender();
    let theirs = head(json!({"method": "POST", "headers": [["Authorization", "theirs"], ["x-lab-key", "theirs"]]}));
    for credentials in [&basic, &bearer, &key, &None] {
        let attempt = Outgoing { head: theirs.clone(), ..with(&remote.peer, credentials) };
        assert!(!format!("{attempt:?}").contains("sesame"), "{attempt:?}");
        assert_eq!(status(&sender, attempt).await, 200);
    }
    assert_eq!(remote.authorizations(), ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Bearer tok", "theirs", "theirs"]);
    let seen = remote.seen.lock().unwrap();
    let keys: Vec<_> = seen.iter().map(|seen| (seen.header("x-lab-key"), seen.count("x-lab-key"))).collect();
    assert_eq!(keys, [(Some("theirs"), 1), (Some("theirs"), 1), (Some("k1"), 1), (Some("theirs"), 1)]);
    assert_eq!(seen[0].count("authorization"), 1);
}

#[tokio::test]
async fn a_token_is_fetched_once_and_used_by_all_attempts() {
    let (remote, tokens) = (Remote::new().await, TokenServer::new(json!(3600)).await);
    let (sender, client) = (sender(), tokens.client());
    for _ in 0..3 {
        assert_eq!(status(&sender, with(&remote.peer, &client)).await, 200);
    }
    assert_eq!((remote.authorizations(), tokens.asked()), (vec!["Bearer t1".to_owned(); 3], 1));
    let request = tokens.last.lock().unwrap().take().unwrap();
    assert_eq!(request.line(), "POST /token?tenant=a HTTP/1.1");
    let basic = format!("Basic {}", STANDARD.encode("lab:hunter2"));
    assert_eq!(request.header("authorization"), Some(&*basic));
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(request.body, b"grant_type=client_credentials&scope=read%20write&audience=claims");
}

#[tokio::test]
async fn many_attempts_at_once_wait_for_one_fetch() {
    let (remote, tokens) = (Remote::new().await, TokenServer::held_back(json!(3600)).await);
    let (sender, client) = (Arc::new(sender()), tokens.client());
    let mut attempts = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (sender, attempt) = (sender.clone(), with(&remote.peer, &client));
        attempts.spawn(async move { status(&sender, attempt).await });
    }
    while tokens.asked() == 0 {
        tokio::task::yield_now().await;
    }
    tokens.permits.add_permits(20);
    assert_eq!(attempts.join_all().await, [200; 20]);
    assert_eq!((tokens.asked(), remote.authorizations()), (1, vec!["Bearer t1".to_owned(); 20]));
}

#[tokio::test]
async fn a_token_that_has_ended_is_fetched_anew() {
    let (remote, tokens) = (Remote::new().await, TokenServer::new(json!(0)).await);
    let (sender, client) = (sender(), tokens.client());
    for _ in 0..3 {
        assert_eq!(status(&sender, with(&remote.peer, &client)).await, 200);
    }
    assert_eq!(remote.authorizations(), ["Bearer t1", "Bearer t2", "Bearer t3"]);
}

#[tokio::test]
async fn a_401_drops_the_token_and_the_next_attempt_fetches_anew() {
    let (remote, tokens) = (Remote::refusing(&["Bearer t1"]).await, TokenServer::new(json!(3600)).await);
    let (sender, client) = (sender(), tokens.client());
    assert_eq!(status(&sender, with(&remote.peer, &client)).await, 401);
    assert_eq!(status(&sender, with(&remote.peer, &client)).await, 200);
    assert_eq!(status(&sender, with(&remote.peer, &client)).await, 200);
    assert_eq!(
        (tokens.asked(), remote.authorizations()),
        (2, ["Bearer t1", "Bearer t2", "Bearer t2"].map(str::to_owned).to_vec())
    );
}

async fn without_a_token(answer: &str) -> (String, usize) {
    let remote = Remote::new().await;
    let tokens = Peer::answering(answer).await;
    let client = oauth2(&format!("{}/token", tokens.url()));
    let detail = unanswered(sender().send(with(&remote.peer, &client)).await, Unreachable);
    assert!(!detail.contains("hunter2"), "{detail}");
    (detail, remote.peer.requests())
}

// proves: D32
#[tokio::test]
async fn d32_a_token_that_cannot_be_had_is_unreachable_and_nothing_is_sent() {
    for (answer, told) in [
        ("HTTP/1.1 401 No\r\nContent-Length: 26\r\n\r\n{\"error\":\"invalid_client\"}", "HTTP 401 (invalid_client)"),
        ("HTTP/1.1 500 No\r\nContent-Length: 7\r\n\r\nhunter2", "HTTP 500"),
        ("HTTP/1.1 302 Go\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "HTTP 302"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "access_token"),
        ("hunter2 is not HTTP\r\n\r\n", "no token: "),
    ] {
        let (detail, sent) = without_a_token(answer).await;
        assert!(detail.contains(told), "{detail}");
        assert_eq!(sent, 0, "a request went out without credentials");
    }
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n{}", " ".repeat(70_000));
    assert!(without_a_token(&long).await.0.contains("longer than 64 KiB"));
    let remote = Remote::new().await;
    let gone = { Peer::answering("").await.url() };
    let detail = unanswered(sender().send(with(&remote.peer, &oauth2(&gone))).await, Unreachable);
    assert!(detail.starts_with("no token: cannot connect to"), "{detail}");
}

#[tokio::test]
async fn d32_a_token_server_that_is_silent_costs_the_attempts_own_time_only() {
    let (remote, tokens) = (Remote::new().await, TokenServer::held_back(json!(3600)).await);
    let (sender, client) = (sender(), tokens.client());
    let attempt = Outgoing { timeout: SHORT, ..with(&remote.peer, &client) };
    let detail = unanswered(sender.send(attempt).await, Unreachable);
    assert!(detail.contains("token") && remote.peer.requests() == 0, "{detail}");
    // The fetch went on, and the next attempt finds what it brings.
    tokens.permits.add_permits(1);
    assert_eq!(status(&sender, with(&remote.peer, &client)).await, 200);
    assert_eq!(tokens.asked(), 1);
}

// proves: R14 (the guard stands before the token server too)
#[tokio::test]
async fn r14_a_token_server_at_a_metadata_address_is_not_allowed() {
    let remote = Remote::new().await;
    for url in
        ["http://169.254.169.254/token", "https://[::ffff:a9fe:a9fe]/token", "http://metadata.google.internal/token"]
    {
        let attempt = Outgoing { timeout: Wait::from_secs(5), ..with(&remote.peer, &oauth2(url)) };
        let reply: Reply = sender().send(attempt).await;
        let detail = unanswered(reply, NotAllowed);
        assert!(detail.starts_with("no token: "), "{detail}");
    }
    assert_eq!(remote.peer.requests(), 0);
}
