//! Part three: the embedded store, 256 messages a transaction, with fsync: the whole life of a message, and inserting alone.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Origin, Progress, Status};
use postrider_core::id::{BodyId, Cid, ConnectionId, DeliveryId, ProjectId, WorkerId};
use postrider_core::message::{HeaderList, RequestHead};
use postrider_core::{Timestamp, Wait};
use postrider_store::{
    Enqueued, Guard, NewBody, NewDelivery, Placement, Project, ProjectSettings, QueueLease, Settled, Settlement,
    SqliteOptions, SqliteStore, Store,
};

use crate::bench::Bench;
use crate::failure::Failure;
use crate::lane::process_cpu;
use crate::messages;
use crate::server::data_directory;

/// Messages a transaction.
const BATCH: u64 = 256;

pub struct StoreParts {
    pub life_cycle_us: f64,
    /// The same in bare SQL.
    pub bare_us: f64,
    pub life_cycles_per_second: f64,
    pub inserts_per_second: f64,
}

pub async fn measure(bench: &mut Bench) -> Result<StoreParts, Failure> {
    let at_most = bench.seconds(3, 1);
    let origin = bench.receiver.origin();
    bench.progress.step("parts: store, whole life cycles");
    let (life_cycle_us, life_cycles_per_second) = {
        let data = data_directory(&bench.scratch)?;
        let mut rig = Rig::open(data.path(), &origin).await?;
        rig.run(Duration::from_millis(200), true).await?;
        let before = process_cpu();
        let (messages, took) = rig.run(at_most, true).await?;
        let spent = process_cpu().saturating_sub(before);
        rig.close().await?;
        (spent.as_secs_f64() * 1e6 / messages as f64, messages as f64 / took.as_secs_f64())
    };
    bench.progress.step("parts: bare SQLite");
    let bare_us = super::bare_sqlite::life_cycle_us(data_directory(&bench.scratch)?.path(), at_most)?;
    bench.progress.step("parts: store, inserts");
    let data = data_directory(&bench.scratch)?;
    let mut rig = Rig::open(data.path(), &origin).await?;
    rig.run(Duration::from_millis(200), false).await?;
    let (messages, took) = rig.run(at_most, false).await?;
    rig.close().await?;
    Ok(StoreParts {
        life_cycle_us,
        bare_us,
        life_cycles_per_second,
        inserts_per_second: messages as f64 / took.as_secs_f64(),
    })
}

/// A store with one unordered queue, leased to us.
struct Rig {
    store: SqliteStore,
    connection: Connection,
    lease: QueueLease,
    next: u64,
}

impl Rig {
    async fn open(data: &std::path::Path, origin: &str) -> Result<Rig, Failure> {
        let store = SqliteStore::open(&data.join("bench.db"), SqliteOptions::default()).map_err(failed)?;
        let mut connection = super::client::connection(origin)?;
        let project_id = ProjectId::from_u128(77);
        connection.project_id = project_id;
        connection.id = ConnectionId::from_u128(78);
        store
            .create_project(Project {
                id: project_id,
                name: "bench".into(),
                settings: ProjectSettings::default(),
                created_at: now(),
            })
            .await
            .map_err(failed)?;
        store.create_connection(&connection).await.map_err(failed)?;
        let worker_id = WorkerId::from_u128(79);
        store.open_worker(worker_id, Wait::from_secs(3600), now()).await.map_err(failed)?;
        let taken = store.take_named_queues(worker_id, now(), vec![connection.id]).await.map_err(failed)?;
        let lease = taken.first().ok_or_else(|| Failure::new("the queue has another owner"))?.lease;
        Ok(Rig { store, connection, lease, next: 0 })
    }

    /// Messages done and how long they took. With `settled`, each is stored in flight and then settled as delivered, as it is at full load.
    async fn run(&mut self, at_most: Duration, settled: bool) -> Result<(u64, Duration), Failure> {
        let began_at = Instant::now();
        let mut messages = 0;
        while began_at.elapsed() < at_most {
            let at = now();
            let batch: Vec<NewDelivery> =
                (self.next..self.next + BATCH).map(|n| self.delivery(n, at, settled)).collect();
            let settlements =
                if settled { batch.iter().map(|new| self.settlement(new, at)).collect() } else { Vec::new() };
            self.next += BATCH;
            let stored = self.store.enqueue(batch).await.map_err(failed)?;
            if let Some(other) = stored.iter().find(|one| !matches!(one, Enqueued::Stored { .. })) {
                return Err(Failure::new(format!("the store did not store: {other:?}")));
            }
            if settled {
                let answers = self.store.settle(settlements).await.map_err(failed)?;
                if let Some(other) = answers.iter().find(|one| !matches!(one, Settled::Applied { .. })) {
                    return Err(Failure::new(format!("the store did not settle: {other:?}")));
                }
            }
            messages += BATCH;
        }
        Ok((messages, began_at.elapsed()))
    }

    fn delivery(&self, number: u64, at: Timestamp, claimed: bool) -> NewDelivery {
        // Ids as the server makes them: sorted by time, random below.
        let random = u128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) << 16;
        let accepted = Progress::accepted(at);
        NewDelivery {
            id: DeliveryId::new(at, random),
            project_id: self.connection.project_id,
            connection_id: self.connection.id,
            cid: Cid::new(at, number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            origin: Origin::Publish,
            created_at: at,
            head: RequestHead::default(),
            body: NewBody { id: BodyId::new(at, random), bytes: messages::body(number) },
            event: None,
            ladder: None,
            progress: if claimed { accepted.begun(at) } else { accepted },
            ordered: false,
            claimed_under: claimed.then_some(self.lease),
            idempotency: None,
            awaited_until: None,
        }
    }

    fn settlement(&self, new: &NewDelivery, at: Timestamp) -> Settlement {
        let mut progress = new.progress.clone();
        progress.status = Status::Success;
        progress.delivered_at = Some(at);
        progress.ended_at = Some(at);
        let mut response_headers = HeaderList::default();
        for (name, value) in [("content-type", "application/json"), ("content-length", "0")] {
            response_headers.push(name.into(), value.into()).expect("plain headers are valid");
        }
        Settlement {
            delivery_id: new.id,
            queue_id: self.lease.queue_id,
            guard: Guard::Lease(self.lease),
            progress,
            placement: Placement::Keep,
            attempt: Some(Attempt {
                number: 1,
                started_at: at,
                took: Wait::from_millis(1),
                failure: None,
                status: Some(200),
                error: None,
                response_headers,
                response_body: bytes::Bytes::new(),
                response_bytes: 0,
                incomplete: false,
            }),
            forward: None,
            edited_body: None,
            answers: None,
            health: None,
            reply: None,
        }
    }

    async fn close(self) -> Result<(), Failure> {
        self.store.close().await.map_err(failed)
    }
}

fn failed(error: postrider_store::StoreError) -> Failure {
    Failure::new(format!("the store: {error}"))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(0))
}
