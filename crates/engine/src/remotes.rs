//! Tells the log when a remote system goes down and when it is back. It must not know what follows for a delivery.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::id::ConnectionId;
use postrider_core::remote_news::{News, Remote, Sign};
use postrider_core::{Timestamp, log};

/// Those of which anything is known; a remote system that is well is not among them for long.
#[derive(Default)]
pub(crate) struct Remotes(Mutex<BTreeMap<ConnectionId, Remote>>);

impl Remotes {
    /// Takes note of an attempt, and logs what it gives cause to.
    pub fn attempted(&self, connection: &Connection, attempt: &Attempt, now: Timestamp) {
        let sign = Sign::of(attempt.failure, attempt.status);
        let Some(news) = self.note(connection.id, sign, now) else { return };
        let (name, project) = (connection.name.as_str(), connection.project_id);
        match news {
            News::Failing => {
                let failure = attempt.failure.map(postrider_core::Failure::as_str);
                tracing::warn!(
                    event = log::REMOTE_FAILING, connection = name, %project, failure, status = attempt.status,
                    detail = attempt.error, "a remote system fails"
                );
            }
            News::Back { failures, lasted } => {
                let seconds = lasted.as_millis() / 1000;
                tracing::info!(
                    event = log::REMOTE_BACK, connection = name, %project, failures, seconds, "a remote system answers again"
                );
            }
        }
    }

    fn note(&self, id: ConnectionId, sign: Sign, now: Timestamp) -> Option<News> {
        let mut remotes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sign == Sign::Well && !remotes.contains_key(&id) {
            return None;
        }
        let remote = remotes.entry(id).or_default();
        let news = remote.attempted(sign, now);
        if remote.is_forgettable(now) {
            remotes.remove(&id);
        }
        news
    }
}
