//! A stage for the engine: the reference store, a clock that tokio moves, and a remote system that plays from a script.
#![allow(dead_code, reason = "each test file uses its part of the stage")]
#![allow(clippy::disallowed_methods, reason = "this clock is the simulated one of tokio")]
#![allow(clippy::unwrap_used, reason = "a stage for tests")]

pub mod faltering;
pub mod scene;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::{ConnectionId, DeliveryId, ProjectId};
use postrider_core::message::{Message, RequestHead};
use postrider_core::outcome::Outcome;
use postrider_core::{Answer, NoAnswerKind, Reply, Timestamp, Wait};
use postrider_engine::{Clock, ConnectionRef, Engine, EngineOptions, NewConnection, Refusal, SendOptions, SystemDice};
use postrider_store::{MemoryStore, Store, StoreRead};
use postrider_wire::{Outgoing, Sender};
use serde_json::{Map, Value};

/// 2026-03-12T12:00:00Z when the test begins; from there on tokio's paused time.
pub struct PausedClock {
    began: tokio::time::Instant,
}

pub const BEGAN_MS: i64 = 1_773_316_800_000;

impl PausedClock {
    pub fn shared() -> Arc<dyn Clock> {
        Arc::new(PausedClock { began: tokio::time::Instant::now() })
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGAN_MS) + self.monotonic()
    }
    fn monotonic(&self) -> Wait {
        Wait::from(self.began.elapsed())
    }
}

/// One request as it arrived at the remote system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Since the remote system was set up.
    pub at_ms: u64,
    pub connection: String,
    pub id: DeliveryId,
    pub attempt: u32,
    pub body: String,
}

/// What the remote system does with one request.
#[derive(Clone, Debug)]
pub struct Play {
    pub after_ms: u64,
    pub reply: Reply,
}

/// A request with this body breaks the sender down.
pub const BREAKS_DOWN: &str = "break down";

type Script = Box<dyn Fn(&Outgoing, usize) -> Play + Send + Sync>;

/// The remote system.
pub struct Remote {
    began: tokio::time::Instant,
    seen: Mutex<Vec<Seen>>,
    ended: Mutex<u32>,
    at_once: Mutex<(u32, u32)>,
    script: Mutex<Script>,
}

impl Remote {
    pub fn new(script: impl Fn(&Outgoing, usize) -> Play + Send + Sync + 'static) -> Arc<Remote> {
        Arc::new(Remote {
            began: tokio::time::Instant::now(),
            seen: Mutex::default(),
            ended: Mutex::default(),
            at_once: Mutex::default(),
            script: Mutex::new(Box::new(script)),
        })
    }

    pub fn always(play: Play) -> Arc<Remote> {
        Remote::new(move |_, _| play.clone())
    }

    /// Plays these in their order, then the last one for ever.
    pub fn plays(plays: Vec<Play>) -> Arc<Remote> {
        Remote::new(move |_, index| plays[index.min(plays.len() - 1)].clone())
    }

    pub fn set(&self, script: impl Fn(&Outgoing, usize) -> Play + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Bodies in the order of their arrival.
    pub fn bodies(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.body).collect()
    }

    /// When each request arrived, in milliseconds since the beginning.
    pub fn times(&self) -> Vec<u64> {
        self.seen().into_iter().map(|seen| seen.at_ms).collect()
    }

    /// Time between one request and the next, in milliseconds.
    pub fn gaps(&self) -> Vec<u64> {
        self.times().windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Requests that were answered, as opposed to cut off.
    pub fn ended(&self) -> u32 {
        *self.ended.lock().unwrap()
    }

    pub fn most_at_once(&self) -> u32 {
        self.at_once.lock().unwrap().1
    }
}

#[async_trait]
impl Sender for Remote {
    async fn send(&self, outgoing: Outgoing) -> Reply {
        let play = {
            let mut seen = self.seen.lock().unwrap();
            let play = (self.script.lock().unwrap())(&outgoing, seen.len());
            seen.push(Seen {
                at_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap(),
                connection: outgoing.connection.name.clone(),
                id: outgoing.delivery_id,
                attempt: outgoing.attempt,
                body: String::from_utf8_lossy(&outgoing.body).into_owned(),
            });
            play
        };
        assert!(&outgoing.body[..] != BREAKS_DOWN.as_bytes(), "the sender breaks down, as the script says");
        {
            let mut at_once = self.at_once.lock().unwrap();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
        }
        tokio::time::sleep(Duration::from_millis(play.after_ms)).await;
        self.at_once.lock().unwrap().0 -= 1;
        *self.ended.lock().unwrap() += 1;
        play.reply
    }

    async fn may_reach(&self, _: &Arc<Connection>) -> Result<(), String> {
        Ok(())
    }

    fn forget(&self, _connection: ConnectionId) {}
}

pub fn status(status: u16) -> Play {
    Play { after_ms: 10, reply: answered(status, &[]) }
}

pub fn answered(status: u16, headers: &[(&str, &str)]) -> Reply {
    let mut answer = Answer { status: Some(status), body: Bytes::from_static(b"answer"), ..Answer::default() };
    for (name, value) in headers {
        answer.headers.push((*name).to_owned(), (*value).to_owned()).unwrap();
    }
    Reply::Answered(answer)
}

pub fn refused() -> Play {
    Play { after_ms: 0, reply: Reply::unanswered(NoAnswerKind::Unreachable, "connection refused") }
}

pub fn timed_out(after_ms: u64) -> Play {
    Play { after_ms, reply: Reply::unanswered(NoAnswerKind::Timeout, "no answer in time") }
}

impl Play {
    pub fn after(self, after_ms: u64) -> Play {
        Play { after_ms, ..self }
    }
}

/// An engine on the stage.
pub struct Stage {
    pub engine: Engine,
    pub store: MemoryStore,
    pub remote: Arc<Remote>,
    pub clock: Arc<dyn Clock>,
    pub project: ProjectId,
    pub options: EngineOptions,
    worked_with: Arc<dyn Store>,
    restarts: u64,
}

impl Stage {
    pub async fn set(remote: Arc<Remote>) -> Stage {
        Stage::with(remote, EngineOptions::default()).await
    }

    pub async fn with(remote: Arc<Remote>, options: EngineOptions) -> Stage {
        let store = MemoryStore::default();
        Stage::over(Arc::new(store.clone()), store, remote, options, PausedClock::shared()).await
    }

    /// `store` is what the engine works with, `memory` where its data is.
    pub async fn over(
        store: Arc<dyn Store>,
        memory: MemoryStore,
        remote: Arc<Remote>,
        options: EngineOptions,
        clock: Arc<dyn Clock>,
    ) -> Stage {
        let dice = SystemDice::seeded(7);
        let engine =
            Engine::start(Arc::clone(&store), Arc::clone(&remote) as _, Arc::clone(&clock), dice, options.clone())
                .await
                .unwrap();
        let project = engine.project("default").await.unwrap();
        Stage { engine, store: memory, remote, clock, project, options, worked_with: store, restarts: 0 }
    }

    /// A crash at this instant, and a new process over the same data.
    pub async fn crash_and_restart(&mut self) {
        self.engine.abandon();
        settle_down().await;
        let _ = self.store.reopen();
        self.restarts += 1;
        let dice = SystemDice::seeded(1000 + self.restarts);
        self.engine = Engine::start(
            Arc::clone(&self.worked_with),
            Arc::clone(&self.remote) as _,
            Arc::clone(&self.clock),
            dice,
            self.options.clone(),
        )
        .await
        .unwrap();
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Creates a REST connection from `key: value` pairs.
    pub async fn connection(&self, name: &str, settings: Value) -> Arc<Connection> {
        self.engine.create_connection(self.project, new_connection(name, settings)).await.unwrap()
    }

    pub async fn change(&self, name: &str, settings: Value) -> Arc<Connection> {
        self.engine.replace_connection(self.project, &named(name), new_connection(name, settings)).await.unwrap()
    }

    pub async fn send(&self, name: &str, body: &str) -> Outcome {
        self.try_send(name, post(body)).await.unwrap()
    }

    pub async fn try_send(&self, name: &str, message: Message) -> Result<Outcome, Refusal> {
        self.engine.send(self.project, &named(name), message, SendOptions::default()).await
    }

    /// A call in a task of its own.
    pub fn send_aside(&self, name: &str, body: &str) -> tokio::task::JoinHandle<Outcome> {
        let (engine, project, name, message) = (self.engine.clone(), self.project, named(name), post(body));
        tokio::spawn(async move { engine.send(project, &name, message, SendOptions::default()).await.unwrap() })
    }

    pub async fn publish(&self, name: &str, body: &str) -> DeliveryId {
        let outcome =
            self.engine.publish(self.project, &named(name), post(body), SendOptions::default()).await.unwrap();
        outcome.msg_id.expect("it was stored")
    }

    pub async fn delivery(&self, id: DeliveryId) -> Delivery {
        self.store.delivery(id).await.unwrap().expect("it is known")
    }

    pub async fn status(&self, id: DeliveryId) -> Status {
        self.delivery(id).await.progress.status
    }

    pub async fn pause(&self, name: &str, paused: bool) {
        self.engine.set_paused(self.project, &named(name), paused).await.unwrap();
    }

    /// Oracles that hold at every instant: nothing unaccounted for, attempts numbered without gaps.
    pub async fn check(&self) {
        let counts = self.store.counts(None).await.unwrap();
        assert!(counts.is_balanced(), "{counts:?}");
    }
}

pub fn named(name: &str) -> ConnectionRef {
    ConnectionRef { name: name.to_owned(), kind: None }
}

pub fn new_connection(name: &str, settings: Value) -> NewConnection {
    let mut written: Map<String, Value> = settings.as_object().cloned().unwrap_or_default();
    written.entry("host").or_insert_with(|| Value::from("http://remote.example"));
    written.entry("url_path").or_insert_with(|| Value::from("/in"));
    NewConnection { name: name.to_owned(), kind: ConnectionKind::Rest, written }
}

pub fn post(body: &str) -> Message {
    Message { head: RequestHead::default(), body: Bytes::copy_from_slice(body.as_bytes()) }
}

pub fn get() -> Message {
    Message { head: RequestHead { method: "GET".parse().unwrap(), ..RequestHead::default() }, body: Bytes::new() }
}

/// Lets every task that can go on do so, without moving time.
pub async fn settle_down() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Moves time.
pub async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    settle_down().await;
}
