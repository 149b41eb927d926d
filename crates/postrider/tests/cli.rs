//! The commands against a real server, end to end: what they print, what they change, how they end.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use cli_parts::{Cli, Ran, program};
use harness::{Receiver, Server};
use serde_json::{Value, json};

struct Lab {
    cli: Cli,
    receiver: Receiver,
    server: Server,
    dir: tempfile::TempDir,
}

impl Lab {
    async fn start() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let (server, receiver) = tokio::join!(Server::start(dir.path()), Receiver::start());
        let cli = Cli { server: server.address.clone(), key: harness::KEY.to_owned() };
        Lab { cli, receiver, server, dir }
    }

    async fn connection(&self, name: &str, settings: &[&str]) {
        self.cli.connection(name, &self.receiver.address, settings).await;
    }

    /// A dead letter of a connection to `/hopeless`, with this body.
    async fn dead_letter(&self, name: &str, body: &str) -> String {
        let ran = self.cli.run_with(&["send", name, "--body", "-"], body.as_bytes()).await;
        assert_eq!((ran.code, &ran.json()["is_in_dlq"]), (6, &Value::Bool(true)), "{ran:?}");
        ran.json()["msg_id"].as_str().unwrap().to_owned()
    }
}

const HOPELESS: [&str; 2] = ["url_path=/hopeless", "use_queue=true"];

// proves: Z10, Z31
#[tokio::test(flavor = "multi_thread")]
async fn z30_the_result_is_printed_and_decides_the_exit_code() {
    let lab = Lab::start().await;
    lab.connection("Billing API", &["url_path=/ok", "use_queue=true", "max_retries=3"]).await;
    lab.connection("Claims API", &HOPELESS).await;
    lab.connection("Direct", &["url_path=/hopeless"]).await;
    let send = async |words: &[&str]| lab.cli.run_with(words, b"7").await;

    let ran = send(&["send", "Billing API", "--body", "-"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = ran.json();
    assert_eq!((&result["is_ok"], &result["response"]["status"]), (&json!(true), &json!(200)));
    assert!(result["msg_id"].as_str().unwrap().starts_with("msg_"));

    let ran = send(&["publish", "rest:Billing API", "--body", "-"]).await;
    assert_eq!((ran.code, &ran.json()["is_in_queue"]), (0, &json!(true)), "{ran:?}");
    let id = ran.json()["msg_id"].as_str().unwrap().to_owned();
    lab.cli.until_status(&id, "SUCCESS").await;

    let ran = send(&["send", "Claims API", "--body", "-"]).await;
    assert_eq!((ran.code, &ran.json()["is_in_dlq"]), (6, &json!(true)), "{ran:?}");
    assert!(!ran.json()["error"].is_null());

    let ran = send(&["send", "Direct", "--body", "-"]).await;
    let result = ran.json();
    assert_eq!((ran.code, &result["is_ok"], &result["response"]["status"]), (6, &json!(false), &json!(500)));

    let received = lab.receiver.receipts();
    assert_eq!(received.iter().filter(|(path, _)| path == "/ok").count(), 2, "{received:?}");
    lab.server.stop().await;
}

// proves: Z20
#[tokio::test(flavor = "multi_thread")]
async fn z23_dead_letters_are_seen_edited_retried_forwarded_and_discarded() {
    let lab = Lab::start().await;
    let cli = &lab.cli;
    lab.connection("Claims API", &HOPELESS).await;
    let id = lab.dead_letter("Claims API", "41").await;

    let listed = cli.done(&["dlq", "list"]).await.stdout;
    let line = listed.lines().find(|line| line.starts_with(&id)).expect("it is listed");
    assert!(line.contains("Claims API") && line.contains("status") && line.contains("500"), "{line}");
    let shown = cli.done(&["dlq", "show", &id]).await.stdout;
    assert!(shown.contains("in the DLQ since") && shown.contains("ATTEMPT"), "{shown}");

    assert_eq!(cli.run_with(&["dlq", "edit", &id, "--body", "-"], b"42").await.code, 0);
    assert_eq!(cli.done(&["dlq", "download", &id]).await.stdout, "42");
    assert_eq!(cli.done(&["dlq", "download", &id, "--original"]).await.stdout, "41");
    let file = lab.dir.path().join("body");
    cli.done(&["deliveries", "download", &id, "--output", file.to_str().unwrap()]).await;
    assert_eq!(std::fs::read(&file).unwrap(), b"42");

    cli.done(&["connections", "update", "Claims API", "url_path=/ok"]).await;
    cli.done(&["dlq", "retry", &id]).await;
    cli.until_status(&id, "SUCCESS").await;
    let last = lab.receiver.receipts().pop().unwrap();
    assert_eq!(last, ("/ok".to_owned(), (id.clone(), 42)), "the edited body, under the same id");
    let attempts = cli.done(&["deliveries", "attempts", &id, "--json"]).await.json();
    assert_eq!(attempts["data"].as_array().unwrap().len(), 2);

    cli.done(&["connections", "update", "Claims API", "url_path=/hopeless"]).await;
    let (forwarded, discarded) = (lab.dead_letter("Claims API", "1").await, lab.dead_letter("Claims API", "2").await);
    cli.done(&["topics", "create", "undeliverable"]).await;
    cli.done(&["topics", "subscribe", "undeliverable", "me"]).await;
    cli.done(&["dlq", "forward", &forwarded, "--topic", "undeliverable"]).await;
    cli.done(&["dlq", "discard", &discarded]).await;
    let pulled = cli.done(&["topics", "pull", "undeliverable", "me", "--json"]).await.json();
    assert_eq!(pulled["data"][0]["body"], "1");
    let event = pulled["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(cli.done(&["topics", "ack", "undeliverable", "me", &event]).await.stdout, "1 of 1 acknowledged\n");
    assert_eq!(cli.done(&["dlq", "list"]).await.stdout, "nothing is in the DLQ\n");
    let ended = cli.done(&["deliveries", "list", "--status", "FORWARDED,DISCARDED", "--json"]).await.json();
    assert_eq!(ended["data"].as_array().unwrap().len(), 2);
    lab.server.stop().await;
}

// proves: Z16
#[tokio::test(flavor = "multi_thread")]
async fn z11_what_waits_is_listed_in_order_and_handled_by_hand() {
    let lab = Lab::start().await;
    let cli = &lab.cli;
    lab.connection("Billing API", &["url_path=/ok", "use_queue=true", "max_retries=3"]).await;
    assert!(cli.done(&["connections", "pause", "Billing API"]).await.stdout.contains("paused"));
    let mut ids = Vec::new();
    for body in ["1", "2", "3"] {
        let ran = cli.run_with(&["publish", "Billing API", "--body", "-"], body.as_bytes()).await;
        ids.push(ran.json()["msg_id"].as_str().unwrap().to_owned());
    }
    let listed = cli.done(&["queue", "list", "Billing API", "--json"]).await.json();
    let in_order: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|d| d["id"].as_str().unwrap()).collect();
    assert_eq!(in_order, ids);
    let first = cli.done(&["queue", "list", "Billing API", "--limit", "1"]).await;
    assert!(first.stdout.contains(&ids[0]) && first.stderr.contains("--cursor"), "{first:?}");
    let anywhere = cli.done(&["queue", "list", "--json"]).await.json();
    assert_eq!(anywhere["data"].as_array().unwrap().len(), 3);
    assert!(cli.done(&["connections", "list"]).await.stdout.contains("paused"));

    cli.done(&["queue", "discard", &ids[0]]).await;
    cli.done(&["queue", "set-aside", &ids[1]]).await;
    cli.until_status(&ids[0], "DISCARDED").await;
    cli.until_status(&ids[1], "DLQ").await;
    assert_eq!(lab.receiver.receipts(), [], "nothing is sent while paused");
    let refused = cli.run(&["connections", "delete", "Billing API"]).await;
    assert_eq!(refused.code, 4, "{refused:?}");
    cli.done(&["connections", "resume", "Billing API"]).await;
    cli.until_status(&ids[2], "SUCCESS").await;
    cli.done(&["connections", "delete", "Billing API", "--force"]).await;
    assert_eq!(cli.run(&["connections", "show", "Billing API"]).await.code, 3);
    lab.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z03_refused_settings_are_named_one_a_line() {
    let lab = Lab::start().await;
    let host = format!("host={}", lab.receiver.address);
    let words = [
        "connections",
        "create",
        "rest",
        "x",
        &host,
        "url_path=/ok",
        "max_retries=1001",
        "retry_sleep_time=-1",
        "no_such=1",
    ];
    let ran = lab.cli.run(&words).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("error: "));
    for field in ["max_retries", "retry_sleep_time", "no_such"] {
        assert!(lines[1..].iter().any(|line| line.starts_with(&format!("  {field}: "))), "{lines:?}");
    }
    assert_eq!(lab.cli.run(&["connections", "show", "x"]).await.code, 3, "nothing was stored");
    lab.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z03_a_connections_schedule_is_that_of_its_policy() {
    let lab = Lab::start().await;
    lab.connection("x", &["url_path=/ok", "max_retries=10"]).await;
    let planned = lab.cli.done(&["schedule", "x", "--json"]).await.json();
    let waits: Vec<f64> =
        planned["data"].as_array().unwrap().iter().map(|a| a["wait_seconds"].as_f64().unwrap()).collect();
    assert_eq!(waits, [0., 2., 4., 8., 8., 8., 8., 8., 8., 6.]);
    assert_eq!(lab.cli.run(&["schedule", "nobody"]).await.code, 3);
    lab.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_failing_has_its_exit_code_and_one_line() {
    let lab = Lab::start().await;
    let not_found = lab.cli.run(&["send", "nobody"]).await;
    assert_eq!(not_found.code, 3);
    assert!(not_found.error().contains("nobody"), "{not_found:?}");
    assert_eq!(lab.cli.run(&["dlq", "retry", "msg_01aaaaaaaaaaaaaaaaaaaaaaaa"]).await.code, 3);
    let wrong_key = Cli { server: lab.server.address.clone(), key: "wrong".into() }.run(&["dlq", "list"]).await;
    assert_eq!((wrong_key.code, wrong_key.error()), (4, "error: the key is not valid"));
    let no_key = Cli { server: lab.server.address.clone(), key: String::new() }.run(&["dlq", "list"]).await;
    assert_eq!(no_key.code, 2);
    assert!(no_key.error().contains("POSTRIDER_KEY"));
    let address = lab.server.address.clone();
    lab.server.stop().await;
    let gone = Cli { server: address, key: harness::KEY.into() }.run(&["dlq", "list"]).await;
    assert_eq!(gone.code, 1);
    assert!(gone.error().contains("cannot be reached"), "{gone:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_printed_is_not_done() {
    for words in [&["schedule", "--preset", "webhook"][..], &["schedule", "--preset", "webhook", "--json"], &["man"]] {
        let mut command = program();
        command.args(words).stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        command.stderr(std::process::Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().await.unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {complaint}");
        assert!(complaint.starts_with("error: standard output cannot be written"), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[tokio::test]
async fn without_an_address_the_server_of_the_data_directory_is_asked() {
    let lab = Lab::start().await;
    let mut command = program();
    command.args(["topics", "list"]).env("POSTRIDER_DATA", lab.dir.path()).env("POSTRIDER_ADMIN_KEY", harness::KEY);
    let ran = Ran::of(command, b"").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "there are no topics\n"), "{ran:?}");
    lab.server.stop().await;
}

// proves: Z31
#[tokio::test(flavor = "multi_thread")]
async fn z31_a_file_of_requests_is_published_in_its_order() {
    let lab = Lab::start().await;
    lab.connection("Billing API", &["url_path=/ok", "use_queue=true"]).await;
    lab.cli.done(&["connections", "pause", "Billing API"]).await;
    let file = lab.dir.path().join("requests.ndjson");
    let lines: String = (0..1200).map(|n| format!("{{\"body\": {n}}}\n")).collect();
    std::fs::write(&file, format!("{lines}not json\n\n{{\"body\": 1200}}")).unwrap();
    let file = file.to_str().unwrap();

    let ran = lab.cli.run(&["publish", "Billing API", "--batch", file, "--idempotency-key", "k"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (4, "1201 stored, 1 refused\n"), "{ran:?}");
    assert!(ran.stderr.starts_with("line 1201: ") && ran.stderr.lines().count() == 1, "no progress bar: {ran:?}");

    // The same again under its key stores nothing more.
    let ran = lab.cli.run(&["publish", "Billing API", "--batch", file, "--idempotency-key", "k", "--json"]).await;
    let result = ran.json();
    assert_eq!((ran.code, &result["accepted"], &result["refused"]), (4, &json!(1201), &json!(1)));
    assert_eq!((&result["results"][1200]["line"], &result["results"][1201]["line"]), (&json!(1201), &json!(1203)));
    let state = lab.cli.done(&["connections", "show", "Billing API", "--json"]).await.json();
    assert_eq!(state["state"]["waiting"], 1201, "{state}");

    let ran = lab.cli.run_with(&["publish", "Billing API", "--batch", "-"], b"{\"body\": 1}\n{}\n").await;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "2 stored, 0 refused\n", ""), "{ran:?}");
    let last = lab.cli.run_with(&["publish", "Nobody", "--batch", "-"], b"{}\n").await;
    assert_eq!(last.code, 3, "{last:?}");
    assert!(last.error().contains("nothing from line 1 on was stored"), "{last:?}");
    lab.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_manual_pages_are_made_from_the_command_line_itself() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Ran::command(&format!("completions {shell}")).await;
        assert!(ran.code == 0 && ran.stdout.contains("postrider") && ran.stdout.contains("connections"), "{ran:?}");
    }
    let ran = Ran::command("man").await;
    assert!(ran.code == 0 && ran.stdout.contains(".TH postrider 1"), "{ran:?}");
    let dir = tempfile::tempdir().unwrap();
    let ran = Ran::command(&format!("man {}", dir.path().join("man1").display())).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    for page in ["postrider.1", "postrider-serve.1", "postrider-dlq-retry.1"] {
        assert!(dir.path().join("man1").join(page).is_file(), "{page}");
    }
    // A store that does not answer is told, and no password of its address is repeated.
    let mut command = program();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--store", "postgres://ada:hunter2@127.0.0.1:1/x", "--data"])
        .arg(dir.path().join("data"));
    let ran = Ran::of(command, b"").await;
    assert!(ran.code == 5 && ran.stderr.contains("cannot be opened") && !ran.stderr.contains("hunter2"), "{ran:?}");
}
