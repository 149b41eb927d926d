//! The commands and configuration files about incoming webhooks, against the real server.

use serde_json::{Value, json};

use crate::cli_parts::Cli;
use crate::harness::{Hooks, KEY, Remote};
use crate::sender::{address, headers, now, send, signed};

fn cli(hooks: &Hooks) -> Cli {
    Cli { server: hooks.api.base().to_owned(), key: KEY.to_owned() }
}

// proves: R12, P04
#[tokio::test(flavor = "multi_thread")]
async fn r12_sources_destinations_and_forwards_are_run_from_the_command_line() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let cli = cli(&hooks);
    let made = cli.done(&["sources", "create", "name=shop", "provider=none", "idHeader=X-Id", "--json"]).await.json();
    let url = format!("url={}/404/404/200", remote.address);
    let to = cli.done(&["destinations", "create", "shop", &url, "maxAttempts=2", "--json"]).await.json();
    assert_eq!((&to["sourceId"], &to["maxAttempts"]), (&made["id"], &json!(2)));
    let (status, accepted) = send(&address(&hooks, &made), "text/plain", &headers(&[]), b"one").await.unwrap();
    assert_eq!(status, 202, "{accepted}");
    let failed = until(&cli, &["forwards", "failed", "--source", "shop", "--json"]).await;
    let id = failed["data"][0]["forwardId"].as_str().unwrap().to_owned();
    let shown = cli.done(&["forwards", "failed"]).await.stdout;
    assert!(shown.contains(&id) && shown.contains("shop") && shown.contains("404"), "{shown}");
    assert_eq!(cli.done(&["forwards", "retry", "--all", "--dry-run", "--json"]).await.json()["matched"], 1);
    assert_eq!(cli.run(&["forwards", "retry"]).await.code, 2);
    assert_eq!(cli.done(&["forwards", "retry", &id, "--json"]).await.json()["retried"], 1);
    let again = until(&cli, &["forwards", "failed", "--json"]).await;
    let again = again["data"][0]["forwardId"].as_str().unwrap().to_owned();
    assert_ne!(again, id);
    let refused = cli.run(&["forwards", "retry", &id, &again]).await;
    assert_eq!(refused.code, 4, "the first one is retried already: {refused:?}");
    assert!(refused.stdout.contains("1 of 2 retried") && refused.stderr.contains(&id), "{refused:?}");
    remote.until_received(3).await;
    let replay = ["sources", "replay", "shop", "--from", "2020-01-01T00:00:00Z"];
    assert!(cli.done(&[&replay[..], &["--dry-run"]].concat()).await.stdout.starts_with("1 webhooks would be"));
    assert_eq!(
        cli.done(&[&replay[..], &["--json"]].concat()).await.json(),
        json!({"events": 1, "forwards": 1, "next_cursor": null})
    );
    remote.until_received(4).await;
    let listed = cli.done(&["forwards", "list", "--destination", to["id"].as_str().unwrap()]).await.stdout;
    assert!(listed.contains("fwd_") && listed.contains("shop"), "{listed}");
    cli.done(&["destinations", "set", to["id"].as_str().unwrap(), "enabled=false"]).await;
    assert!(cli.done(&["destinations", "list", "--source", "shop"]).await.stdout.contains("off"));
    let rotated = cli.done(&["sources", "rotate-token", "shop", "--overlap", "0", "--json"]).await.json();
    assert_eq!(send(&address(&hooks, &made), "text/plain", &headers(&[]), b"2").await.unwrap().0, 404);
    assert_eq!(send(&address(&hooks, &rotated), "text/plain", &headers(&[]), b"2").await.unwrap().0, 202);
    cli.done(&["sources", "set", "shop", "enabled=false"]).await;
    let shown = cli.done(&["sources", "list"]).await.stdout;
    assert!(shown.contains("shop") && shown.contains("off"), "{shown}");
    assert_eq!(cli.run(&["sources", "show", "nobody"]).await.code, 3);
    cli.done(&["destinations", "delete", to["id"].as_str().unwrap()]).await;
    cli.done(&["sources", "delete", "shop"]).await;
    assert!(cli.done(&["sources", "list"]).await.stdout.contains("there are no sources"));
}

async fn until(cli: &Cli, words: &[&str]) -> Value {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let found = cli.done(words).await.json();
        if found["data"].as_array().is_some_and(|rows| !rows.is_empty()) {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "{words:?}: nothing yet");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

// proves: R12, D18, D46
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_file_makes_a_source_that_takes_webhooks_under_the_token_that_it_names() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let cli = cli(&hooks);
    let token = "in_of_the_tests_0123456789abcdefghij";
    let file = format!(
        "webhook_source:\n  - name: GitHub\n    provider: github\n    secret: shared-with-github-1\n    token: {token}\n    id_header: null\n\
         webhook_endpoint:\n  - {{name: CI, url: '{}/hook', retry_preset: forward, payload: as_arrived}}\n\
         webhook_subscription:\n  - {{name: to CI, endpoint: CI, event_type: incoming.github}}\n",
        remote.address
    );
    let ran = cli.run_with(&["import", "-", "--yes"], file.as_bytes()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("+ webhook_source GitHub") && !ran.stdout.contains("shared-with"), "{ran:?}");
    let again = cli.run_with(&["import", "-", "--yes"], file.as_bytes()).await;
    assert!(again.stdout.contains("0 created, 0 changed, 3 unchanged"), "{again:?}");
    let destinations = cli.done(&["destinations", "list", "--source", "GitHub", "--json"]).await.json();
    assert_eq!(destinations["data"][0]["name"], "to CI", "a subscription to its topic is a destination");
    let url = format!("{}/ingress/{token}", hooks.api.base());
    let body = b"{\"ref\":\"refs/heads/main\"}";
    let by_github = async |secret: &str, id: &str, body: &[u8]| {
        let (mut headers, _) = signed("github", secret, &url, "application/json", body, now()).await;
        headers.insert("x-github-delivery".to_owned(), id.into());
        headers
    };
    let first = by_github("shared-with-github-1", "1", body).await;
    let forged = by_github("shared-with-nobody-1", "1", body).await;
    assert_eq!(send(&url, "application/json", &forged, body).await.unwrap().0, 401);
    assert_eq!(send(&url, "application/json", &first, body).await.unwrap().0, 202);
    remote.until_received(1).await;
    let exported = cli.done(&["export"]).await.stdout;
    assert!(exported.contains("secret: Env.GITHUB_SECRET") && !exported.contains(token), "{exported}");
    // Another secret: the former one goes on verifying, and the file's is in force at once.
    let changed = file.replace("shared-with-github-1", "shared-with-github-2");
    assert!(cli.run_with(&["import", "-", "--yes"], changed.as_bytes()).await.stdout.contains("1 changed"));
    let captured = by_github("shared-with-github-1", "2", body).await;
    assert_eq!(send(&url, "application/json", &captured, body).await.unwrap().0, 401, "a replay");
    for (n, secret) in ["shared-with-github-1", "shared-with-github-2"].into_iter().enumerate() {
        let other = format!("{{\"ref\":\"refs/heads/{n}\"}}");
        let headers = by_github(secret, secret, other.as_bytes()).await;
        let (status, answer) = send(&url, "application/json", &headers, other.as_bytes()).await.unwrap();
        assert_eq!(status, 202, "{secret}: {answer}");
    }
}
