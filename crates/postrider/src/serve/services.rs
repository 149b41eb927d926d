//! `--services DIR`: a process that runs the Python services of a folder for this server's channels.
//!
//! It is started again when it ends by itself, after a pause that grows, and when a file changes: the new one has to answer before the former one is
//! told to stop, so a file with a mistake in it takes nothing away. It must not know what a service does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use postrider_core::{Secret, log};
use postrider_engine::{Engine, SystemDice};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exit::{Exit, Failed};

/// The interpreter that has the package `postrider`.
const PYTHON: &str = "POSTRIDER_PYTHON";
/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A process that has served for so many looks is well, and its next end is its first.
const WELL_AFTER_LOOKS: u32 = 30;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// From its start until it listens.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// What is under way gets so long to end at a stop; the host itself gives it 10 s.
const STOP_WITHIN: Duration = Duration::from_secs(12);
const LISTENING: &str = "listening on ";
/// Files of one folder that are watched; more are not looked at.
const FILES_MAX: usize = 10_000;

pub struct Services {
    stop: watch::Sender<bool>,
    keeper: JoinHandle<()>,
}

/// Everything that a process is started with.
struct Keeper {
    folder: PathBuf,
    /// `OLD=NEW`
    aliases: Vec<String>,
    python: OsString,
    server: String,
    key: Secret,
    token: Secret,
    engine: Engine,
}

/// A process that serves. Its standard input ends with this, and so does it.
struct Serving {
    child: Child,
    input: Option<ChildStdin>,
}

impl Services {
    /// # Errors
    /// There is no such folder.
    pub fn start(folder: &Path, aliases: &[String], server: &str, engine: &Engine) -> Result<Services, Failed> {
        if !folder.is_dir() {
            let message = format!("`--services` is `{}`: allowed is a folder that is there", folder.display());
            return Err(Failed::new(Exit::Refused, message));
        }
        let dice = SystemDice::shared();
        let keeper = Keeper {
            folder: folder.to_owned(),
            aliases: aliases.to_vec(),
            python: std::env::var_os(PYTHON).filter(|path| !path.is_empty()).unwrap_or_else(|| "python3".into()),
            server: server.to_owned(),
            key: engine.lend_key(),
            token: Secret::new(format!("{:032x}{:032x}", dice.bits(), dice.bits())),
            engine: engine.clone(),
        };
        let (stop, stopped) = watch::channel(false);
        Ok(Services { stop, keeper: tokio::spawn(keeper.keep(stopped)) })
    }

    /// Lets runs end, and waits for that.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.keeper.await;
    }
}

impl Keeper {
    async fn keep(self, mut stopped: watch::Receiver<bool>) {
        let mut pause = FIRST_PAUSE;
        let mut serving: Option<Serving> = None;
        let mut seen = files(&self.folder);
        let mut wanted = true;
        let mut looks = 0;
        while !*stopped.borrow() {
            if wanted {
                match self.begin(&mut stopped).await {
                    Ok(new) => {
                        let former = serving.replace(new);
                        looks = 0;
                        if let Some(former) = former {
                            tokio::spawn(former.end());
                        }
                    }
                    Err(why) => {
                        tracing::error!(event = log::SERVICES_NOT_STARTED, why, "the services could not be started");
                    }
                }
                wanted = false;
            }
            tokio::select! {
                biased;
                _ = stopped.changed() => break,
                status = ended(&mut serving) => {
                    tracing::warn!(event = log::SERVICES_ENDED, status, pause_seconds = pause.as_secs(), "the services ended by themselves");
                    serving = None;
                    pause_for(pause, &mut stopped).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    wanted = true;
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    looks += 1;
                    if looks >= WELL_AFTER_LOOKS {
                        pause = FIRST_PAUSE;
                    }
                    let now = files(&self.folder);
                    // A file that is being written shows again at the next look; and without a process any look may be the one that helps.
                    if now != seen {
                        seen = now;
                        wanted = true;
                    } else if serving.is_none() {
                        pause_for(pause, &mut stopped).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        wanted = true;
                    }
                }
            }
        }
        if let Some(serving) = serving {
            serving.end().await;
        }
    }

    /// A process that listens and has told what it serves.
    async fn begin(&self, stopped: &mut watch::Receiver<bool>) -> Result<Serving, String> {
        let mut child = Command::new(&self.python)
            .args(["-m", "postrider.services"])
            .arg(&self.folder)
            .args(["--listen", "127.0.0.1:0", "--log", "json", "--stop-with-stdin"])
            .args(self.aliases.iter().flat_map(|alias| ["--import-alias", alias.as_str()]))
            .env("POSTRIDER_SERVER", &self.server)
            .env("POSTRIDER_KEY", self.key.expose())
            .env("POSTRIDER_SERVICES_TOKEN", self.token.expose())
            // What the server itself was set up with is none of a service's business.
            .env_remove("POSTRIDER_ADMIN_KEY")
            .env_remove("POSTRIDER_SECRETS_KEY")
            .env_remove("POSTRIDER_SECRETS_KEY_FILE")
            .env_remove("POSTRIDER_STORE")
            .env_remove("POSTRIDER_SMTP_URL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("`{}` (`{PYTHON}`): {error}", self.python.to_string_lossy()))?;
        let input = child.stdin.take();
        let mut output = child.stdout.take().map(|output| BufReader::new(output).lines());
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(tell_lines(errors));
        }
        let listens = async {
            while let Some(line) = output.as_mut()?.next_line().await.ok()? {
                if let Some(address) = line.strip_prefix(LISTENING) {
                    return Some(address.trim().to_owned());
                }
            }
            None
        };
        let address = tokio::select! {
            biased;
            _ = stopped.changed() => return Err("the server is stopping".to_owned()),
            listens = tokio::time::timeout(READY_WITHIN, listens) => listens,
        };
        let address = match address {
            Ok(Some(address)) => address,
            Ok(None) => return Err("the process ended before it listened; its last lines say why".to_owned()),
            Err(_) => return Err(format!("the process did not listen within {} s", READY_WITHIN.as_secs())),
        };
        if let Some(mut rest) = output {
            tokio::spawn(async move { while let Ok(Some(_)) = rest.next_line().await {} });
        }
        let names = self.engine.host_services(&address, &self.token).await?;
        let services = names.join(", ");
        tracing::info!(event = log::SERVICES_STARTED, address, services, "services are served");
        Ok(Serving { child, input })
    }
}

impl Serving {
    /// Its standard input ends, so it takes nothing more and lets runs end.
    async fn end(mut self) {
        drop(self.input.take());
        // What has not ended by then is killed as this is dropped, and run again.
        let _ = tokio::time::timeout(STOP_WITHIN, self.child.wait()).await;
    }
}

/// Never, while there is no process.
async fn ended(serving: &mut Option<Serving>) -> String {
    match serving {
        None => std::future::pending().await,
        Some(serving) => match serving.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        },
    }
}

async fn pause_for(pause: Duration, stopped: &mut watch::Receiver<bool>) {
    tokio::select! {
        biased;
        _ = stopped.changed() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

/// The lines of its log, as lines of this server's log, each under the correlation id of its run.
async fn tell_lines(errors: impl AsyncRead + Unpin) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tell(&line);
    }
}

fn tell(line: &str) {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(line) else {
        // An interpreter that ends before it can say it better.
        tracing::warn!(event = log::SERVICES_WARN, line, "services");
        return;
    };
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let (logger, cid, error) = (text("logger"), text("cid"), text("error"));
    let message = text("message");
    match text("level") {
        "ERROR" | "CRITICAL" => tracing::error!(event = log::SERVICES_ERROR, logger, cid, error, "{message}"),
        "WARNING" => tracing::warn!(event = log::SERVICES_WARN, logger, cid, error, "{message}"),
        "DEBUG" => tracing::debug!(event = log::SERVICES_DEBUG, logger, cid, "{message}"),
        _ => tracing::info!(event = log::SERVICES_LOG, logger, cid, "{message}"),
    }
}

/// The Python files of a folder and of those in it, with when each was changed.
fn files(folder: &Path) -> BTreeMap<PathBuf, (Option<SystemTime>, u64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(about) = entry.metadata() else { continue };
            let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
            if about.is_dir() && !is_hidden {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "py") && found.len() < FILES_MAX {
                found.insert(path, (about.modified().ok(), about.len()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_file_of_the_folder_shows() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("shop")).unwrap();
        std::fs::create_dir(at("__pycache__")).unwrap();
        std::fs::write(at("a.py"), "1").unwrap();
        std::fs::write(at("shop/b.py"), "1").unwrap();
        std::fs::write(at("__pycache__/c.py"), "1").unwrap();
        std::fs::write(at("notes.txt"), "1").unwrap();
        let before = files(folder.path());
        assert_eq!(before.keys().collect::<Vec<_>>(), [&at("a.py"), &at("shop/b.py")]);
        std::fs::write(at("shop/b.py"), "22").unwrap();
        assert_ne!(files(folder.path()), before);
        std::fs::remove_file(at("a.py")).unwrap();
        assert_eq!(files(folder.path()).len(), 1);
    }
}
