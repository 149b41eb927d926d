//! Configuration files with the real binary: import, export, a start with one, and a kill in the middle.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::path::Path;
use std::time::{Duration, Instant};

use cli_parts::{Cli, Ran, program};
use harness::{Api, KEY, Receiver, Server};
use serde_json::{Value, json};

fn two_hundred(host: &str, max_retries: u32) -> String {
    let mut text = String::from("projects:\n  - name: billing\npubsub_topic:\n");
    (0..19).for_each(|n| text += &format!("  - {{name: topic.{n}, description: 'of {max_retries}'}}\n"));
    text += "pubsub_subscription:\n";
    (0..10).for_each(|n| text += &format!("  - {{name: reader {n}, topic_list: [topic.{n}]}}\n"));
    text += "outgoing_rest:\n";
    for n in 0..170 {
        let project = if n % 2 == 0 { "" } else { "    project: billing\n" };
        text +=
            &format!("  - name: API {n}\n{project}    host: {host}\n    url_path: /v2/{{id}}\n    use_queue: true\n");
        text += &format!("    max_retries: {max_retries}\n");
    }
    text
}

async fn lab(data: &Path) -> (Server, Cli) {
    let server = Server::start(data).await;
    let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
    (server, cli)
}

// proves: P04
#[tokio::test(flavor = "multi_thread")]
async fn d18_two_hundred_objects_import_export_to_the_same_and_import_again_without_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = lab(&dir.path().join("data")).await;
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("in.yaml"), two_hundred("https://api.example.org", 3)).unwrap();

    let ran = cli.done(&["import", "--dry-run", &path("in.yaml")]).await;
    assert!(
        ran.stdout.contains("+ outgoing_rest API 7 in project billing\n    host: https://api.example.org\n"),
        "{ran:?}"
    );
    assert!(ran.stdout.ends_with("200 created, 0 changed, 0 unchanged\n"), "{ran:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "no colour where there is no terminal");
    assert_eq!(cli.done(&["connections", "list", "--json"]).await.json()["data"], json!([]));
    let ran = cli.done(&["import", &path("in.yaml")]).await;
    assert!(ran.stdout.ends_with("200 created, 0 changed, 0 unchanged\napplied\n"), "{ran:?}");
    let ran = cli.done(&["import", &path("in.yaml")]).await;
    assert_eq!(ran.stdout, "0 created, 0 changed, 200 unchanged\n");

    cli.done(&["export", "--all", &path("out.yaml")]).await;
    let exported = std::fs::read_to_string(path("out.yaml")).unwrap();
    assert_eq!(cli.done(&["export", "--all"]).await.stdout, exported);
    let ran = cli.done(&["import", &path("out.yaml"), "--json"]).await;
    let imported = ran.json();
    assert_eq!((&imported["created"], &imported["changed"]), (&json!([]), &json!([])));
    assert_eq!(imported["unchanged"].as_array().unwrap().len(), 201, "the project default is in it as well");

    let (other, copy) = lab(&dir.path().join("copy")).await;
    copy.done(&["import", &path("out.yaml")]).await;
    assert_eq!(copy.done(&["export", "--all"]).await.stdout, exported);
    let ran = copy.run_with(&["import", "-"], two_hundred("https://api.example.org", 4).as_bytes()).await;
    assert!(ran.stdout.contains("~ outgoing_rest API 0\n    max_retries: 3 -> 4\n"), "{ran:?}");
    assert!(ran.stdout.ends_with("0 created, 189 changed, 11 unchanged\napplied\n"), "{ran:?}");
    server.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d18_a_typo_in_a_long_file_is_refused_with_its_line_and_the_nearest_key() {
    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = lab(&dir.path().join("data")).await;
    let file = dir.path().join("platform.yaml").display().to_string();
    let text = two_hundred("https://api.example.org", 3);
    let line = 1 + text.lines().position(|line| line.contains("API 100")).unwrap();
    let text = text.replacen("API 100\n", "API 100\n    max_retrys: 4\n", 1);
    std::fs::write(&file, text.replacen("topic.3,", "topic.3, decription: x,", 1)).unwrap();
    let ran = cli.run(&["import", &file, "--yes"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines[0], "error: 2 errors in the configuration; nothing was applied", "{ran:?}");
    assert!(lines[1].starts_with(&format!("  {file}:7:21: pubsub_topic[3].decription: ")), "{ran:?}");
    assert!(lines[2].starts_with(&format!("  {file}:{}:5: outgoing_rest[100].max_retrys: ", line + 1)), "{ran:?}");
    assert!(lines[2].ends_with("did you mean `max_retries`?") && lines.len() == 3, "{ran:?}");
    assert_eq!(cli.done(&["connections", "list", "--json"]).await.json()["data"], json!([]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d18_variables_are_those_of_whoever_imports() {
    let dir = tempfile::tempdir().unwrap();
    let (server, cli) = lab(&dir.path().join("data")).await;
    let receiver = Receiver::start().await;
    let file = dir.path().join("a.yaml");
    std::fs::write(
        &file,
        "outgoing_rest:\n  - {name: A, host: Env.A_HOST, url_path: /ok, timeout: Zato_Enmasse_Env.A_TIMEOUT}\n",
    )
    .unwrap();
    let import = async |variables: &[(&str, &str)]| {
        let mut command = program();
        command.arg("import").arg(&file).env("POSTRIDER_SERVER", &cli.server).env("POSTRIDER_KEY", &cli.key);
        command.envs(variables.iter().copied());
        Ran::of(command, b"").await
    };
    let ran = import(&[("A_TIMEOUT", "5")]).await;
    assert_eq!(ran.code, 4);
    assert!(
        ran.stderr.contains(
            "a.yaml:2:21: outgoing_rest[0].host: `host` is the value of the variable `A_HOST`, and that is not set"
        ),
        "{ran:?}"
    );
    let ran = import(&[("A_HOST", "hunter2"), ("A_TIMEOUT", "5")]).await;
    assert!(ran.code == 4 && !ran.stderr.contains("hunter2"), "{ran:?}");
    let ran = import(&[("A_HOST", &receiver.address), ("A_TIMEOUT", "5")]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(cli.done(&["connections", "show", "A", "--json"]).await.json()["timeout"], 5);
    let sent = cli.run_with(&["send", "A", "--body", "-"], b"1").await;
    assert_eq!(sent.code, 0, "{sent:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d18_a_server_starts_with_a_file_and_not_with_a_bad_one() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("c.yaml"));
    let serve = |words: &[&str]| {
        let mut command = program();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).args(words);
        command.env("POSTRIDER_ADMIN_KEY", KEY).env("C_HOST", "https://api.example.org");
        command
    };
    std::fs::write(
        &file,
        "outgoing_rest:\n  - {name: C, host: Env.C_HOST, url_path: '', max_retrys: 1, use_queue: on}\n",
    )
    .unwrap();
    let ran = Ran::of(serve(&["--config", file.to_str().unwrap()]), b"").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(
        ran.stderr.contains("c.yaml:2:47: outgoing_rest[0].max_retrys: ") && ran.stderr.contains("c.yaml:2:73: "),
        "{ran:?}"
    );
    assert!(!data.exists(), "nothing was opened");
    // Wrong only beside what is stored.
    std::fs::write(&file, "pubsub_subscription:\n  - {name: s, topic_list: [nowhere]}\n").unwrap();
    let ran = Ran::of(serve(&["--config", file.to_str().unwrap()]), b"").await;
    assert!(ran.code == 4 && ran.stderr.contains("c.yaml:2:27: pubsub_subscription[0].topic_list: "), "{ran:?}");
    let ran = Ran::of(serve(&["--config", "not-there.yaml"]), b"").await;
    assert!(ran.code == 1 && ran.error().contains("not-there.yaml cannot be read"), "{ran:?}");

    std::fs::write(&file, "outgoing_rest:\n  - {name: C, host: Env.C_HOST, url_path: ''}\n").unwrap();
    for variable in [file.as_os_str(), "".as_ref()] {
        let mut command = serve(&[]);
        command.env("POSTRIDER_CONFIG", variable);
        let server = Server::of(command).await;
        let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
        assert_eq!(cli.done(&["connections", "show", "C", "--json"]).await.json()["host"], "https://api.example.org");
        server.stop().await;
    }
}

/// Every object of the file carries the same number; after a kill all show the old one or all the new one.
#[tokio::test(flavor = "multi_thread")]
async fn d18_a_kill_in_the_middle_of_an_import_leaves_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let import = |number: u32| json!({"yaml": two_hundred("https://api.example.org", number)}).to_string();
    let server = Server::start(&data).await;
    let api = Api::new(&server.address);
    let begun = Instant::now();
    assert_eq!(api.call("POST", "/api/v1/import", &import(1)).await.unwrap().0, 200);
    let took = begun.elapsed();
    server.kill_nine().await;
    let (mut current, mut seen) = (1, Vec::new());
    // From before it can have begun to after it must have ended, most of them near its end, where it writes.
    for (number, share) in (2..).zip([0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1, 3.0]) {
        let server = Server::start(&data).await;
        let api = Api::new(&server.address);
        let importing = tokio::spawn({
            let (api, body) = (api.clone(), import(number));
            async move { api.call("POST", "/api/v1/import", &body).await }
        });
        tokio::time::sleep(took.mul_f64(share).min(Duration::from_secs(5))).await;
        server.kill_nine().await;
        let answered = matches!(importing.await.unwrap(), Ok((200, _)));
        let after = Server::start(&data).await;
        let (status, text) = Api::new(&after.address).call("GET", "/api/v1/export", "").await.unwrap();
        assert_eq!(status, 200);
        let count = |number: u32| {
            let connections = text.matches(&format!("    max_retries: {number}\n")).count();
            (connections, text.matches(&format!("    description: of {number}\n")).count())
        };
        let is_applied = count(number) == (170, 19);
        assert!(
            is_applied || count(current) == (170, 19),
            "neither all nor nothing: {:?} {:?}",
            count(number),
            count(current)
        );
        assert!(is_applied || !answered, "it was answered and is not there");
        seen.push(is_applied);
        if is_applied {
            current = number;
        }
        after.kill_nine().await;
    }
    assert!(seen.contains(&true) && seen.contains(&false), "the kills were not around the import: {seen:?}");
}

/// An independent validator, over files that are good and files that are not (the peer lab).
#[tokio::test(flavor = "multi_thread")]
async fn d18_the_json_schema_takes_good_files_and_refuses_bad_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let venv = std::env::var("POSTRIDER_PEERS_VENV").map_or_else(|_| root.join("target/peers/venv"), Into::into);
    let python = venv.join("bin/python");
    assert!(python.exists(), "the peer lab is not installed; `cargo xtask peers` installs it");
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let schema = write("schema.json", &Ran::command("schema").await.stdout);
    let rest = "outgoing_rest:\n  - name: A\n    host: https://a\n    url_path: ''\n";
    let good = [
        two_hundred("https://api.example.org", 3),
        format!(
            "{rest}    timeout: Env.T\n    use_queue: true\n    retry_delays: [60, Env.D]\n    ping_method: GET\n    request_data: x\n"
        ),
        "pubsub_subscription:\n  - {security: s, topic_list: t}\nscheduler: [{name: x}]\n".to_owned(),
        "projects:\n  - {name: a, ownerEmail: ada@example.org, concurrency: 5}\n".to_owned(),
        "security:\n  - {name: a, type: bearer, token: t}\n  - {name: b, type: basic_auth, username: u, password: Env.P, realm: x}\n".to_owned(),
        "security:\n  - {name: o, type: oauth2, token_url: 'https://a', client_id: c, client_secret: s, scopes: [a, b], extra_params: {x: 1}}\n".to_owned(),
    ];
    let bad = [
        format!("{rest}    max_retrys: 4\n"),
        format!("{rest}    max_retries: 1001\n"),
        format!("{rest}    max_retries: '3'\n"),
        format!("{rest}    use_queue: on\n"),
        format!("{rest}    timeout: 0\n"),
        format!("{rest}    dlq_action: burn\n"),
        format!("{rest}    retry_delays: [0.5]\n"),
        "outgoing_rest: [{name: A, url_path: ''}]\n".to_owned(),
        "outgoing_rst: []\n".to_owned(),
        "projects: [{name: a, concurrency: 0}]\n".to_owned(),
        "security: [{name: a, token: t}]\n".to_owned(),
        "security: [{name: a, type: ntlm, token: t}]\n".to_owned(),
        "security: [{name: a, type: bearer, token: t, username: u}]\n".to_owned(),
        "security: [{name: a, type: basic_auth, password: p}]\n".to_owned(),
        "outgoing_fhir: [{name: a}]\n".to_owned(),
        "pubsub_topic: {name: a}\n".to_owned(),
        "pubsub_subscription: [{topic_list: [a]}]\n".to_owned(),
        "pubsub_topic: [{description: no name}]\n".to_owned(),
    ];
    let mut command = tokio::process::Command::new(python);
    command.arg(root.join("tests/peers/check_schema.py")).arg(&schema);
    for (number, text) in good.iter().chain(&bad).enumerate() {
        command.arg(write(&format!("{number}.yaml"), text));
        // The reader agrees with the schema on every one of them.
        let file = postrider_config::read(text, postrider_config::SECTIONS, &|name| {
            Some(if name == "T" { "5" } else { "60" }.to_owned())
        });
        assert_eq!(file.check().is_ok(), number < good.len(), "{text}\n{:?}", file.check());
    }
    let ran = Ran::of(command, b"").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let verdicts: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), good.len() + bad.len());
    for (number, verdict) in verdicts.iter().enumerate() {
        let errors = verdict["errors"].as_array().unwrap();
        assert_eq!(errors.is_empty(), number < good.len(), "{verdict}");
    }
}
