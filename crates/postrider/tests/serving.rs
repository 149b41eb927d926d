//! `serve` as a process: how it starts, what it refuses, how it stops.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cli_parts::{Cli, Ran, program, server_file};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

const KEY: &str = "a-key-for-the-tests";

fn serve(data: &Path, words: &[&str]) -> Command {
    let mut command = program();
    command.arg("serve").args(words).arg("--data").arg(data).env("POSTRIDER_ADMIN_KEY", KEY);
    command
}

struct Serving {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    logs: BufReader<ChildStderr>,
    /// What it printed before it listened.
    before: Vec<String>,
    address: String,
}

impl Serving {
    async fn start(mut command: Command) -> Serving {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let logs = BufReader::new(child.stderr.take().unwrap());
        let mut before = Vec::new();
        loop {
            let line = lines.next_line().await.unwrap().expect("the server ended before it listened");
            match line.strip_prefix("listening on ") {
                Some(address) => return Serving { child, lines, logs, before, address: address.to_owned() },
                None => before.push(line),
            }
        }
    }

    async fn at(data: &Path) -> Serving {
        Serving::start(serve(data, &["--listen", "127.0.0.1:0"])).await
    }

    fn cli(&self, key: &str) -> Cli {
        Cli { server: self.address.clone(), key: key.to_owned() }
    }

    async fn signal(&self, signal: &str) {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
    }

    /// Its exit code and all that it logged from here on.
    async fn ended(&mut self) -> (i32, String) {
        let mut logged = String::new();
        self.logs.read_to_string(&mut logged).await.unwrap();
        (self.child.wait().await.unwrap().code().unwrap(), logged)
    }

    async fn stop(mut self) -> String {
        self.signal("-TERM").await;
        let (code, stderr) =
            tokio::time::timeout(Duration::from_secs(30), self.ended()).await.expect("it stops in time");
        assert_eq!(code, 0, "{stderr}");
        stderr
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_where_it_listens_for_as_long_as_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("made/on/the/way");
    let mut serving = Serving::at(&data).await;
    let known = server_file(&data).unwrap();
    assert_eq!(known["address"], serving.address.as_str());
    assert_eq!(known["pid"], serving.child.id().unwrap());
    serving.cli(KEY).done(&["connections", "list"]).await;
    serving.signal("-INT").await;
    assert_eq!(serving.ended().await.0, 0);
    assert_eq!(server_file(&data), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_data_is_refused_and_the_first_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let first = Serving::at(dir.path()).await;
    let second = Ran::of(serve(dir.path(), &["--listen", "127.0.0.1:0"]), b"").await;
    assert_eq!((second.code, second.stdout.as_str()), (5, ""), "{second:?}");
    assert!(second.error().contains(dir.path().to_str().unwrap()), "{second:?}");
    assert_eq!(server_file(dir.path()).unwrap()["address"], first.address.as_str());
    first.cli(KEY).done(&["connections", "list"]).await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_refused_in_one_line() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let serving = Serving::at(first.path()).await;
    let address = serving.address.strip_prefix("http://").unwrap();
    let ran = Ran::of(serve(second.path(), &["--listen", address]), b"").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.error().contains(address), "{ran:?}");
    assert_eq!(server_file(second.path()), None);
    serving.stop().await;
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("postrider.db");
    std::fs::write(&file, "not a database at all, but at least one page long? no: short").unwrap();
    let ran = Ran::of(serve(dir.path(), &["--listen", "127.0.0.1:0"]), b"").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.error().contains("postrider.db"), "{ran:?}");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("not a database"));

    let ran = Ran::of(serve(Path::new("/dev/null"), &["--listen", "127.0.0.1:0"]), b"").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.error().contains("/dev/null"));
}

#[tokio::test]
async fn a_setting_out_of_range_refuses_the_start_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("POSTRIDER_LEASE_SECONDS", "0"),
        ("WEBHOOK_CLAIM_TIMEOUT_SECONDS", "soon"),
        ("WEBHOOK_RETRY_AFTER_MAX_SECONDS", "-1"),
        ("DELIVERY_ESCALATION_HARD_CAP_HOURS", "80"),
        ("POSTRIDER_LOG", "loud=very=much"),
    ] {
        let mut command = serve(&dir.path().join("data"), &["--listen", "127.0.0.1:0"]);
        command.env(name, value);
        let ran = Ran::of(command, b"").await;
        assert_eq!(ran.code, 4, "{name}: {ran:?}");
        assert!(ran.error().starts_with(&format!("error: `{name}` is `{value}`: ")), "{ran:?}");
        assert!(!dir.path().join("data").exists(), "nothing was opened");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_makes_a_key_and_shows_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let without_key = || {
        let mut command = serve(dir.path(), &["--listen", "127.0.0.1:0"]);
        command.env_remove("POSTRIDER_ADMIN_KEY");
        command
    };
    let serving = Serving::start(without_key()).await;
    let key = serving.before[0].strip_prefix("admin key, shown this once: ").expect("a key is shown").to_owned();
    serving.cli(&key).done(&["connections", "list"]).await;
    assert_eq!(serving.cli("another").run(&["connections", "list"]).await.code, 4);
    assert!(!serving.stop().await.contains(&key), "never in a log");
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()), "only its hash is kept");
    }

    let again = Serving::start(without_key()).await;
    assert!(!again.before.iter().any(|line| line.contains("key")), "{:?}", again.before);
    // Until there is an owner, each start shows a way to become one.
    assert!(again.before[0].starts_with("nobody has a user yet"), "{:?}", again.before);
    again.cli(&key).done(&["connections", "list"]).await;
    again.stop().await;
}

/// A remote system that takes requests and never answers; it tells when one has come.
async fn silent_remote() -> (String, tokio::sync::mpsc::Receiver<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (came, coming) = tokio::sync::mpsc::channel(8);
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut byte = [0];
            if stream.read_exact(&mut byte).await.is_ok() {
                let _ = came.send(()).await;
            }
            kept.push(stream);
        }
    });
    (address, coming)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_stops_at_once_and_what_was_under_way_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut serving = Serving::at(dir.path()).await;
    let cli = serving.cli(KEY);
    let (remote, mut coming) = silent_remote().await;
    cli.connection("x", &remote, &["url_path=/", "use_queue=true", "max_retries=3", "timeout=600"]).await;
    let id = cli.done(&["publish", "x"]).await.json()["msg_id"].as_str().unwrap().to_owned();
    coming.recv().await.expect("the attempt is under way");
    serving.signal("-TERM").await;
    let mut line = String::new();
    while !line.contains("stopping") {
        line.clear();
        assert!(serving.logs.read_line(&mut line).await.unwrap() > 0, "it says that it stops");
    }
    serving.signal("-TERM").await;
    let (code, rest) = tokio::time::timeout(Duration::from_secs(5), serving.ended()).await.expect("at once");
    assert_eq!(code, 1);
    assert!(rest.contains("sent again at the next start"), "{rest}");

    let again = Serving::at(dir.path()).await;
    coming.recv().await.expect("it is sent again");
    let shown = again.cli(KEY).done(&["deliveries", "show", &id, "--json"]).await.json();
    assert!(["PENDING", "PROCESSING"].contains(&shown["status"].as_str().unwrap()), "{shown}");
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_bodies_nor_keys_are_ever_logged() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = serve(dir.path(), &["--listen", "127.0.0.1:0"]);
    command.env("POSTRIDER_LOG", "trace");
    let serving = Serving::start(command).await;
    let cli = serving.cli(KEY);
    cli.connection("x", "http://127.0.0.1:9", &["url_path=/", "use_queue=true"]).await;
    let send = ["send", "x", "--body", "-", "--header", "Authorization: Bearer token-in-a-header"];
    assert_eq!(cli.run_with(&send, b"words-of-the-body").await.code, 6);
    let logged = serving.stop().await;
    assert!(logged.contains("stopped"), "{logged}");
    for secret in [KEY, "token-in-a-header", "words-of-the-body"] {
        assert!(!logged.contains(secret), "`{secret}` is in the log:\n{logged}");
    }
}

// proves: Z21
#[tokio::test(flavor = "multi_thread")]
async fn z20_the_demo_shows_a_success_a_retry_and_a_dead_letter_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]).env("TMPDIR", temporary.path());
    let mut demo = Serving::start(command).await;
    let key = loop {
        let line = demo.lines.next_line().await.unwrap().expect("the guide is printed");
        if let Some((_, key)) = line.split_once(" POSTRIDER_KEY=") {
            break key.to_owned();
        }
    };
    let cli = demo.cli(&key);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let deliveries = cli.done(&["deliveries", "list", "--limit", "1000", "--json"]).await.json();
        let all = deliveries["data"].as_array().unwrap();
        let some = |name: &str, value: &str| all.iter().any(|delivery| delivery[name] == value);
        let retried = all.iter().any(|delivery| delivery["label"] == "Delivered" && delivery["attempts"] == 4);
        if some("status", "SUCCESS")
            && some("label", "Retrying")
            && some("status", "DLQ")
            && some("status", "FORWARDED")
            && retried
        {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "not within a minute: {deliveries}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(cli.done(&["dlq", "list"]).await.stdout.contains("HTTP 500"));
    demo.stop().await;
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "the data directory is gone");
}
