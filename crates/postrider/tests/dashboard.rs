//! The dashboard in a real browser against the real binary: what a person does there, checked through the API (issue 9, P05, P07, Z23).
//!
//! Chromium is driven by playwright-core from the peer lab; the steps are in `tests/peers/browser_*.cjs`. With `POSTRIDER_SHOTS` set to a folder,
//! pictures of the pages are left there.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use cli_parts::Cli;
use harness::{Api, KEY, Receiver};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A server without users, and the link that it printed.
struct Fresh {
    address: String,
    link: String,
    key: String,
    _child: Child,
}

impl Fresh {
    /// `until`: what the last line of interest begins with.
    async fn start(arguments: &[&str], data: Option<&Path>, until: &str) -> Fresh {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "error");
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut address, mut link, mut key) = (String::new(), String::new(), KEY.to_owned());
        loop {
            let line = lines.next_line().await.unwrap().expect("the server ended before it was ready");
            if let Some(found) = line.split(' ').find(|word| word.contains("/ui/first?token=")) {
                found.clone_into(&mut link);
            }
            if let Some(found) = line.strip_prefix("listening on ") {
                found.trim().clone_into(&mut address);
            }
            if let Some((_, found)) = line.split_once("POSTRIDER_KEY=") {
                found.trim().clone_into(&mut key);
            }
            if line.starts_with(until) {
                break;
            }
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        assert!(!link.is_empty() && !address.is_empty(), "{address} {link}");
        Fresh { address, link, key, _child: child }
    }

    fn cli(&self) -> Cli {
        Cli { server: self.address.clone(), key: self.key.clone() }
    }

    /// What a command answers, as JSON.
    async fn json(&self, words: &[&str]) -> Value {
        self.cli().done(&[words, &["--json"]].concat()).await.json()
    }
}

/// Runs a scenario to its end; what it printed.
async fn browse(scenario: &str, arguments: &[&str]) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let node = std::env::var("POSTRIDER_PEERS_NODE").map_or_else(|_| root.join("target/peers/node"), PathBuf::from);
    assert!(
        node.join("node_modules/playwright-core").exists(),
        "the peer lab is not installed; `cargo xtask peers` installs it"
    );
    let mut command = Command::new("node");
    command.arg(root.join("tests/peers").join(scenario)).args(arguments).env("POSTRIDER_PEERS_NODE", node);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{scenario}\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn i09_a_newcomer_finds_the_blocked_queue_edits_the_bad_body_and_sees_it_delivered() {
    let demo = Fresh::start(&["--demo"], None, "Give it half a minute").await;
    let said = browse("browser_demo.cjs", &[&demo.link]).await;
    let id = serde_json::from_str::<Value>(&said).unwrap()["delivered"].as_str().unwrap().to_owned();
    let delivery = demo.json(&["deliveries", "show", &id]).await;
    assert_eq!((&delivery["status"], &delivery["edited"]), (&json!("SUCCESS"), &json!(true)), "{delivery}");
    let log = demo.json(&["audit", "list", "--object", &id]).await;
    let acts: Vec<(&str, &str)> = log["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["actor"]["name"].as_str().unwrap()))
        .collect();
    for action in ["delivery.body.view", "delivery.attempts.view", "delivery.edit"] {
        assert!(acts.contains(&(action, "ada@example.org")), "{action}: {acts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i09_z23_every_act_by_hand_is_done_in_a_browser_and_hostile_bodies_do_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = Fresh::start(&[], Some(dir.path()), "listening on ").await;
    let cli = fresh.cli();
    cli.done(&["topics", "create", "undeliverable"]).await;
    let settings = ["host=http://127.0.0.1:9", "url_path=", "use_queue=true", "max_retries=0", "data_format=text"];
    let create = [&["connections", "create", "rest", "Dead End"][..], &settings].concat();
    cli.done(&create).await;
    let api = Api::new(&fresh.address);
    let publish = "/api/v1/projects/default/connections/Dead%20End/publish";
    let mut ids = Vec::new();
    let hostile = format!(
        "<script>window.hacked = true</script><img src=x onerror=\"window.hacked = true\">\u{202e}desrever\u{0}{}",
        "x".repeat(7_000_000)
    );
    for number in 0..7 {
        let body = if number == 0 { hostile.clone() } else { format!("patient {number}") };
        let request = json!({"method": "POST", "path": format!("/patients/{number}"), "body": body}).to_string();
        let (status, answer) = api.call("POST", publish, &request).await.unwrap();
        assert_eq!(status, 202, "{answer}");
        ids.push(serde_json::from_str::<Value>(&answer).unwrap()["msg_id"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        while api.delivery_status(id).await.as_deref() != Some("DLQ") {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    browse("browser_deliveries.cjs", &[&fresh.link, &ids[0]]).await;
    // What was clicked has happened: one was forwarded, one discarded and sent again, all others retried.
    let forwarded = fresh.json(&["deliveries", "list", "--status", "FORWARDED"]).await;
    assert_eq!(forwarded["data"].as_array().unwrap().len(), 1);
    assert_eq!(fresh.json(&["topics", "messages", "undeliverable"]).await["data"].as_array().unwrap().len(), 1);
    let third = fresh.json(&["deliveries", "show", &ids[3]]).await;
    assert_ne!(third["status"], "DISCARDED", "it was sent again");
    let jobs = fresh.json(&["jobs", "list"]).await;
    let acts: Vec<(&str, u64)> = jobs["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["act"].as_str().unwrap(), job["done"].as_u64().unwrap()))
        .collect();
    assert_eq!(acts, [("retry", 6), ("discard", 1)]);
    assert!(jobs["data"].as_array().unwrap().iter().all(|job| job["who"] == "ada@example.org"), "{jobs}");
    let users = fresh.json(&["users", "list", "--installation"]).await;
    assert_eq!(users["data"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn p07_users_are_made_and_changed_by_command() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = Fresh::start(&[], Some(dir.path()), "listening on ").await;
    let cli = fresh.cli();
    let ran = cli.run(&["users", "create", "Ada@example.org", "--role", "owner", "--installation"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let password = ran.stdout.trim();
    assert!(password.len() >= 29 && ran.stderr.contains("shown this once"), "{ran:?}");
    let file = dir.path().join("password");
    std::fs::write(&file, "correct horse battery\n").unwrap();
    let file = file.to_str().unwrap();
    let made = fresh.json(&["users", "create", "vera", "--role", "viewer", "--sees-bodies", "--password", file]).await;
    assert_eq!((&made["role"], &made["seesBodies"], made.get("password")), (&json!("viewer"), &json!(true), None));
    let changed = fresh.json(&["users", "set-role", "vera", "developer"]).await;
    assert_eq!(changed["role"], "developer");
    let ran = cli.run(&["users", "set-password", "vera"]).await;
    assert!(ran.code == 0 && ran.stdout.trim().len() >= 29, "{ran:?}");
    let ran = cli.run(&["users", "create", "x", "--role", "king", "--password", file]).await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("king") && ran.stderr.contains("owner, developer, viewer"), "{ran:?}");
    let ran = cli.run(&["users", "delete", "ada@example.org", "--installation"]).await;
    assert!(ran.code != 0 && ran.error().contains("last owner"), "{ran:?}");
    assert_eq!(cli.run(&["users", "delete", "vera"]).await.code, 0);
    assert_eq!(cli.run(&["users", "delete", "vera"]).await.code, 3);
    let all = cli.run(&["users", "list", "--installation"]).await;
    assert!(all.stdout.contains("ada@example.org"), "{all:?}");
    // Nothing in the data directory has the password in the clear.
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with("password") {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(password.len()).any(|window| window == password.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

/// Every form that sets something up, with script and without; axe-core finds nothing serious on any page, in light and in dark.
#[tokio::test(flavor = "multi_thread")]
async fn i09_p05_everything_is_set_up_and_looked_after_in_a_browser() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let fresh = Fresh::start(&[], Some(dir.path()), "listening on ").await;
    browse("browser_setup.cjs", &[&fresh.link, KEY, &receiver.address]).await;
    let log = fresh.json(&["audit", "list"]).await;
    let who = |action: &str| {
        let entry = log["data"].as_array().unwrap().iter().find(|entry| entry["action"] == action);
        entry.map(|entry| entry["actor"]["name"].as_str().unwrap().to_owned())
    };
    for action in ["connection.create", "key.create", "security.create", "topic.create"] {
        assert_eq!(who(action).as_deref(), Some("ada@example.org"), "{action}: {log}");
    }
}

/// Channels, services, topics, sources and destinations: every form and act, with script and without, and what comes of each for callers outside.
#[tokio::test(flavor = "multi_thread")]
async fn i09_z40_r12_everything_that_takes_requests_in_is_set_up_in_a_browser() {
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let fresh = Fresh::start(&[], Some(dir.path()), "listening on ").await;
    let host = format!("host={}", receiver.address);
    fresh.cli().done(&["connections", "create", "rest", "Ledger", &host, "url_path=/ledger", "use_queue=true"]).await;
    browse("browser_intake.cjs", &[&fresh.link, KEY, &receiver.address]).await;
    let log = fresh.json(&["audit", "list", "--limit", "500"]).await;
    let acts: Vec<&str> =
        log["data"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    for action in ["source.create", "source.rotate_token", "source.delete", "topic.create"] {
        assert!(acts.contains(&action), "{action}: {acts:?}");
    }
}

/// What a remote system may say, too.
const HOSTILE_ANSWER: &[u8] =
    b"HTTP/1.1 422 <script>window.hacked=true</script>\r\nX-Evil: \"><img src=x onerror=window.hacked=true>\r\n\
    Content-Type: text/html\r\nContent-Length: 74\r\nConnection: close\r\n\r\n\
    <script>window.hacked = true</script><img src=x onerror=window.hacked=true>";

/// A body of each hostile kind, with what it says it is.
fn hostile_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let script =
        "</code></li></ol></div><script>window.hacked = true</script><img src=x onerror=\"window.hacked = true\">";
    let entities = "<!DOCTYPE a [<!ENTITY b \"ha\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY x SYSTEM \"file:///etc/passwd\">]>";
    let many: String = (0..60_000).map(|n| format!("\"{n}\": [1, {{\"a\": \"<b>\"}}], ")).collect();
    vec![
        ("text/html", script.as_bytes().to_vec()),
        (
            "text/plain",
            format!("\u{202e}\u{2066}desrever\u{200b}\u{feff}\u{7}\u{0}{}", "\u{202e}".repeat(20_000)).into_bytes(),
        ),
        ("text/plain", vec![b'x'; 7_900_000]),
        ("application/octet-stream", (0..400_000_u32).map(|n| (n % 256) as u8).collect()),
        ("application/json", ["[".repeat(200_000), "]".repeat(200_000)].concat().into_bytes()),
        ("application/json", format!("{{{many}\"end\": \"{script}\"}}").into_bytes()),
        ("application/json", format!("{{\"a\": \"{}\"}}", "\\u202e<script>".repeat(100_000)).into_bytes()),
        ("application/xml", format!("{entities}<a>&c;&x;{}</a>", "<b c='<'>".repeat(50_000)).into_bytes()),
        ("application/xml", format!("<a {}>{script}", "b=\"1\" ".repeat(50_000)).into_bytes()),
        (
            "application/hl7-v2",
            format!("MSH|^~\\&|{script}\rPID|{}\rOBX|1|TX|{}", "|".repeat(300_000), "^~&".repeat(100_000)).into_bytes(),
        ),
        ("application/hl7-v2", [b"MSH".as_slice(), &[0xff, 0xfe, b'<', b'>', 0]].concat()),
        (
            "application/x-www-form-urlencoded",
            format!("a=%3Cscript%3Ewindow.hacked%3Dtrue%3C/script%3E&{}", "%00=%FF&".repeat(50_000)).into_bytes(),
        ),
        ("text/plain", Vec::new()),
    ]
}

/// Names, descriptions, paths, headers, bodies and answers of strangers, on every page that links lead to.
#[tokio::test(flavor = "multi_thread")]
async fn i09_nothing_that_strangers_write_runs_or_breaks_a_page() {
    use base64::Engine as _;
    const NAME: &str = "\"><img src=x onerror=window.hacked=true>{{7*7}}'--";
    const TEXT: &str = "\u{202e}desrever <img src=x onerror=window.hacked=true>";
    let dir = tempfile::tempdir().unwrap();
    let remote = harness::RawRemote::start(&[harness::Act::Read, harness::Act::Say(HOSTILE_ANSWER)]).await;
    let fresh = Fresh::start(&[], Some(dir.path()), "listening on ").await;
    let api = Api::new(&fresh.address);
    let below = "/api/v1/projects/default";
    let long = format!("{}{NAME}", "W".repeat(200 - NAME.chars().count()));
    for name in [NAME, long.as_str()] {
        let settings = [
            (
                "/connections",
                json!({"name": name, "type": "rest", "host": remote.address, "url_path": "/{id}", "use_queue": true, "max_retries": 0, "data_format": "text"}),
            ),
            ("/services", json!({"name": name, "address": format!("{}/x", remote.address)})),
            (
                "/channels",
                json!({"name": name, "type": "rest", "service": name, "url_path": if name == NAME { "/c/{a}" } else { "/d" }, "use_queue": true}),
            ),
            ("/security", json!({"name": name, "type": "basic_auth", "username": TEXT, "password": "x"})),
            ("/endpoints", json!({"name": name, "url": "https://a.example/?<script>", "description": TEXT})),
            (
                "/sources",
                json!({"name": name, "provider": "none", "topic": if name == NAME { "a" } else { "b" }, "description": TEXT}),
            ),
            ("/keys", json!({"name": name.chars().take(60).collect::<String>(), "scopes": ["read"]})),
            ("/topics", json!({"name": if name == NAME { "t" } else { "u" }, "description": TEXT})),
            ("/topics/t/subscriptions", json!({"name": name})),
        ];
        for (path, body) in settings {
            let (status, answer) = api.call("POST", &format!("{below}{path}"), &body.to_string()).await.unwrap();
            // What is not taken cannot be shown; most of it is.
            assert!(
                status == 201 || (status == 422 && matches!(path, "/endpoints" | "/keys")),
                "{path}: {status} {answer}"
            );
        }
    }
    let list = fresh.json(&["connections", "list"]).await;
    let name =
        list["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).find(|name| *name == NAME);
    let encoded: String = name.unwrap().bytes().map(|byte| format!("%{byte:02X}")).collect();
    let publish = format!("{below}/connections/{encoded}/publish?type=rest");
    let mut ids = Vec::new();
    for (kind, body) in hostile_bodies() {
        let request = json!({
            "method": "POST",
            "params": {"id": "<script>window.hacked = true</script>", "q\"><b>": TEXT},
            "headers": {"Content-Type": kind, "X-Evil": "\"><img src=x onerror=window.hacked=true>", "X-Long": "W".repeat(4000)},
            "body_base64": base64::engine::general_purpose::STANDARD.encode(&body),
        });
        let (status, answer) = api.call("POST", &publish, &request.to_string()).await.unwrap();
        assert_eq!(status, 202, "{kind}: {answer}");
        ids.push(serde_json::from_str::<Value>(&answer).unwrap()["msg_id"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        while api.delivery_status(id).await.as_deref() != Some("DLQ") {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    let arguments: Vec<&str> = std::iter::once(fresh.link.as_str()).chain(ids.iter().map(String::as_str)).collect();
    browse("browser_hostile.cjs", &arguments).await;
}
