//! Keys, scopes and the audit log over the real binary, and what becomes of the credentials that callers present.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::path::Path;
use std::sync::{Arc, Mutex};

use cli_parts::Cli;
use harness::{KEY, Receiver, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Keeps every byte that it is sent, and answers 200.
async fn listening_remote() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = heard.clone();
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { continue };
            let kept = kept.clone();
            tokio::spawn(async move {
                let mut chunk = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut chunk).await {
                    kept.lock().unwrap().extend_from_slice(&chunk[..read]);
                    let answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: remote-cookie\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, heard)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Every file below the data directory, as bytes.
fn files(data: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn p07_a_key_does_what_its_scopes_say_until_it_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let (server, receiver) = tokio::join!(Server::start(dir.path()), Receiver::start());
    let admin = Cli { server: server.address.clone(), key: KEY.to_owned() };
    admin.connection("c", &receiver.address, &["url_path=/ok"]).await;
    let made = admin.done(&["keys", "create", "app", "--scopes", "send"]).await;
    let key = made.stdout.trim().to_owned();
    assert!(key.starts_with("prk_") && made.stderr.contains("shown this once"), "{made:?}");
    let app = Cli { server: server.address.clone(), key: key.clone() };
    assert_eq!(app.run_with(&["send", "c", "--body", "-"], b"1").await.code, 0);
    for words in
        [&["deliveries", "list"][..], &["keys", "list"], &["connections", "pause", "c"], &["projects", "create", "x"]]
    {
        let refused = app.run(words).await;
        assert_eq!(refused.code, 4, "{words:?} {refused:?}");
        assert!(refused.error().contains("scope"), "{refused:?}");
    }
    let rotated = admin.done(&["keys", "rotate", "app", "--json"]).await.json();
    assert!(rotated["formerWorksUntil"].is_string());
    let next = Cli { server: server.address.clone(), key: rotated["key"].as_str().unwrap().to_owned() };
    for cli in [&app, &next] {
        assert_eq!(cli.run_with(&["send", "c", "--body", "-"], b"1").await.code, 0, "both work during the overlap");
    }

    // Keys outlive a kill, and so does a revocation.
    server.kill_nine().await;
    let server = Server::start(dir.path()).await;
    let [admin, app, next] =
        [&admin, &app, &next].map(|cli| Cli { server: server.address.clone(), key: cli.key.clone() });
    assert_eq!(app.run_with(&["send", "c", "--body", "-"], b"1").await.code, 0);
    assert_eq!(admin.done(&["keys", "list", "--json"]).await.json()["data"][0]["name"], "app");
    admin.done(&["keys", "revoke", "app"]).await;
    server.kill_nine().await;
    let server = Server::start(dir.path()).await;
    for cli in [&app, &next] {
        let cli = Cli { server: server.address.clone(), key: cli.key.clone() };
        let refused = cli.run_with(&["send", "c", "--body", "-"], b"1").await;
        assert_eq!(refused.code, 4, "{refused:?}");
    }
    let admin = Cli { server: server.address.clone(), key: admin.key };
    let audit = admin.done(&["audit", "list", "--action", "key", "--json"]).await.json();
    let acts: Vec<&Value> = audit["data"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    for act in ["key.revoke", "key.rotate", "key.create"] {
        assert!(acts.contains(&&json!(act)), "{audit}");
    }
    assert_eq!(audit["data"][0]["actor"]["address"], "127.0.0.1");
    assert!(!audit.to_string().contains(&key), "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d14_the_credential_that_let_a_caller_in_is_never_stored_nor_sent_on() {
    let dir = tempfile::tempdir().unwrap();
    let (server, (remote, heard)) = tokio::join!(Server::start(dir.path()), listening_remote());
    let admin = Cli { server: server.address.clone(), key: KEY.to_owned() };
    admin.connection("direct", &remote, &["url_path=/a"]).await;
    admin.connection("queued", &remote, &["url_path=/b", "use_queue=true"]).await;
    let key = admin.done(&["keys", "create", "app", "--scopes", "send,read"]).await.stdout.trim().to_owned();
    let app = Cli { server: server.address.clone(), key: key.clone() };
    for connection in ["direct", "queued"] {
        let sent = app
            .run_with(&["send", connection, "--header", "Authorization: Bearer remotes-own", "--body", "-"], b"7")
            .await;
        assert_eq!(sent.code, 0, "{sent:?}");
        // Nor when the caller writes it into the request by mistake.
        for given in [&key, KEY] {
            let header = format!("Authorization: Bearer {given}");
            let refused = app.run_with(&["send", connection, "--header", &header, "--body", "-"], b"7").await;
            assert_eq!(refused.code, 4, "{refused:?}");
            assert!(!refused.stderr.contains(given), "{refused:?}");
        }
    }
    let list = app.done(&["deliveries", "list", "--json"]).await.json();
    assert_eq!(list["data"][0]["headers"]["Authorization"], "***", "{list}");
    let id = list["data"][0]["id"].as_str().unwrap();
    let attempts = app.done(&["deliveries", "attempts", id, "--json"]).await.stdout;
    assert!(!attempts.contains("remote-cookie") && attempts.contains("***"), "{attempts}");
    server.stop().await;
    let heard = heard.lock().unwrap().clone();
    assert!(holds(&heard, "remotes-own"), "the remote system's own credential is sent");
    for secret in [key.as_str(), KEY] {
        assert!(!holds(&heard, secret), "a key of ours was sent on");
        for (name, bytes) in files(dir.path()) {
            assert!(!holds(&bytes, secret), "a key of ours is in {name}");
        }
    }
}
