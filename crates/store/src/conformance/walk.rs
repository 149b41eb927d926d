//! A random walk over the verbs, with what must hold at every stop: nothing unaccounted for, counters exact, no gap in the attempts, no
//! body lost or left behind. The walk is seeded, so a failure repeats. It must not look into a store but through the contract.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::BodyId;

use super::TestStore;
use super::fixture::*;
use crate::*;

const STEPS: u32 = 150;
const STEPS_BETWEEN_CHECKS: u32 = 10;

/// Oracle 1, oracle 4 and D01, along four walks.
pub async fn z13_a_random_walk_keeps_the_books(test: &mut dyn TestStore) {
    for seed in 1..=4 {
        let store = test.store();
        let project_name = format!("walk {seed}");
        let world = World::named(&*store, seed, &project_name).await;
        let mut walk = Walk {
            connections: vec![world.connection("ordered", true).await, world.connection("unordered", false).await],
            topic: world.topic("walk").await,
            dice: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed),
            now: 1000,
            bodies: BTreeMap::new(),
            leases: BTreeMap::new(),
        };
        let mut last_id = world.last_id();
        for step in 1..=STEPS {
            let is_kill = walk.roll(25) == 0;
            if is_kill {
                test.reopen().await;
                walk.leases.clear();
            }
            let store = test.store();
            let world = World::resumed(&*store, walk.connections[0].project_id, last_id);
            walk.now += 7;
            walk.step(&world).await;
            if step % STEPS_BETWEEN_CHECKS == 0 {
                walk.check(&world).await;
            }
            last_id = world.last_id();
        }
    }
}

struct Walk {
    connections: Vec<Connection>,
    topic: Topic,
    dice: u64,
    now: i64,
    /// Every body ever handed in, with its bytes.
    bodies: BTreeMap<BodyId, Bytes>,
    /// By index of the connection.
    leases: BTreeMap<usize, QueueLease>,
}

impl Walk {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        usize::try_from(self.dice % sides as u64).unwrap()
    }

    async fn step(&mut self, world: &World<'_>) {
        let index = self.roll(self.connections.len());
        match self.roll(10) {
            0..=2 => self.enqueue(world, index).await,
            3..=5 => self.work(world, index).await,
            6..=7 => self.by_hand(world).await,
            8 => self.let_go(world, index).await,
            _ => {
                let before = at(self.now - 300);
                world.store.prune(before, before, 3).await.unwrap();
            }
        }
    }

    async fn enqueue(&mut self, world: &World<'_>, index: usize) {
        let connection = self.connections[index].clone();
        let shared = world.body(&self.now.to_be_bytes());
        let mut batch = Vec::new();
        for _ in 0..=self.roll(4) {
            let mut new = world.fresh(&connection, self.now);
            if self.roll(2) == 0 {
                new.body = shared.clone();
            }
            if self.roll(3) == 0 {
                new.claimed_under = self.leases.get(&index).copied();
                new.progress =
                    if new.claimed_under.is_some() { new.progress.begun(at(self.now)) } else { new.progress };
            }
            self.bodies.insert(new.body.id, new.body.bytes.clone());
            batch.push(new);
        }
        world.store.enqueue(batch).await.unwrap();
    }

    /// The owner makes attempts: first those that a former owner left, then some of what it loads or claims.
    async fn work(&mut self, world: &World<'_>, index: usize) {
        let connection = self.connections[index].clone();
        let lease = match self.leases.get(&index) {
            Some(lease) => *lease,
            None => world.owner(&connection, self.now).await,
        };
        self.leases.insert(index, lease);
        let limit = WindowLimit { deliveries_max: 3, bytes_max: 64 };
        let mut taken = world.store.claimed_by_former_owner(lease, 10).await.unwrap();
        let window = if connection.spec.policy.queue.ordered {
            world.store.load(lease, None, limit).await.unwrap()
        } else {
            world.store.claim(lease, at(self.now), limit).await.unwrap()
        };
        for loaded in window {
            assert_eq!(Some(&loaded.body), self.bodies.get(&loaded.delivery.body_id), "oracle 8");
            taken.push(loaded.delivery);
        }
        let mut batch = Vec::new();
        for delivery in taken {
            // One in six stays claimed, as if its attempt went on.
            let ends = [Status::Success, Status::Pending, Status::Pending, Status::Dlq, Status::Failed];
            if let Some(end) = ends.get(self.roll(6)) {
                let mut decision = world.attempt_decision(delivery.id, lease, *end).await;
                decision.progress = ended(decision.progress, *end, at(self.now));
                decision.progress.due_at = at(self.now + 20);
                batch.push(decision);
            }
        }
        for settled in world.store.settle(batch).await.unwrap() {
            assert!(matches!(settled, Settled::Applied { .. }), "{settled:?}");
        }
    }

    /// A person changes some delivery, with the right version or with an old one.
    async fn by_hand(&mut self, world: &World<'_>) {
        let deliveries = all_deliveries(world).await;
        if deliveries.is_empty() {
            return;
        }
        let delivery = &deliveries[self.roll(deliveries.len())];
        if delivery.progress.status == Status::Processing {
            return;
        }
        let end = [Status::Pending, Status::Discarded, Status::Forwarded, Status::Dlq][self.roll(4)];
        let version = delivery.version - u32::from(self.roll(5) == 0 && delivery.version > 1);
        let progress = ended(delivery.progress.clone(), end, at(self.now));
        let mut decision = world.decision(delivery.id, Guard::Version(version), progress).await;
        decision.placement = if self.roll(2) == 0 { Placement::Tail } else { Placement::Keep };
        decision.forward = (end == Status::Forwarded).then(|| world.draft(&self.topic, self.now).into());
        if self.roll(3) == 0 {
            let edited = world.body(format!("edited at {}", self.now).as_bytes());
            self.bodies.insert(edited.id, edited.bytes.clone());
            decision.edited_body = Some(edited);
        }
        let settled = world.settle(decision).await;
        let is_owned = delivery.progress.status.is_waiting()
            && self.leases.keys().any(|index| self.connections[*index].id == delivery.connection_id);
        let may_apply = version == delivery.version && !is_owned;
        assert_eq!(matches!(settled, Settled::Applied { .. }), may_apply, "{settled:?}");
    }

    async fn let_go(&mut self, world: &World<'_>, index: usize) {
        if let Some(lease) = self.leases.remove(&index) {
            world.store.close_worker(lease.worker_id).await.unwrap();
        }
    }

    async fn check(&self, world: &World<'_>) {
        let store = world.store;
        let deliveries = all_deliveries(world).await;
        assert!(store.counts(None).await.unwrap().is_balanced());
        for connection in &self.connections {
            let counts = store.counts(Some(connection.id)).await.unwrap();
            assert!(counts.is_balanced(), "{counts:?}");
            let waiting: Vec<&Delivery> = deliveries
                .iter()
                .filter(|delivery| delivery.connection_id == connection.id && delivery.progress.status.is_waiting())
                .collect();
            let summary = world.summary(connection).await;
            assert_eq!(summary.waiting, waiting.len() as u64);
            assert_eq!(summary.waiting, counts.pending + counts.processing);
            assert_eq!(summary.waiting_bytes, waiting.iter().map(|delivery| delivery.body_bytes).sum::<u64>());
            assert_eq!(summary.dead, counts.dlq);
            assert!(waiting.iter().all(|delivery| delivery.position.is_some()));
            let places: BTreeSet<_> = waiting.iter().map(|delivery| delivery.position).collect();
            assert_eq!(places.len(), waiting.len(), "no two in one place");
            assert_eq!(world.line(connection).await.len(), waiting.len());
        }
        for delivery in &deliveries {
            let numbers: Vec<u32> = store.attempts(delivery.id).await.unwrap().iter().map(|a| a.number).collect();
            let ended = delivery.progress.attempts - u32::from(delivery.progress.status == Status::Processing);
            assert_eq!(numbers, (1..=ended).collect::<Vec<u32>>(), "{:?}", delivery.progress.status);
        }
        self.check_bodies(world, &deliveries).await;
    }

    async fn check_bodies(&self, world: &World<'_>, deliveries: &[Delivery]) {
        let mut used: BTreeSet<BodyId> = BTreeSet::new();
        for delivery in deliveries {
            used.insert(delivery.body_id);
            used.extend(delivery.original_body_id);
        }
        let messages = world.store.topic_messages(&self.topic, FIRST_PAGE).await.unwrap().items;
        let forwarded: BTreeSet<Bytes> = messages.into_iter().map(|message| message.body).collect();
        for (id, bytes) in &self.bodies {
            let found = world.store.body(*id).await.unwrap();
            if used.contains(id) {
                assert_eq!(found.as_ref(), Some(bytes), "a body is lost");
            } else {
                assert!(found.is_none() || forwarded.contains(bytes), "the body {id} is left behind");
            }
        }
    }
}

async fn all_deliveries(world: &World<'_>) -> Vec<Delivery> {
    let filter = DeliveryFilter { project_id: Some(world.project_id), ..DeliveryFilter::default() };
    let mut found = Vec::new();
    let mut page = PageRequest { limit: 50, cursor: None };
    loop {
        let Page { items, next_cursor } = world.store.deliveries(&filter, page).await.unwrap();
        found.extend(items);
        let Some(cursor) = next_cursor else { return found };
        page = PageRequest { limit: 50, cursor: Some(cursor) };
    }
}
