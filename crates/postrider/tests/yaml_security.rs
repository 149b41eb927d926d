//! Definitions and the connections that name them, from one file, through the real binary (D18, D46).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use cli_parts::{Cli, Ran, program};
use harness::{KEY, Mirror, Server};
use serde_json::{Value, json};

const SECRET: &str = "hunter2-and-more";

fn text(host: &str) -> String {
    format!(
        "outgoing_rest:\n  - {{name: A, host: '{host}', url_path: /a, security: lab.sec}}\n\
         security:\n  - {{name: lab.sec, type: basic_auth, username: lab, password: Env.LAB_SEC_PASSWORD}}\n"
    )
}

async fn import(cli: &Cli, words: &[&str], password: &str) -> Ran {
    let mut command = program();
    command.arg("import").args(words).env("POSTRIDER_SERVER", &cli.server).env("POSTRIDER_KEY", &cli.key);
    command.env("LAB_SEC_PASSWORD", password);
    Ran::of(command, b"").await
}

// proves: P04, D46
#[tokio::test(flavor = "multi_thread")]
async fn d18_a_definition_and_its_connection_import_together_and_the_secret_stays_inside() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (server, remote) = tokio::join!(Server::start(&data), Mirror::start());
    let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
    let file = dir.path().join("a.yaml");
    std::fs::write(&file, text(&remote.address)).unwrap();
    let file = file.to_str().unwrap();

    let dry = import(&cli, &["--dry-run", file], SECRET).await;
    assert!(
        dry.stdout.contains("+ security lab.sec\n    type: basic_auth\n    username: lab\n    password: ***\n"),
        "{dry:?}"
    );
    assert!(!data.join("secrets.key").exists(), "a dry run makes no key");
    let done = import(&cli, &[file], SECRET).await;
    assert!(done.code == 0 && !done.stdout.contains(SECRET), "{done:?}");
    let sent = cli.run_with(&["send", "A", "--body", "-"], b"1").await;
    assert_eq!(sent.code, 0, "{sent:?}");
    assert_eq!(remote.last().header("authorization"), Some("Basic bGFiOmh1bnRlcjItYW5kLW1vcmU="));

    let again = import(&cli, &[file], SECRET).await;
    assert_eq!(again.stdout, "0 created, 0 changed, 2 unchanged\n", "{again:?}");
    let other = import(&cli, &[file, "--yes"], "another").await;
    assert!(other.stdout.contains("~ security lab.sec\n    password: *** -> ***\n"), "{other:?}");
    cli.run_with(&["send", "A", "--body", "-"], b"1").await;
    assert_eq!(remote.last().header("authorization"), Some("Basic bGFiOmFub3RoZXI="), "from the next attempt on");

    let exported = cli.done(&["export"]).await.stdout;
    assert!(exported.contains("    password: Env.LAB_SEC_PASSWORD\n") && !exported.contains("another"), "{exported}");
    let copy = dir.path().join("copy.yaml");
    std::fs::write(&copy, &exported).unwrap();
    let same = import(&cli, &[copy.to_str().unwrap()], "another").await;
    assert_eq!(same.stdout, "0 created, 0 changed, 2 unchanged\n", "{same:?}");
    let audit = cli.done(&["audit", "list", "--action", "security", "--json"]).await.json();
    let acts: Vec<&Value> = audit["data"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(acts, [&json!("security.replace"), &json!("security.create")]);
    assert!(!audit.to_string().contains(SECRET) && !audit.to_string().contains("another"), "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d18_a_server_that_starts_with_a_file_seals_its_secrets_and_opens_them_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Mirror::start().await;
    let file = dir.path().join("c.yaml");
    std::fs::write(&file, text(&remote.address)).unwrap();
    for start in 1..=3 {
        let mut command = program();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(dir.path().join("data"));
        command.env("POSTRIDER_ADMIN_KEY", KEY).env("LAB_SEC_PASSWORD", SECRET);
        if start < 3 {
            command.arg("--config").arg(&file);
        }
        let server = Server::of(command).await;
        let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
        let sent = cli.run_with(&["send", "A", "--body", "-"], b"1").await;
        assert_eq!(sent.code, 0, "{sent:?}");
        assert_eq!(remote.last().header("authorization"), Some("Basic bGFiOmh1bnRlcjItYW5kLW1vcmU="));
        let shown = cli.done(&["connections", "show", "A", "--json"]).await.json();
        assert_eq!(shown["version"], 1, "the second start changes nothing");
        server.stop().await;
    }
}
