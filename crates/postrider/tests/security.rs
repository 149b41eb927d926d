//! Security definitions over the real binary: what reaches the remote system, what an operator sees, and what the disk holds.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::path::Path;
use std::sync::Arc;

use cli_parts::{Ran, program};
use harness::{Bench, KEY, Mirror};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SECRET: &str = "hunter2-and-more";

async fn stage() -> (Bench, Mirror) {
    tokio::join!(Bench::start(), Mirror::start())
}

async fn define(bench: &Bench, keys: Value) -> Value {
    let (status, answer) = bench.call("POST", "/security", &keys).await;
    assert_eq!(status, 201, "{answer}");
    assert!(!answer.to_string().contains(SECRET), "{answer}");
    answer
}

async fn sends(bench: &Bench, name: &str) -> Value {
    let (status, result) = bench.send(name, "x").await;
    assert_eq!(status, 200, "{result}");
    result
}

/// Every file below, searched for the secret.
fn holds_secret(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds_secret(&path);
        }
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn d46_credentials_reach_the_remote_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let bench = Bench::at(data.clone(), dir).await;
    let remote = Mirror::start().await;
    define(&bench, json!({"name": "lab.sec", "type": "basic_auth", "username": "lab", "password": SECRET})).await;
    define(&bench, json!({"name": "key", "type": "apikey", "header": "X-Lab", "key": SECRET})).await;
    define(&bench, json!({"name": "token", "type": "bearer", "token": SECRET})).await;
    for (name, queue) in [("lab.sec", false), ("key", false), ("token", true)] {
        bench.connection(name, &remote.address, json!({"security": name, "use_queue": queue})).await;
        assert_eq!(sends(&bench, name).await["is_ok"], true);
    }
    let seen = remote.requests();
    assert_eq!(seen[0].header("authorization"), Some("Basic bGFiOmh1bnRlcjItYW5kLW1vcmU="));
    assert_eq!(seen[1].header("x-lab"), Some(SECRET));
    assert_eq!(seen[2].header("authorization"), Some(&*format!("Bearer {SECRET}")));
    for path in ["/security", "/security/lab.sec", "/connections", "/deliveries"] {
        let (status, answer) = bench.call("GET", path, &Value::Null).await;
        assert_eq!(status, 200);
        assert!(!answer.to_string().contains(SECRET), "{path}: {answer}");
    }
    let (_, shown) = bench.call("GET", "/security/lab.sec", &Value::Null).await;
    assert_eq!((&shown["username"], &shown["state"]["secret"]), (&json!("lab"), &json!("password")));
    assert_eq!((&shown["state"]["is_set"], &shown["state"]["usedBy"]), (&json!(true), &json!(["lab.sec"])));
    assert!(!holds_secret(&data), "a secret is on the disk in the clear");
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_holds_from_the_next_attempt_on_and_what_is_left_out_stays() {
    let (bench, remote) = stage().await;
    define(&bench, json!({"name": "s", "type": "basic_auth", "username": "a", "password": "one"})).await;
    bench.connection("c", &remote.address, json!({"security": "s"})).await;
    sends(&bench, "c").await;
    let basic = |text: &str| {
        use base64::Engine as _;
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
    };
    for (method, change, wanted) in [
        ("PATCH", json!({"password": "two"}), "a:two"),
        ("PATCH", json!({"username": "b"}), "b:two"),
        ("PUT", json!({"username": "c"}), "c:two"),
        ("PUT", json!({"username": "d", "password": ""}), "d:"),
    ] {
        let (status, answer) = bench.call(method, "/security/s", &change).await;
        assert_eq!(status, 200, "{answer}");
        sends(&bench, "c").await;
        assert_eq!(remote.last().header("authorization"), Some(&*basic(wanted)));
    }
    // What an answer says may be written back whole.
    let (_, shown) = bench.call("GET", "/security/s", &Value::Null).await;
    assert_eq!(bench.call("PUT", "/security/s", &shown).await.0, 200);
    let stale = json!({"username": "e", "version": 1});
    assert_eq!(bench.call("PUT", "/security/s", &stale).await.0, 409, "somebody changed it since");
    for (body, field) in [
        (json!({"type": "bearer"}), "username"),
        (json!({"name": "other"}), "name"),
        (json!({"pasword": "x"}), "pasword"),
        (json!({"type": "ntlm"}), "type"),
    ] {
        let (status, problem) = bench.call("PATCH", "/security/s", &body).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{problem}");
    }
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_in_use_stays_and_one_that_is_not_there_cannot_be_named() {
    let (bench, remote) = stage().await;
    define(&bench, json!({"name": "s", "type": "bearer", "token": "t"})).await;
    bench.connection("c", &remote.address, json!({"security": "s"})).await;
    let (status, problem) = bench.call("DELETE", "/security/s", &Value::Null).await;
    assert_eq!((status, problem["detail"].as_str()), (409, Some("`s` is in use by `c`")), "{problem}");
    let (status, problem) = bench.call("PATCH", "/connections/c", &json!({"security": "nobody's"})).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("security")), "{problem}");
    assert!(problem["errors"][0]["allowed"].as_str().unwrap().ends_with(": s"), "{problem}");
    assert_eq!(bench.call("PATCH", "/connections/c", &json!({"security": null})).await.0, 200);
    assert_eq!(bench.call("DELETE", "/security/s", &Value::Null).await.0, 204);
    assert_eq!(bench.call("GET", "/security/s", &Value::Null).await.0, 404);
    sends(&bench, "c").await;
    assert_eq!(remote.last().header("authorization"), None);
    bench.server.stop().await;
}

// proves: V08, D46
#[tokio::test(flavor = "multi_thread")]
async fn v08_without_its_key_a_secret_is_unreadable_and_nothing_goes_out_until_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let bench = Bench::at(data.clone(), dir).await;
    let remote = Mirror::start().await;
    define(&bench, json!({"name": "s", "type": "bearer", "token": SECRET})).await;
    let retried = json!({"security": "s", "use_queue": true, "max_retries": 100, "retry_sleep_time": 0,
        "retry_backoff_multiplier": 0, "retry_backoff_threshold": 3600});
    bench.connection("c", &remote.address, retried).await;
    let key = data.join("secrets.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let bench = bench.stop_and_restart().await;
    let (_, result) = bench.send("c", "x").await;
    assert_eq!(result["is_in_queue"], true, "{result}");
    let id = result["msg_id"].as_str().unwrap();
    let now = bench.delivery(id).await;
    assert_eq!((&now["failure"], &now["status"]), (&json!("secret_unreadable"), &json!("PENDING")), "{now}");
    let (_, shown) = bench.call("GET", "/security/s", &Value::Null).await;
    assert!(shown["state"]["unreadable"].as_str().unwrap().contains("not configured"), "{shown}");
    assert_eq!(remote.count(), 0, "something went out without credentials");
    std::fs::write(&key, kept).unwrap();
    let bench = bench.stop_and_restart().await;
    bench.until_status(id, "SUCCESS").await;
    assert!(remote.requests().iter().all(|seen| seen.header("authorization") == Some(&*format!("Bearer {SECRET}"))));
    // Set anew, it is readable whatever became of the old key.
    std::fs::remove_file(&key).unwrap();
    let bench = bench.stop_and_restart().await;
    assert_eq!(bench.call("PATCH", "/security/s", &json!({"token": "new"})).await.0, 200);
    assert_eq!(sends(&bench, "c").await["is_ok"], true);
    assert_eq!(remote.last().header("authorization"), Some("Bearer new"));
    bench.server.stop().await;
}

// proves: D46, P07
#[tokio::test(flavor = "multi_thread")]
async fn d46_after_a_rotation_of_keys_secrets_are_sealed_anew_once_and_the_audit_log_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let bench = Bench::at(data.clone(), dir).await;
    let remote = Mirror::start().await;
    define(&bench, json!({"name": "s", "type": "bearer", "token": SECRET})).await;
    bench.connection("c", &remote.address, json!({"security": "s"})).await;
    let key = data.join("secrets.key");
    let (new, old) = ("01".repeat(32), std::fs::read_to_string(&key).unwrap());
    std::fs::write(&key, format!("{new}\n{old}")).unwrap();
    let mut bench = bench.stop_and_restart().await;
    for _ in 0..2 {
        let (_, audit) = bench.call("GET", "/audit?action=security.reseal", &Value::Null).await;
        let entries = audit["data"].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{audit}");
        assert_eq!((&entries[0]["actor"]["id"], &entries[0]["objectName"]), (&json!("system"), &json!("s")), "{audit}");
        bench = bench.stop_and_restart().await;
    }
    // The old key is not needed any more.
    std::fs::write(&key, new).unwrap();
    let bench = bench.stop_and_restart().await;
    assert_eq!(sends(&bench, "c").await["is_ok"], true);
    assert_eq!(remote.last().header("authorization"), Some(&*format!("Bearer {SECRET}")));
    bench.server.stop().await;
}

// proves: D32
#[tokio::test(flavor = "multi_thread")]
async fn d32_tokens_are_fetched_shared_and_a_failed_fetch_is_a_failed_attempt() {
    let (bench, remote) = stage().await;
    let tokens = Mirror::start().await;
    let url = format!("{}/token", tokens.address);
    define(
        &bench,
        json!({"name": "s", "type": "oauth2", "token_url": url, "client_id": "lab", "client_secret": SECRET}),
    )
    .await;
    bench.connection("c", &remote.address, json!({"security": "s"})).await;
    bench.connection("refuses", &remote.address, json!({"security": "s", "url_path": "/status/401"})).await;
    for _ in 0..3 {
        assert_eq!(sends(&bench, "c").await["is_ok"], true);
    }
    assert_eq!((tokens.count(), remote.last().header("authorization")), (1, Some("Bearer t1")));
    assert_eq!(sends(&bench, "refuses").await["response"]["status"], 401);
    sends(&bench, "c").await;
    assert_eq!((tokens.count(), remote.last().header("authorization")), (2, Some("Bearer t2")));
    let sent = remote.count();
    let gone = json!({"token_url": "http://127.0.0.1:9/token"});
    assert_eq!(bench.call("PATCH", "/security/s", &gone).await.0, 200);
    let result = sends(&bench, "c").await;
    assert!(result["error"].as_str().unwrap().starts_with("no token: cannot connect to 127.0.0.1:9"), "{result}");
    let delivery = bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await;
    assert_eq!((&delivery["failure"], remote.count()), (&json!("unreachable"), sent), "{delivery}");
    bench.server.stop().await;
}

/// A TLS server that lets in only who shows a certificate of this authority, and answers 200.
async fn demanding(authority: &CertifiedIssuer<'static, KeyPair>) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut tls) = acceptor.accept(tcp).await else { continue };
            let mut read = vec![0; 4096];
            if tls.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {
                let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
                let _ = tls.write_all(answer).await;
                let _ = tls.shutdown().await;
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_demands_a_client_certificate_lets_in_the_connection_that_has_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let client = CertificateParams::new(vec!["lab".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let file = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let ca = file("ca.pem", authority.pem());
    let (cert, key) = (file("client.pem", client.pem()), file("client.key", key.serialize_pem()));
    let address = demanding(&authority).await;
    let bench = Bench::start().await;
    bench.connection("bare", &address, json!({"tls_ca_path": ca})).await;
    let known = json!({"tls_ca_path": ca, "tls_client_cert": cert, "tls_client_key": key});
    bench.connection("known", &address, known).await;
    let refused = sends(&bench, "bare").await;
    assert_eq!((&refused["is_ok"], &refused["response"]), (&json!(false), &Value::Null), "{refused}");
    assert_eq!(sends(&bench, "known").await["response"]["body"], "ok");
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_takes_secrets_from_standard_input_and_shows_none() {
    let (bench, remote) = stage().await;
    let run = async |words: &[&str], input: &str| {
        let mut command = program();
        command.args(["--server", &bench.server.address, "--key", KEY, "security"]).args(words);
        let ran = Ran::of(command, input.as_bytes()).await;
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
        ran
    };
    let created =
        run(&["create", "basic_auth", "lab.sec", "username=lab", "--secret", "-"], &format!("{SECRET}\n")).await;
    assert_eq!(created.code, 0, "{created:?}");
    bench.connection("c", &remote.address, json!({"security": "lab.sec"})).await;
    sends(&bench, "c").await;
    assert_eq!(remote.last().header("authorization"), Some("Basic bGFiOmh1bnRlcjItYW5kLW1vcmU="));
    assert_eq!(run(&["update", "lab.sec", "--secret", "-"], "").await.code, 0);
    sends(&bench, "c").await;
    assert_eq!(remote.last().header("authorization"), Some("Basic bGFiOg=="));
    let listed = run(&["list"], "").await;
    assert!(listed.stdout.contains("lab.sec") && listed.stdout.contains("basic_auth"), "{listed:?}");
    assert_eq!(run(&["show", "lab.sec", "--json"], "").await.json()["state"]["usedBy"], json!(["c"]));
    let refused = run(&["delete", "lab.sec"], "").await;
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("in use by `c`"), "{refused:?}");
    assert_eq!(run(&["show", "nobody's"], "").await.code, 3);
    assert_eq!(run(&["create", "bearer", "t", "--secret", "-"], "").await.code, 4);
    bench.server.stop().await;
}
