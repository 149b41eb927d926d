//! Acts over many deliveries from the command line: dry runs, jobs, waiting for them, and what makes no sense.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use cli_parts::Cli;
use harness::{Receiver, Server};
use serde_json::json;

// proves: P08
#[tokio::test(flavor = "multi_thread")]
async fn p08_dead_letters_are_acted_on_by_filter() {
    let dir = tempfile::tempdir().unwrap();
    let (server, receiver) = tokio::join!(Server::start(dir.path()), Receiver::start());
    let cli = Cli { server: server.address.clone(), key: harness::KEY.to_owned() };
    cli.connection("a", &receiver.address, &["url_path=/hopeless", "use_queue=true"]).await;
    let mut ids = Vec::new();
    for number in ["1", "2", "3"] {
        let ran = cli.run_with(&["send", "a", "--body", "-"], number.as_bytes()).await;
        ids.push(ran.json()["msg_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(cli.done(&["dlq", "retry", "--connection", "a", "--dry-run"]).await.stdout.trim(), "3");
    let none = ["dlq", "retry", "--error", "timeout", "--where", "attempts_min=1", "--dry-run", "--json"];
    assert_eq!(cli.done(&none).await.json(), json!({"matched": 0, "complete": true}));
    let begun = cli.done(&["dlq", "retry", "--all", "--json", "--wait"]).await.json();
    assert_eq!((&begun["state"], &begun["done"], &begun["matched"]), (&json!("DONE"), &json!(3), &json!(3)), "{begun}");
    let id = begun["id"].as_str().unwrap();
    for delivery in &ids {
        cli.until_status(delivery, "DLQ").await;
    }
    let shown = cli.done(&["jobs", "show", id]).await;
    assert!(shown.stdout.contains("retry") && shown.stdout.contains("DONE"), "{}", shown.stdout);
    assert!(cli.done(&["jobs", "list"]).await.stdout.contains(id));
    let ran = cli.run(&["jobs", "cancel", id]).await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(cli.run(&["jobs", "show", "job_00000000000000000000000000"]).await.code, 3);

    // By ids as before, one after another; by filter it says where to look.
    let ran = cli.done(&["dlq", "discard", &ids[0]]).await;
    assert!(ran.stdout.contains("DISCARDED"), "{ran:?}");
    let ran = cli.done(&["dlq", "discard", "--error-text", "http 500"]).await;
    assert!(ran.stdout.starts_with("job_"), "{ran:?}");
    for delivery in &ids[1..] {
        cli.until_status(delivery, "DISCARDED").await;
    }
    let asked = ["deliveries", "list", "--where", "path=/nowhere", "--json"];
    assert_eq!(cli.done(&asked).await.json()["data"], json!([]));

    for (words, code) in [
        (&["dlq", "retry"][..], 2),
        (&["dlq", "retry", "--all", "--status", "FAILED"], 2),
        (&["queue", "set-aside", "--all", "--status", "DLQ"], 2),
        (&["dlq", "retry", "--where", "colour=red"], 4),
        (&["dlq", "retry", "--error", "bad-luck"], 4),
        (&["deliveries", "resend", "--from", "yesterday"], 4),
        (&["deliveries", "resend", "--connection", "nobody"], 3),
        (&["dlq", "forward", "--all", "--topic", "missing"], 3),
        (&["queue", "attempt-now", "--head-of", "a"], 4),
    ] {
        let ran = cli.run(words).await;
        assert_eq!(ran.code, code, "{words:?}: {ran:?}");
    }
    server.stop().await;
}
