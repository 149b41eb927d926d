//! `docs/tutorial.md`, command by command, on free ports.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::harness::{Api, KEY};
use crate::python::{python, sdk};

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");

struct Block {
    /// What stands behind the three marks: `sh`, `sh background`, `python FILE`, `text`.
    kind: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in TUTORIAL.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(kind)) => open = Some(Block { kind: kind.to_owned(), text: String::new() }),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Two ports that nobody has now.
fn free_ports() -> (u16, u16) {
    let take = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, other) = (take(), take());
    (one.local_addr().unwrap().port(), other.local_addr().unwrap().port())
}

fn shell(text: &str, dir: &Path) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_postrider"));
    let path = std::env::var("PATH").unwrap();
    // `python3` is the one that the lab has, if there is one.
    let interpreter = python();
    let python_dir = interpreter.parent().filter(|dir| dir.is_absolute()).map(|dir| format!("{}:", dir.display()));
    let mut command = Command::new("bash");
    command
        .args(["-e", "-o", "pipefail", "-c", text])
        .current_dir(dir)
        .env("PATH", format!("{}:{}{path}", binary.parent().unwrap().display(), python_dir.unwrap_or_default()))
        .env("PYTHONPATH", sdk())
        .env("POSTRIDER_ADMIN_KEY", KEY)
        .env("POSTRIDER_KEY", KEY)
        .env("POSTRIDER_LOG", "warn")
        .kill_on_drop(true);
    command
}

async fn run(text: &str, dir: &Path) -> Output {
    let output = tokio::time::timeout(Duration::from_secs(60), shell(text, dir).output()).await;
    output.unwrap_or_else(|_| panic!("it does not end: {text}")).unwrap()
}

fn begin(text: &str, dir: &Path) -> Child {
    // In place of the shell, so that a kill reaches it.
    shell(&format!("exec {}", text.trim()), dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

async fn until_ready(api: &Api) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let services = api.call("GET", "/api/v1/projects/default/services", "").await;
        if services.is_ok_and(|(status, text)| status == 200 && text.contains("order-intake")) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "the server of the tutorial does not serve");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_tutorial_does_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let (server_port, warehouse_port) = free_ports();
    let own = |text: &str| text.replace("8080", &server_port.to_string()).replace("9000", &warehouse_port.to_string());
    let api = Api::new(&format!("http://127.0.0.1:{server_port}"));
    let exported = format!("export POSTRIDER_SERVER=http://127.0.0.1:{server_port}\n");
    let (mut background, mut server) = (Vec::new(), None);
    let mut output = String::new();
    let mut serve = String::new();
    for block in blocks() {
        let text = own(&block.text);
        match block.kind.split_once(' ').unwrap_or((&block.kind, "")) {
            ("python", file) => {
                let path = dir.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            ("sh", "background") => background.push(begin(&text, dir.path())),
            ("sh", "server") => {
                server = Some(begin(&text, dir.path()));
                serve = text;
                until_ready(&api).await;
            }
            ("sh", "") => {
                let ended = run(&format!("{exported}{text}"), dir.path()).await;
                output =
                    format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
                assert!(ended.status.success(), "{text}\n{output}");
            }
            ("text", _) => {
                for line in text.lines() {
                    assert!(output.contains(line), "`{line}` is not in what came:\n{output}");
                }
            }
            // What a reader's own key is.
            ("sh", "shown") => {}
            (other, _) => panic!("a block of kind `{other}`"),
        }
    }
    // The last step, which is told in words.
    let mut first = server.unwrap();
    run(
        &format!("curl -sS -d '{{\"order_id\": 7, \"quantity\": 3}}' http://127.0.0.1:{server_port}/orders"),
        dir.path(),
    )
    .await;
    first.kill().await.unwrap();
    let _second = begin(&serve, dir.path());
    let shipped = dir.path().join("shipped");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(40);
    while !std::fs::read_to_string(&shipped).unwrap().contains("order 7") {
        assert!(tokio::time::Instant::now() < deadline, "the order of the last step is not shipped");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
