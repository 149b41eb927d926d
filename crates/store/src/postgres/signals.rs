//! News between processes by `LISTEN` and `NOTIFY` (D47): rung after the commit, several in one, at most one every few milliseconds; heard on a
//! connection of its own. It must not know what is done about it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use futures_util::{FutureExt as _, StreamExt as _};
use postrider_core::id::{DeliveryId, QueueId, WorkerId};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::AsyncMessage;

use super::failures::Outcome;
use super::rows::Cells;
use super::work::{Context, Work};
use super::{Database, PostgresStore};
use crate::{Signal, Signals, StoreError};

/// Between two notifications of one process.
const COALESCED: Duration = Duration::from_millis(5);
/// Queues and calls named in one notification; the limit of PostgreSQL is 8000 bytes.
const NAMED_MAX: usize = 200;
/// News that wait for the listener; a listener that far behind has to look at everything anyway.
const WAITING_MAX: usize = 1024;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a transaction has to tell, once it is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub queues: BTreeSet<QueueId>,
    /// In which a caller waits for its owner's reply.
    pub calls: BTreeSet<QueueId>,
    /// Whose callers are to look.
    pub replies: BTreeSet<DeliveryId>,
    pub configuration: bool,
}

impl News {
    fn is_empty(&self) -> bool {
        self.named() == 0 && !self.configuration
    }

    fn named(&self) -> usize {
        self.queues.len() + self.calls.len() + self.replies.len()
    }
}

/// Collects what is to be told. Other processes are told of queues that a worker of this one does not own.
#[derive(Default)]
pub(super) struct Bell {
    news: Mutex<News>,
    rung: Notify,
    own_workers: Mutex<BTreeSet<WorkerId>>,
}

impl Bell {
    pub fn ring(&self, news: News) {
        if news.is_empty() {
            return;
        }
        let mut waiting = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.queues.extend(news.queues);
        waiting.calls.extend(news.calls);
        waiting.replies.extend(news.replies);
        waiting.configuration |= news.configuration;
        drop(waiting);
        self.rung.notify_one();
    }

    pub fn worker_opened(&self, id: WorkerId) {
        self.own_workers.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    pub fn worker_closed(&self, id: WorkerId) {
        self.own_workers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Its owner is a worker of this process, which is told in memory.
    pub fn is_own(&self, owner: Option<WorkerId>) -> bool {
        let own = self.own_workers.lock().unwrap_or_else(PoisonError::into_inner);
        owner.is_some_and(|owner| own.contains(&owner))
    }

    async fn next(&self) -> News {
        loop {
            let rung = self.rung.notified();
            let news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
            if !news.is_empty() {
                return news;
            }
            rung.await;
        }
    }
}

/// Tells others, as long as the store is open.
pub(super) async fn tell(context: Arc<Context>, pool: Pool, channel: String, sender: String) {
    loop {
        let news = context.bell.next().await;
        // Whoever is not told finds it by looking.
        let _ = notify(&context, &pool, &channel, &payload(&sender, &news)).await;
        tokio::time::sleep(COALESCED).await;
    }
}

async fn notify(context: &Arc<Context>, pool: &Pool, channel: &str, payload: &str) -> Outcome<()> {
    let work = Work::connect(pool, context).await?;
    work.rows("SELECT pg_notify($1, $2)", &[&channel, &payload]).await?;
    Ok(())
}

/// `SENDER c,Q,kQ,rD`: the configuration; every queue as 32 hexadecimal digits, behind a `k` where a caller waits; every call that is answered
/// behind an `r`; `*` for more than fit.
fn payload(sender: &str, news: &News) -> String {
    let mut words: Vec<String> = Vec::new();
    if news.configuration {
        words.push("c".to_owned());
    }
    if news.named() > NAMED_MAX {
        words.push("*".to_owned());
    } else {
        words.extend(news.queues.iter().map(|id| format!("{:032x}", id.as_u128())));
        words.extend(news.calls.iter().map(|id| format!("k{:032x}", id.as_u128())));
        words.extend(news.replies.iter().map(|id| format!("r{:032x}", id.as_u128())));
    }
    format!("{sender} {}", words.join(","))
}

/// What a notification says; nothing when it is our own or cannot be read.
fn heard(own: &str, payload: &str) -> Vec<Signal> {
    let Some((sender, words)) = payload.split_once(' ') else { return vec![Signal::Anything] };
    if sender == own {
        return Vec::new();
    }
    let mut signals = Vec::new();
    let (mut queues, mut calls, mut replies) = (Vec::new(), Vec::new(), Vec::new());
    for word in words.split(',') {
        let (kind, digits) = word.split_at_checked(word.len().saturating_sub(32)).unwrap_or((word, ""));
        match (kind, u128::from_str_radix(digits, 16)) {
            _ if word == "c" => signals.push(Signal::Configuration),
            ("", Ok(id)) if digits.len() == 32 => queues.push(QueueId::from_u128(id)),
            ("k", Ok(id)) => calls.push(QueueId::from_u128(id)),
            ("r", Ok(id)) => replies.push(DeliveryId::from_u128(id)),
            _ => signals.push(Signal::Anything),
        }
    }
    if !queues.is_empty() {
        signals.push(Signal::Queues(queues));
    }
    if !calls.is_empty() {
        signals.push(Signal::Calls(calls));
    }
    if !replies.is_empty() {
        signals.push(Signal::Replies(replies));
    }
    signals
}

/// Where one process hears of the others.
pub(super) struct Ear(tokio::sync::Mutex<mpsc::Receiver<Signal>>);

impl Ear {
    pub fn open() -> (mpsc::Sender<Signal>, Self) {
        let (sender, signals) = mpsc::channel(WAITING_MAX);
        (sender, Ear(tokio::sync::Mutex::new(signals)))
    }

    /// The listener ends with this.
    pub async fn close(&self) {
        // Somebody may wait for news just now, and then holds the lock.
        if let Ok(mut signals) = self.0.try_lock() {
            signals.close();
        }
    }

    async fn next(&self) -> Signal {
        match self.0.lock().await.recv().await {
            Some(signal) => signal,
            // The store is closed.
            None => std::future::pending().await,
        }
    }
}

/// Listens, and comes back when the connection is lost: then anything may have happened meanwhile.
pub(super) async fn listen(database: Database, channel: String, own: String, signals: mpsc::Sender<Signal>) {
    let mut pause = FIRST_PAUSE;
    // Processes that lost the same server do not come back all at once.
    let share = own.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 100;
    loop {
        let listened = listen_once(&database, &channel, &own, &signals).await;
        if signals.is_closed() {
            return;
        }
        pause = if listened { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        tokio::time::sleep(pause + pause * share / 200).await;
    }
}

/// Whether it listened at all. Whenever it begins to, news from before may be lost.
async fn listen_once(database: &Database, channel: &str, own: &str, signals: &mpsc::Sender<Signal>) -> bool {
    let Ok((client, mut connection)) = database.connect().await else { return false };
    let mut messages = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
    let sql = format!("LISTEN {channel}");
    let asked = client.batch_execute(&sql);
    tokio::pin!(asked);
    let mut listens = false;
    loop {
        let heard = tokio::select! {
            biased;
            begun = &mut asked, if !listens => {
                if begun.is_err() {
                    return false;
                }
                listens = true;
                vec![Signal::Anything]
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(notification))) => heard(own, notification.payload()),
                Some(Ok(_)) => Vec::new(),
                Some(Err(_)) | None => return listens,
            },
            () = signals.closed() => return true,
        };
        for signal in heard {
            if signals.send(signal).await.is_err() {
                return true;
            }
        }
    }
}

#[async_trait]
impl Signals for PostgresStore {
    async fn next_signal(&self) -> Signal {
        self.ear.next().await
    }

    async fn configuration_version(&self) -> Result<i64, StoreError> {
        self.read((), |work, ()| configuration_version(work).boxed()).await
    }
}

async fn configuration_version(work: &Work) -> Outcome<i64> {
    let version = work.first("SELECT configuration FROM version", &[], |row| Cells::of(row).take()).await?;
    Ok(version.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_by_others_only() {
        let queues: BTreeSet<QueueId> = [QueueId::from_u128(7), QueueId::from_u128(u128::MAX)].into();
        let replies: BTreeSet<DeliveryId> = [DeliveryId::from_u128(9)].into();
        let text = payload(
            "me",
            &News { queues: queues.clone(), calls: queues.clone(), replies: replies.clone(), configuration: true },
        );
        assert!(heard("me", &text).is_empty());
        let told = [
            Signal::Configuration,
            Signal::Queues(queues.iter().copied().collect()),
            Signal::Calls(queues.into_iter().collect()),
            Signal::Replies(replies.into_iter().collect()),
        ];
        assert_eq!(heard("you", &text), told);
        assert_eq!(heard("you", "me what is this"), [Signal::Anything]);
        let many = News { queues: (0..1000).map(QueueId::from_u128).collect(), ..News::default() };
        assert_eq!(heard("you", &payload("me", &many)), [Signal::Anything]);
        let most = News { replies: (0..200).map(DeliveryId::from_u128).collect(), ..News::default() };
        assert!(payload("me", &most).len() < 8000 - 36);
    }
}
