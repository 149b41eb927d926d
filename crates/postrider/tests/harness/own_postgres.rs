//! A PostgreSQL server of the test's own, which it may stop, cut off, fill up and freeze. Gone when it is dropped.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where Debian keeps the programs of each version.
const DEBIAN_PROGRAMS: &str = "/usr/lib/postgresql";

pub struct OwnPostgres {
    programs: PathBuf,
    dir: tempfile::TempDir,
    pub port: u16,
}

impl OwnPostgres {
    /// Each of `settings` is `name=value`, as after `-c`.
    pub fn start(settings: &[&str]) -> OwnPostgres {
        let made = OwnPostgres::make();
        made.configure(settings);
        made.start_again();
        made
    }

    /// Initialised, and not yet started.
    pub fn make() -> OwnPostgres {
        let programs =
            programs().expect("PostgreSQL's own programs (initdb, pg_ctl), of the Debian package postgresql");
        let dir = tempfile::tempdir().unwrap();
        if is_root() {
            // It does not run as root: the folder belongs to whom its package made for it.
            run(Command::new("chown").arg("postgres:").arg(dir.path()));
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let made = OwnPostgres { programs, dir, port };
        made.tool("initdb", &["-D", "data", "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"]);
        // Its data is thrown away with the test, so nothing of it has to survive the machine.
        made.configure(&["fsync=off", "max_connections=60", "shared_buffers=32MB", "listen_addresses=127.0.0.1"]);
        made.configure(&[&format!("port={port}"), &format!("unix_socket_directories={}", made.path().display())]);
        made
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The server's data directory, with its settings.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub fn configure(&self, settings: &[&str]) {
        use std::io::Write;
        let mut file = std::fs::File::options().append(true).open(self.data().join("postgresql.conf")).unwrap();
        for setting in settings {
            let (name, value) = setting.split_once('=').unwrap();
            writeln!(file, "{name} = '{value}'").unwrap();
        }
    }

    pub fn start_again(&self) {
        self.tool("pg_ctl", &["-D", "data", "-l", "log", "-w", "start"]);
    }

    /// `fast` ends all sessions, `immediate` is a crash.
    pub fn stop(&self, how: &str) {
        self.tool("pg_ctl", &["-D", "data", "-w", "-m", how, "stop"]);
    }

    /// Over TCP.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The same over another port, behind which this server is.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    fn psql(&self, sql: &str) -> Command {
        let mut command = Command::new("psql");
        command.args(["--quiet", "--no-psqlrc", "-At", "-v", "ON_ERROR_STOP=1", &self.url(), "-c", sql]);
        command
    }

    /// What a statement gives, as text.
    pub fn ask(&self, sql: &str) -> String {
        String::from_utf8_lossy(&run(&mut self.psql(sql)).stdout).trim().to_owned()
    }

    /// A session that does this and then ends; dropping it ends it now.
    pub fn session(&self, sql: &str) -> Session {
        let mut command = tokio::process::Command::from(self.psql(sql));
        Session(command.kill_on_drop(true).stdout(std::process::Stdio::null()).spawn().unwrap())
    }

    fn tool(&self, program: &str, words: &[&str]) {
        run(self.as_owner(&self.programs.join(program)).args(words));
    }

    fn as_owner(&self, program: &Path) -> Command {
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        // What it starts goes on after it: a pipe would be held open.
        command.current_dir(self.path()).env("LC_ALL", "C.UTF-8");
        command
    }

    /// A file of the server's, which only it may read.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres:").arg(&path));
        }
        path
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        let mut stopping = self.as_owner(&self.programs.join("pg_ctl"));
        let _ = stopping.args(["-D", "data", "-w", "-m", "immediate", "stop"]).output();
    }
}

/// A client's session; see `OwnPostgres::session`.
pub struct Session(tokio::process::Child);

impl Session {
    pub async fn end(mut self) {
        self.0.kill().await.unwrap();
    }
}

fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir(DEBIAN_PROGRAMS)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions.pop().or_else(|| std::env::split_paths(&path).find(|bin| bin.join("initdb").exists()))
}

fn is_root() -> bool {
    run(Command::new("id").arg("-u")).stdout == b"0\n"
}

fn run(command: &mut Command) -> Output {
    use std::process::Stdio;
    // A server that is started keeps what it is given, so its standard error goes nowhere that is waited for.
    let log = tempfile::tempfile().unwrap();
    let child = command.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(Stdio::piped());
    let output = if command_starts_a_server(child) {
        let status = child.stdout(log.try_clone().unwrap()).status().unwrap();
        Output { status, stdout: Vec::new(), stderr: Vec::new() }
    } else {
        child.spawn().unwrap().wait_with_output().unwrap()
    };
    assert!(output.status.success(), "{command:?}: {}", said(log));
    output
}

fn command_starts_a_server(command: &Command) -> bool {
    command.get_args().any(|word| word == "start")
}

fn said(mut log: std::fs::File) -> String {
    use std::io::{Read, Seek};
    let mut text = String::new();
    log.rewind().unwrap();
    let _ = log.read_to_string(&mut text);
    text
}
