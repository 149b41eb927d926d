//! Mails on their way out: a bounded queue in memory, one at a time, tried again with longer and longer pauses (P09).
//!
//! Nothing here holds up whoever posts: a full outbox or a mail server that is down is a log line. It must not know what a mail is about.

use std::collections::VecDeque;
use std::sync::Arc;

use postrider_core::readiness::Worker;
use postrider_core::{Timestamp, Wait, log};
use postrider_wire::mail::{Mail, NotMailed, is_address};
use tokio::sync::{mpsc, oneshot};

use crate::shared::Shared;

/// `mails_waiting_max`: further ones are refused and logged.
pub(crate) const WAITING_MAX: usize = 256;
/// A mail that was not taken so often is given up.
const TRIES_MAX: u32 = 12;
const LONGEST_PAUSE: Wait = Wait::from_secs(30 * 60);

/// The door to the mailing task.
pub(crate) struct Outbox(mpsc::Sender<Posted>);

/// A mail, and who wants to know what became of it.
pub(crate) struct Posted {
    mail: Mail,
    /// Told once a mail server has taken it; dropped when it is given up or the process ends.
    told: Option<oneshot::Sender<()>>,
}

impl Outbox {
    pub fn new() -> (Self, mpsc::Receiver<Posted>) {
        let (outbox, mails) = mpsc::channel(WAITING_MAX);
        (Outbox(outbox), mails)
    }
}

impl Shared {
    /// Posts a mail, if a mail server is configured and there is somebody to write to. `true`: it will be tried.
    pub fn post_mail(&self, id: String, to: Vec<String>, subject: String, text: String) -> bool {
        self.post(id, to, subject, text, None)
    }

    /// The same, to be heard of: the answer comes once a mail server has taken it, and never when it is given up. `None`: it will not be
    /// tried.
    pub fn post_mail_and_hear(
        &self,
        id: String,
        to: Vec<String>,
        subject: String,
        text: String,
    ) -> Option<oneshot::Receiver<()>> {
        let (told, hear) = oneshot::channel();
        self.post(id, to, subject, text, Some(told)).then_some(hear)
    }

    fn post(
        &self,
        id: String,
        to: Vec<String>,
        subject: String,
        text: String,
        told: Option<oneshot::Sender<()>>,
    ) -> bool {
        let to: Vec<String> = to.into_iter().filter(|address| is_address(address)).collect();
        if self.options.mailer.get().is_none() || to.is_empty() {
            return false;
        }
        let posted = self.outbox.0.try_send(Posted { mail: Mail { id, at: self.now(), to, subject, text }, told });
        if posted.is_err() {
            tracing::error!(
                event = log::MAIL_REFUSED,
                waiting_max = WAITING_MAX,
                "a mail was not taken into the outbox"
            );
        }
        posted.is_ok()
    }
}

struct Waiting {
    mail: Mail,
    told: Option<oneshot::Sender<()>>,
    tries: u32,
    due_at: Timestamp,
}

/// The mailing task.
pub(crate) async fn run(shared: Arc<Shared>, mut posted: mpsc::Receiver<Posted>) {
    let Some(mailer) = shared.options.mailer.get().cloned() else { return };
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    loop {
        shared.vitals.idle(Worker::Mailer);
        let next = waiting.iter().map(|one| one.due_at).min().unwrap_or(Timestamp::FAR_FUTURE);
        tokio::select! {
            biased;
            // What waits for its next try counts too, so the whole is bounded.
            mail = posted.recv(), if waiting.len() < WAITING_MAX => match mail {
                Some(Posted { mail, told }) => {
                    waiting.push_back(Waiting { mail, told, tries: 0, due_at: shared.now() });
                }
                None => return,
            },
            () = shared.sleep_until(next) => {}
        }
        shared.vitals.busy(Worker::Mailer);
        let now = shared.now();
        let Some(index) = waiting.iter().position(|one| one.due_at <= now) else { continue };
        let Some(mut one) = waiting.remove(index) else { continue };
        one.tries += 1;
        match mailer.mail(&one.mail).await {
            Ok(()) => {
                tracing::info!(event = log::MAIL_SENT, mail = one.mail.id, tries = one.tries, "a mail was sent");
                if let Some(told) = one.told.take() {
                    // Nobody may wait any more.
                    let _ = told.send(());
                }
            }
            Err(NotMailed::Later(detail)) if one.tries < TRIES_MAX => {
                tracing::warn!(
                    event = log::MAIL_WAITS,
                    mail = one.mail.id,
                    tries = one.tries,
                    detail,
                    "a mail waits for another try"
                );
                one.due_at = shared.now() + pause_after(one.tries, shared.options.mail_pause);
                waiting.push_back(one);
            }
            Err(NotMailed::Later(detail) | NotMailed::Never(detail)) => {
                tracing::error!(
                    event = log::MAIL_LOST,
                    mail = one.mail.id,
                    tries = one.tries,
                    detail,
                    "a mail is given up"
                );
            }
        }
    }
}

/// Twice as long each time.
fn pause_after(tries: u32, first: Wait) -> Wait {
    let factor = 1_u64.checked_shl(tries.saturating_sub(1)).unwrap_or(u64::MAX);
    Wait::from_millis(first.as_millis().saturating_mul(factor)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_half_an_hour_and_no_further() {
        let first = Wait::from_secs(30);
        let pauses: Vec<u64> = (1..TRIES_MAX).map(|tries| pause_after(tries, first).as_millis() / 1000).collect();
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1800, 1800, 1800, 1800, 1800]);
        assert_eq!(pause_after(200, first), LONGEST_PAUSE);
    }
}
