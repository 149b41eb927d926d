//! A PostgreSQL server for the tests: the one that is named or reachable, or one of our own on a free port, gone at the end.
//!
//! It must not know what the tests do with it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process;

/// Where tests find their server.
const VARIABLE: &str = "POSTRIDER_TEST_POSTGRES";
/// Where Debian's package has its socket.
const SOCKET_DIR: &str = "/var/run/postgresql";
/// Where Debian's package keeps programs that are not on the path, one folder a version.
const DEBIAN_PROGRAMS: &str = "/usr/lib/postgresql";
const START: Duration = Duration::from_secs(60);

pub struct Server {
    url: String,
    /// Ours, to be stopped.
    own: Option<Own>,
}

struct Own {
    programs: PathBuf,
    dir: PathBuf,
}

/// # Errors
/// No server is reachable and none can be installed or started.
pub fn ready() -> Result<Server, String> {
    if let Ok(url) = std::env::var(VARIABLE) {
        return Ok(Server { url, own: None });
    }
    for user in [std::env::var("USER").unwrap_or_default(), "postgres".to_owned()] {
        let url = format!("postgres://{user}@/postgres?host={SOCKET_DIR}");
        if !user.is_empty() && answers(&url) {
            return Ok(Server { url, own: None });
        }
    }
    start()
}

impl Server {
    /// What the tests' environment needs.
    pub fn variables(&self) -> [(&'static str, String); 1] {
        [(VARIABLE, self.url.clone())]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(Own { programs, dir }) = &self.own {
            let words = ["-D", "data", "-m", "immediate", "stop"];
            if let Err(error) = process::output(&mut as_owner(dir, &programs.join("pg_ctl"), &words)) {
                eprintln!("    the tests' PostgreSQL was not stopped: {error}");
            }
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

fn answers(url: &str) -> bool {
    process::find("psql").is_some()
        && process::succeeds_within(Command::new("psql").args([url, "-c", "SELECT 1"]), Duration::from_secs(10))
}

fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir(DEBIAN_PROGRAMS)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    versions.sort();
    let on_path = || process::find("initdb").and_then(|program| Some(program.parent()?.to_owned()));
    versions.pop().or_else(on_path)
}

fn start() -> Result<Server, String> {
    crate::install::debian(&["postgresql"], || programs().is_some())?;
    let programs = programs().ok_or("PostgreSQL's programs are not found")?;
    let dir = std::env::temp_dir().join(format!("postrider-postgres-{}", std::process::id()));
    std::fs::create_dir(&dir).map_err(|error| format!("no folder {} for PostgreSQL: {error}", dir.display()))?;
    give_away(&dir)?;
    let words = ["-D", "data", "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"];
    process::output(&mut as_owner(&dir, &programs.join("initdb"), &words))?;
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .map_err(|error| format!("no free port: {error}"))?
        .port();
    // Its data is thrown away with the tests, so nothing of it has to survive the machine.
    let settings = format!(
        "-p {port} -h 127.0.0.1 -k {} -c fsync=off -c max_connections=400 -c shared_buffers=256MB",
        dir.display()
    );
    let words = ["-D", "data", "-l", "log", "-w", "-o", &settings, "start"];
    process::output(&mut as_owner(&dir, &programs.join("pg_ctl"), &words))?;
    let server =
        Server { url: format!("postgres://postgres@127.0.0.1:{port}/postgres"), own: Some(Own { programs, dir }) };
    let since = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if since.elapsed() > START {
            return Err("PostgreSQL was started and does not answer".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(server)
}

/// PostgreSQL does not run as root: the folder belongs to whom its package made for it.
fn give_away(dir: &Path) -> Result<(), String> {
    if is_root() { process::output(Command::new("chown").arg("postgres:").arg(dir)).map(drop) } else { Ok(()) }
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn as_owner(dir: &Path, program: &Path, words: &[&str]) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.args(words).current_dir(dir);
    command
}
