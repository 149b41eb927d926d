//! What callers and operators do: random operations, each entered in the ledger as far as it was acknowledged.
//!
//! This module must not look into the store; it knows what a caller knows.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use postrider_core::decide::ByHand;
use postrider_core::delivery::Status;
use postrider_core::id::{DeliveryId, EndpointId, ProjectId};
use postrider_core::job::{JobAct, JobControl, JobState};
use postrider_core::message::{Message, Method, RequestHead};
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};
use postrider_engine::{Clock as _, ConnectionRef, Engine, JobOrder, JobTarget, NewConnection, SendOptions};
use postrider_store::{DeliveryFilter, Idempotency, PageRequest};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::clock::SimClock;
use crate::oracle::Oracle;
use crate::plan::{ConnectionPlan, Plan};

pub struct Workload {
    pub left: u32,
    rng: StdRng,
    /// For events, beside all else.
    side: StdRng,
    next_body: u64,
    plan: Plan,
    oracle: Arc<Oracle>,
    clock: Arc<SimClock>,
}

impl Workload {
    pub fn new(plan: Plan, rng: StdRng, oracle: Arc<Oracle>, clock: Arc<SimClock>) -> Self {
        let side = StdRng::seed_from_u64(plan.seed ^ 0x4556_454E);
        Workload { rng, side, next_body: 0, left: plan.operations, plan, oracle, clock }
    }

    pub async fn set_up(&self, engine: &Engine, project: ProjectId) {
        for connection in &self.plan.connections {
            if let Err(refusal) = engine.create_connection(project, as_new(connection)).await {
                self.oracle.report(0, format!("the plan's connection was refused: {refusal}"));
            }
        }
        self.plan.hooks.set_up(engine, project, &self.oracle).await;
        let Ok(topic) = TopicName::new("undeliverable") else { return };
        if let Err(refusal) = engine.create_topic(project, topic, String::new(), Wait::from_secs(7 * 86_400)).await {
            self.oracle.report(0, format!("the plan's topic was refused: {refusal}"));
        }
    }

    /// One operation, started; calls go on beside the next ones.
    pub async fn step(&mut self, engines: &[Engine], project: ProjectId) {
        self.left -= 1;
        let gap = if self.rng.random_bool(0.5) { 0 } else { self.rng.random_range(0..4_000) };
        tokio::time::sleep(Duration::from_millis(gap)).await;
        let engine = &engines[self.rng.random_range(0..engines.len())];
        self.tell(engine, project);
        // What one worker changes in the settings, another learns only when it starts.
        let alone = engines.len() == 1;
        match self.rng.random_range(0..100) {
            0..40 => self.publish(engine, project),
            40..68 => self.send(engine, project),
            68..72 => self.send_with_key(engine, project),
            72..80 => self.by_hand(engine, project),
            80..83 => self.job(engine, project),
            83..87 => self.edit(engine, project),
            87..91 if alone => self.pause_for_a_while(engine, project),
            91..94 if alone => self.change_settings(engine, project).await,
            98..100 if alone => self.switch_on(engine, project),
            94..96 if self.plan.clock_jumps => {
                let jump = self.rng.random_range(-60_000..60_000);
                self.clock.jump(jump);
            }
            _ => tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..30_000))).await,
        }
    }

    /// Some events, each for one endpoint.
    fn tell(&mut self, engine: &Engine, project: ProjectId) {
        for _ in 0..3 {
            self.next_body += 1;
            let Some((index, event)) = self.plan.hooks.event(self.next_body, &mut self.side) else { continue };
            let body = event.body.clone();
            self.oracle.ledger().hand_in(body.clone(), self.plan.connections.len() + index);
            let (engine, oracle) = (engine.clone(), self.oracle.clone());
            tokio::spawn(async move {
                match engine.publish_event(project, event).await {
                    Ok(published) if published.deliveries == 1 => {
                        oracle.ledger().told.insert(body);
                    }
                    Ok(published) => {
                        oracle.report(1, format!("{} made {} deliveries", published.id, published.deliveries));
                    }
                    Err(refusal) => oracle.refused(&refusal, &body),
                }
            });
        }
    }

    fn some_connection(&mut self) -> (usize, ConnectionRef) {
        let index = self.rng.random_range(0..self.plan.connections.len());
        (index, ConnectionRef { name: self.plan.connections[index].name.clone(), kind: None })
    }

    fn has_queue(&self, index: usize) -> bool {
        self.plan.connections[index].settings.get("use_queue").and_then(Value::as_bool).unwrap_or(false)
    }

    fn new_body(&mut self) -> Bytes {
        self.next_body += 1;
        Bytes::from(format!("body {}", self.next_body))
    }

    fn publish(&mut self, engine: &Engine, project: ProjectId) {
        let (index, connection) = self.some_connection();
        let body = self.new_body();
        self.oracle.ledger().hand_in(body.clone(), index);
        let message = Message { head: RequestHead::default(), body: body.clone() };
        let (engine, oracle) = (engine.clone(), self.oracle.clone());
        tokio::spawn(async move {
            match engine.publish(project, &connection, message, SendOptions::default()).await {
                Ok(outcome) => oracle.told(outcome, &body, true).await,
                Err(refusal) => oracle.refused(&refusal, &body),
            }
        });
    }

    fn send(&mut self, engine: &Engine, project: ProjectId) {
        let (index, connection) = self.some_connection();
        let body = self.new_body();
        self.oracle.ledger().hand_in(body.clone(), index);
        let method = if self.rng.random_bool(0.1) { Method::GET } else { Method::POST };
        let durable = self.has_queue(index) && !method.only_reads();
        let message = Message { head: RequestHead { method, ..RequestHead::default() }, body: body.clone() };
        // One in ten hangs up early.
        let leaves = self.rng.random_bool(0.1);
        let patience = Duration::from_millis(if leaves { self.rng.random_range(0..2_000) } else { 3_600_000 });
        let timeout_ms = self.plan.connections[index].timeout_ms();
        let (attempts_max, waits_ms) =
            if self.has_queue(index) { (1, 0) } else { self.plan.connections[index].call_bounds() };
        let (engine, oracle, clock) = (engine.clone(), self.oracle.clone(), self.clock.clone());
        tokio::spawn(async move {
            let began = clock.monotonic();
            let call = engine.send(project, &connection, message, SendOptions::default());
            match tokio::time::timeout(patience, call).await {
                Ok(Ok(outcome)) => {
                    oracle.check_patience(clock.monotonic().saturating_sub(began), timeout_ms, attempts_max, waits_ms);
                    oracle.told(outcome, &body, durable).await;
                }
                Ok(Err(refusal)) => oracle.refused(&refusal, &body),
                Err(_) => {}
            }
        });
    }

    /// The same request under the same key, twice at once or again and again, or another one under a used key (oracle 6).
    fn send_with_key(&mut self, engine: &Engine, project: ProjectId) {
        let index = self.rng.random_range(0..self.plan.connections.len());
        // Queue-off calls keep no key before their attempt.
        if !self.has_queue(index) {
            return;
        }
        let key = self.rng.random_range(0..3_u8);
        let body = Bytes::from(format!("keyed {index} {key}"));
        let differs = self.rng.random_bool(0.2);
        let times = if self.rng.random_bool(0.3) { 2 } else { 1 };
        for _ in 0..times {
            let connection = ConnectionRef { name: self.plan.connections[index].name.clone(), kind: None };
            let sent = if differs { self.new_body() } else { body.clone() };
            self.oracle.ledger().hand_in(sent.clone(), index);
            self.oracle.ledger().keys.entry(body.clone()).or_default();
            let mut key_hash = [0; 32];
            key_hash[..2].copy_from_slice(&[index as u8 + 1, key]);
            let idempotency = Idempotency {
                key_hash,
                request_hash: [u8::from(differs); 32],
                ends_at: Timestamp::from_millis(self.clock.now().as_millis() + 86_400_000),
            };
            let message = Message { head: RequestHead::default(), body: sent.clone() };
            let options = SendOptions { idempotency: Some(idempotency), ..SendOptions::default() };
            let calls = self.rng.random_bool(0.5);
            let (engine, oracle, key) = (engine.clone(), self.oracle.clone(), body.clone());
            tokio::spawn(async move {
                let result = if calls {
                    engine.send(project, &connection, message, options).await
                } else {
                    engine.publish(project, &connection, message, options).await
                };
                match result {
                    Ok(outcome)
                        if differs && outcome.msg_id.is_some_and(|id| oracle.ledger().keys[&key].contains(&id)) =>
                    {
                        oracle.report(6, format!("another request under a used key was answered {:?}", outcome.msg_id));
                    }
                    // The other request came first: the key is its own from now on.
                    Ok(outcome) if differs => {
                        let _ = outcome;
                    }
                    Ok(outcome) => {
                        oracle.told_for_key(&key, &outcome);
                        oracle.told(outcome, &sent, true).await;
                    }
                    Err(refusal) => oracle.refused(&refusal, &sent),
                }
            });
        }
    }

    fn some_delivery(&mut self) -> Option<DeliveryId> {
        let count = self.oracle.ledger().acknowledged.len();
        let index = if count == 0 { return None } else { self.rng.random_range(0..count) };
        self.oracle.ledger().acknowledged.keys().nth(index).copied()
    }

    fn by_hand(&mut self, engine: &Engine, project: ProjectId) {
        let Some(id) = self.some_delivery() else { return };
        let acts = [ByHand::Retry, ByHand::Resend, ByHand::Discard, ByHand::SetAside, ByHand::AttemptNow];
        let act = acts[self.rng.random_range(0..acts.len())];
        // Entered before it is asked for: its effect may come without its answer.
        self.oracle.ledger().touched.insert(id);
        if matches!(act, ByHand::Retry | ByHand::Resend) {
            self.oracle.ledger().reopened.insert(id);
        }
        let (engine, oracle) = (engine.clone(), self.oracle.clone());
        tokio::spawn(async move {
            if engine.by_hand(project, id, act).await.is_ok() && act == ByHand::Discard {
                oracle.ledger().discarded.insert(id);
            }
        });
    }

    /// One act over many, by filter or by ids; sometimes held for a while, or called off.
    fn job(&mut self, engine: &Engine, project: ProjectId) {
        let Ok(topic) = TopicName::new("undeliverable") else { return };
        let acts = [
            JobAct::Retry,
            JobAct::Resend,
            JobAct::Discard,
            JobAct::SetAside,
            JobAct::Forward { topic, keep_header: true },
        ];
        let act = acts[self.rng.random_range(0..acts.len())].clone();
        let target = if self.rng.random_bool(0.3) {
            let some = (0..self.rng.random_range(1..6)).filter_map(|_| self.some_delivery());
            JobTarget::Ids(some.collect())
        } else {
            let everything = Status::ALL.to_vec();
            let statuses = if self.rng.random_bool(0.2) { everything } else { Vec::new() };
            JobTarget::Filter(Box::new(DeliveryFilter { statuses, ..DeliveryFilter::default() }))
        };
        let (then, pause_ms) = (self.rng.random_range(0..10), self.rng.random_range(0..50));
        let engine = engine.clone();
        tokio::spawn(async move {
            let order = JobOrder { act, target };
            let Ok(job) = engine.create_job(project, order).await else { return };
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            match then {
                0 => drop(engine.control_job(project, job.id, JobControl::Cancel).await),
                1 | 2 => {
                    let _ = engine.control_job(project, job.id, JobControl::Pause).await;
                    tokio::time::sleep(Duration::from_millis(pause_ms * 100)).await;
                    let _ = engine.control_job(project, job.id, JobControl::Resume).await;
                }
                _ => {}
            }
        });
    }

    /// Whoever paused a job may have crashed.
    pub async fn resume_jobs(&self, engine: &Engine, project: ProjectId) {
        let mut cursor = None;
        loop {
            let Ok(page) = self.oracle.store().jobs(project, PageRequest { limit: 100, cursor }).await else { return };
            for job in page.items.into_iter().filter(|job| job.state == JobState::Paused) {
                if let Err(refusal) = engine.control_job(project, job.id, JobControl::Resume).await {
                    self.oracle.report(10, format!("{} cannot be resumed: {refusal}", job.id));
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return;
            }
        }
    }

    fn edit(&mut self, engine: &Engine, project: ProjectId) {
        let Some(id) = self.some_delivery() else { return };
        let body = self.new_body();
        self.oracle.ledger().edits.entry(id).or_default().insert(body.clone());
        let engine = engine.clone();
        tokio::spawn(async move {
            let _ = engine.edit_body(project, id, body).await;
        });
    }

    fn pause_for_a_while(&mut self, engine: &Engine, project: ProjectId) {
        let (_, connection) = self.some_connection();
        let length = Duration::from_millis(self.rng.random_range(100..20_000));
        let engine = engine.clone();
        tokio::spawn(async move {
            if engine.set_paused(project, &connection, true).await.is_ok() {
                tokio::time::sleep(length).await;
                let _ = engine.set_paused(project, &connection, false).await;
            }
        });
    }

    /// Whoever mended an endpoint switches it on.
    fn switch_on(&mut self, engine: &Engine, project: ProjectId) {
        let endpoints = engine.endpoints(project);
        if endpoints.is_empty() {
            return;
        }
        let id = EndpointId::of(endpoints[self.rng.random_range(0..endpoints.len())].id);
        let engine = engine.clone();
        tokio::spawn(async move {
            let _ = engine.enable_endpoint(project, id).await;
        });
    }

    /// More retries, another name, the queue or the order on or off.
    async fn change_settings(&mut self, engine: &Engine, project: ProjectId) {
        let index = self.rng.random_range(0..self.plan.connections.len());
        let before = self.plan.connections[index].clone();
        let mut after = before.clone();
        let flag = |name: &str, normal: bool| before.settings.get(name).and_then(Value::as_bool).unwrap_or(normal);
        match self.rng.random_range(0..5) {
            // Only ever more, so that the bound on attempts stays simple.
            0 | 1 if !before.has_ladder() => {
                let known = after.settings.get("max_retries").and_then(Value::as_i64).unwrap_or(0);
                let retries = self.rng.random_range(0..=4);
                after.settings.insert("max_retries".to_owned(), json!(known.max(retries)));
            }
            3 => {
                after.settings.insert("use_queue".to_owned(), json!(!flag("use_queue", false)));
            }
            4 => {
                after.settings.insert("ordered".to_owned(), json!(!flag("ordered", true)));
                after.settings.remove("concurrency");
            }
            _ => after.name = format!("{}r", after.name),
        }
        let wanted = ConnectionRef { name: before.name.clone(), kind: None };
        // Those who called before find the former settings.
        tokio::time::sleep(Duration::from_millis(1)).await;
        // The store's faults may refuse it.
        if engine.replace_connection(project, &wanted, as_new(&after)).await.is_ok() {
            self.plan.connections[index] = after;
        }
    }

    /// Every connection is active and unpaused, so that oracle 7 can be held against it.
    pub async fn resume_all(&self, engine: &Engine, project: ProjectId) {
        let Ok(known) = self.oracle.store().all_connections().await else { return };
        for connection in known {
            let wanted = ConnectionRef { name: connection.name.clone(), kind: None };
            if let Err(refusal) = engine.set_paused(project, &wanted, false).await {
                self.oracle.report(7, format!("{} cannot be resumed: {refusal}", connection.name));
            }
        }
    }
}

impl ConnectionPlan {
    fn timeout_ms(&self) -> u64 {
        let timeout_s = self.settings.get("timeout").or_else(|| self.settings.get("timeout_seconds"));
        timeout_s.and_then(Value::as_u64).unwrap_or(60) * 1000
    }

    /// The attempts and all waits of one call together, at most, in milliseconds, with the queue off.
    fn call_bounds(&self) -> (u64, u64) {
        if !self.has_ladder() {
            // Z03: the default total, and a `Retry-After` that just fits.
            return (5, 61_000);
        }
        let of = |name: &str| self.settings.get(name).and_then(Value::as_u64);
        let attempts_max = of("max_attempts").unwrap_or(1);
        // The longest rung at the top of its jitter, or a `Retry-After` of 30 s.
        (attempts_max, attempts_max * 30_100)
    }

    fn has_ladder(&self) -> bool {
        self.settings.contains_key("retry_delays")
    }
}

fn as_new(connection: &ConnectionPlan) -> NewConnection {
    NewConnection { name: connection.name.clone(), kind: connection.kind, written: connection.settings.clone() }
}
