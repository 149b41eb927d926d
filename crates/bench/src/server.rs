//! The release binary as a child process, and its public interface. It must not know what is measured.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::failure::Failure;
use crate::peer::{KEY, Peer};

const START_AT_MOST: Duration = Duration::from_secs(60);
const GONE_AT_MOST: Duration = Duration::from_secs(5);
const STOP_AT_MOST: Duration = Duration::from_secs(30);

pub struct Server {
    pub address: SocketAddr,
    pub pid: u32,
    /// When the process was started.
    pub started_at: Instant,
    child: Child,
    control: Mutex<Option<Peer>>,
}

/// Store work of the server so far, from its own counters.
#[derive(Clone, Copy, Debug)]
pub struct StoreWork {
    pub statements: f64,
    pub commits: f64,
}

impl Server {
    pub async fn start(binary: &Path, data: &Path) -> Result<Server, Failure> {
        Server::start_with(binary, data, &[]).await
    }

    /// With more in its environment.
    pub async fn start_with(binary: &Path, data: &Path, more: &[(&str, String)]) -> Result<Server, Failure> {
        let started_at = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .env("POSTRIDER_ADMIN_KEY", KEY)
            .env("POSTRIDER_LOG", "error")
            .envs(more.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::new(format!("cannot start {}: {error}", binary.display())))?;
        let pid = child.id().ok_or_else(|| Failure::new("the server ended at once"))?;
        let stdout = child.stdout.take().expect("stdout was asked for as a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = line.trim().strip_prefix("listening on http://") {
                    return address.parse().map_err(|_| Failure::new(format!("`{address}` is no address")));
                }
            }
            Err(Failure::new("the server ended before it listened"))
        };
        let address = tokio::time::timeout(START_AT_MOST, listening)
            .await
            .map_err(|_| Failure::new("the server does not listen after a minute"))??;
        // Read on, so that the server never blocks on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Server { address, pid, started_at, child, control: Mutex::new(None) })
    }

    pub async fn kill_nine(mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }

    pub async fn stop(mut self) -> Result<(), Failure> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid).unwrap_or(0));
        let pid = pid.ok_or_else(|| Failure::new("the server has no process id"))?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| Failure::new(format!("stopping the server: {error}")))?;
        match tokio::time::timeout(STOP_AT_MOST, self.child.wait()).await {
            Ok(ended) => {
                ended?;
                Ok(())
            }
            Err(_) => Err(Failure::new("the server does not stop within 30 s")),
        }
    }

    /// One call of the API. The connection is opened anew after an error.
    pub async fn call(&self, method: Method, path: &str, body: Bytes) -> Result<(StatusCode, Value), Failure> {
        let uri = uri(path);
        let mut control = self.control.lock().await;
        let mut peer = match control.take() {
            Some(peer) => peer,
            None => Peer::connect(self.address).await?,
        };
        let (status, answer) = peer.call(method, &uri, body).await?;
        *control = Some(peer);
        Ok((status, serde_json::from_slice(&answer).unwrap_or_else(|_| text(&answer))))
    }

    pub async fn expect(&self, method: Method, path: &str, body: Bytes) -> Result<Value, Failure> {
        let (status, answer) = self.call(method.clone(), path, body).await?;
        if status.is_success() { Ok(answer) } else { Err(Failure::new(format!("{method} {path}: {status} {answer}"))) }
    }

    /// A REST connection with its queue on; `more` are further keys.
    pub async fn create_connection(&self, name: &str, host: &str, more: Value) -> Result<(), Failure> {
        let mut written = json!({"name": name, "type": "rest", "host": host, "url_path": "/in", "use_queue": true});
        if let (Some(written), Value::Object(more)) = (written.as_object_mut(), more) {
            written.extend(more);
        }
        let path = "/api/v1/projects/default/connections";
        self.expect(Method::POST, path, written.to_string().into()).await.map(|_| ())
    }

    pub async fn pause(&self, name: &str) -> Result<(), Failure> {
        self.expect(Method::POST, &of(name, "pause"), Bytes::new()).await.map(|_| ())
    }

    pub async fn resume(&self, name: &str) -> Result<(), Failure> {
        self.expect(Method::POST, &of(name, "resume"), Bytes::new()).await.map(|_| ())
    }

    /// Whether nothing waits in any queue and nothing is under way.
    pub async fn is_drained(&self) -> Result<bool, Failure> {
        for status in ["PENDING", "PROCESSING"] {
            let path = format!("/api/v1/projects/default/deliveries?status={status}&limit=1");
            let page = self.expect(Method::GET, &path, Bytes::new()).await?;
            if page["data"].as_array().is_none_or(|data| !data.is_empty()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether any delivery is in this status.
    pub async fn has_any(&self, status: &str) -> Result<bool, Failure> {
        let path = format!("/api/v1/projects/default/deliveries?status={status}&limit=1");
        let page = self.expect(Method::GET, &path, Bytes::new()).await?;
        Ok(page["data"].as_array().is_some_and(|data| !data.is_empty()))
    }

    /// The store's counters, if the server shows them.
    pub async fn store_work(&self) -> Result<Option<StoreWork>, Failure> {
        let (status, answer) = self.call(Method::GET, "/metrics", Bytes::new()).await?;
        let Some(metrics) = answer.as_str().filter(|_| status.is_success()) else { return Ok(None) };
        let read = |name| metric(metrics, name);
        let statements = read("postrider_store_statements_total");
        Ok(statements
            .zip(read("postrider_store_commits_total"))
            .map(|(statements, commits)| StoreWork { statements, commits }))
    }

    /// A counter or gauge of `/metrics`, its labels summed up; 0 where there is none.
    pub async fn metrics(&self) -> Result<impl Fn(&str) -> f64, Failure> {
        let answer = self.expect(Method::GET, "/metrics", Bytes::new()).await?;
        let metrics = answer.as_str().unwrap_or_default().to_owned();
        Ok(move |name: &str| metric(&metrics, name).unwrap_or(0.0))
    }

    /// Whether the process has ended, and how.
    pub fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Whether the server takes batches of lines.
    pub async fn takes_batches(&self, connection: &str) -> Result<bool, Failure> {
        let mut peer = Peer::connect(self.address).await?;
        let path = uri(&of(connection, "publish/batch"));
        let status = peer.post(&path, BATCH_TYPE, Bytes::new()).await?;
        Ok(status != StatusCode::NOT_FOUND && status != StatusCode::METHOD_NOT_ALLOWED)
    }
}

impl Drop for Server {
    /// Kills the process and sees it gone, so that it takes nothing from what is measured next.
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let asked_at = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && asked_at.elapsed() < GONE_AT_MOST {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub const BATCH_TYPE: &str = "application/x-ndjson";

/// A path of the API below one connection of the default project.
pub fn of(connection: &str, verb: &str) -> String {
    format!("/api/v1/projects/default/connections/{connection}/{verb}")
}

/// The publish paths of these connections.
pub fn publish_paths(names: &[String]) -> Arc<[Uri]> {
    names.iter().map(|name| uri(&of(name, "publish"))).collect()
}

/// `from` names are made here only, from letters, digits and dashes.
pub fn uri(path: &str) -> Uri {
    Uri::try_from(path).expect("paths are made of plain letters")
}

/// `count` names with this beginning.
pub fn names(beginning: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{beginning}-{number}")).collect()
}

/// The value of a metric in the text format, its labels summed up.
fn metric(text: &str, name: &str) -> Option<f64> {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let labelled = rest.starts_with('{');
        let value = if labelled { rest.rsplit_once('}')?.1 } else { rest.strip_prefix(' ')? };
        value.split_whitespace().next()?.parse::<f64>().ok()
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

fn text(answer: &Bytes) -> Value {
    Value::String(String::from_utf8_lossy(answer).into_owned())
}

/// A data directory on the disk that holds the build, removed when it is dropped; the usual place for such may be memory, which has no fsync.
pub fn data_directory(scratch: &Path) -> Result<tempfile::TempDir, Failure> {
    std::fs::create_dir_all(scratch)?;
    Ok(tempfile::Builder::new().prefix("data-").tempdir_in(scratch)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_with_and_without_labels() {
        let text =
            "# HELP a x\na_total 3\nb_total{store=\"one\"} 2\nb_total{store=\"two\"} 5 1700000000\na_total_more 9\n";
        assert_eq!(metric(text, "a_total"), Some(3.0));
        assert_eq!(metric(text, "b_total"), Some(7.0));
        assert_eq!(metric(text, "c_total"), None);
    }
}
