//! What is looked at every ten seconds, from outside: the process, its files, its public figures.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Method;
use postrider_core::{Timestamp, Wait};
use serde::Serialize;

use super::publisher::Sent;
use crate::failure::Failure;
use crate::process;
use crate::receiver::Book;
use crate::server::Server;

/// Retention works once a minute, and what it removes may have ended some time after it was created: an outage and its backlog.
pub const RETENTION_LATE_MAX: Wait = Wait::from_secs(180);

#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Since the first message.
    pub at_s: f64,
    pub outage: Option<&'static str>,
    pub resident_kib: u64,
    pub resident_anonymous_kib: u64,
    pub open_files: u64,
    pub threads: u64,
    pub wal_bytes: u64,
    pub database_bytes: u64,
    pub waiting: u64,
    pub dead: u64,
    pub accepted: u64,
    pub refused: u64,
    pub unanswered: u64,
    pub late: u64,
    pub received: u64,
    pub received_again: u64,
    /// Since the process began.
    pub cpu_s: f64,
    pub store_commits: u64,
    /// The log still has what ought to be gone.
    pub retention_is_late: bool,
}

impl Sample {
    pub async fn take(
        server: &Server,
        data: &Path,
        (sent, book): (&Sent, &Book),
        retention: Wait,
    ) -> Result<Sample, Failure> {
        let metrics = server.metrics().await?;
        let count = |name: &str| metrics(name) as u64;
        let bytes = |name: &str| std::fs::metadata(data.join(name)).map_or(0, |file| file.len());
        Ok(Sample {
            resident_kib: process::resident_kib(server.pid)?,
            resident_anonymous_kib: process::resident_anonymous_kib(server.pid)?,
            open_files: process::open_files(server.pid)?,
            threads: process::threads(server.pid)?,
            wal_bytes: bytes("postrider.db-wal"),
            database_bytes: bytes("postrider.db"),
            waiting: count("postrider_queue_waiting"),
            dead: count("postrider_dlq_dead"),
            accepted: sent.accepted.load(Ordering::Relaxed),
            refused: sent.refused.load(Ordering::Relaxed),
            unanswered: sent.unanswered.load(Ordering::Relaxed),
            late: sent.late.load(Ordering::Relaxed),
            received: book.distinct(),
            received_again: book.again(),
            cpu_s: process::cpu(server.pid)?.as_secs_f64(),
            store_commits: count("postrider_store_commits_total"),
            retention_is_late: retention_is_late(server, retention).await?,
            ..Sample::default()
        })
    }

    pub fn line(&self, before: Option<&Sample>) -> String {
        let zero = Sample::default();
        let before = before.unwrap_or(&zero);
        let span_s = (self.at_s - before.at_s).max(0.001);
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / span_s;
        let mut line = format!(
            "{:.0} accepted/s, {:.0} received/s, {} waiting, {} dead, {:.1} MiB, {} files, {} threads, WAL {:.1} MiB, \
             database {:.0} MiB, CPU {:.2}",
            per_second(self.accepted, before.accepted),
            per_second(self.received, before.received),
            self.waiting,
            self.dead,
            self.resident_kib as f64 / 1024.0,
            self.open_files,
            self.threads,
            mib(self.wal_bytes),
            mib(self.database_bytes),
            (self.cpu_s - before.cpu_s) / span_s,
        );
        for (count, what) in [(self.refused, "refused"), (self.unanswered, "unanswered"), (self.late, "late")] {
            if count > 0 {
                line += &format!(", {count} {what}");
            }
        }
        if self.retention_is_late {
            line += ", RETENTION IS LATE";
        }
        if let Some(outage) = self.outage {
            line += &format!("; outage: {outage}");
        }
        line
    }
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

async fn retention_is_late(server: &Server, retention: Wait) -> Result<bool, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = Timestamp::from_millis(i64::try_from(now.as_millis()).unwrap_or(0));
    let before = now - retention - RETENTION_LATE_MAX;
    let path =
        format!("/api/v1/projects/default/deliveries?status=SUCCESS,DISCARDED,FAILED&created_before={before}&limit=1");
    let page = server.expect(Method::GET, &path, Bytes::new()).await?;
    Ok(page["data"].as_array().is_none_or(|rows| !rows.is_empty()))
}
