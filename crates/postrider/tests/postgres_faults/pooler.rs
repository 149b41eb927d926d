//! PgBouncer between a server and its database: what it would take away is found out at the start. Where the Debian package `pgbouncer` is not
//! installed there is nothing to show.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::harness::OwnPostgres;
use crate::harness::cluster::{command, eventually};
use crate::plant::Plant;

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// What a server asks of every session; with them as the role's own, a pooler need not pass them on.
const SETTINGS: &[(&str, &str)] = &[
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("lock_timeout", "5s"),
    ("statement_timeout", "20s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("enable_seqscan", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
    ("search_path", "postrider"),
];

/// It does not run as root either.
async fn pooler(database: &OwnPostgres, mode: &str, more: &str) -> (Child, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = format!(
        "[databases]\n* = host=127.0.0.1 port={} user=app\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 30\n{more}\n",
        database.port
    );
    let path = database.write(&format!("{port}.ini"), &text);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", PROGRAM, "--quiet"]).arg(path);
    let child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    eventually("the pooler listens", async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()).await;
    (child, port)
}

async fn refused(url: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut command = command("serve", url, &dir.path().join("data"));
    command.args(["--listen", "127.0.0.1:0"]).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.unwrap().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_takes_sessions_away_is_refused_and_one_that_keeps_them_is_not() {
    if !std::path::Path::new(PROGRAM).exists() {
        eprintln!("skipped: {PROGRAM} is not installed");
        return;
    }
    let database = OwnPostgres::start(&[]);
    database.ask("CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app");
    let (strict, port) = pooler(&database, "transaction", "").await;
    let told = refused(&database.url_at(port)).await;
    assert!(told.contains("a pooler in between does not pass the settings of a session on"), "{told}");
    drop(strict);
    let ignores = "ignore_startup_parameters = options";
    let (lax, port) = pooler(&database, "transaction", ignores).await;
    let told = refused(&database.url_at(port)).await;
    assert!(told.contains("is there a pooler in between?"), "{told}");
    // Somebody gives the role our settings, and it looks as if all were well.
    for (name, value) in SETTINGS {
        database.ask(&format!("ALTER ROLE app SET {name} = '{value}'"));
    }
    drop(lax);
    let (by_transaction, port) = pooler(&database, "transaction", ignores).await;
    let told = refused(&database.url_at(port)).await;
    assert!(told.contains("gives each transaction another session"), "{told}");
    drop(by_transaction);
    let (_by_session, port) = pooler(&database, "session", ignores).await;
    let plant = Plant::start(&database.url_at(port)).await;
    plant.until_ready().await;
    assert_eq!(plant.call("GET", "/deliveries", &serde_json::Value::Null).await.0, 200);
    plant.server.stop().await;
}
