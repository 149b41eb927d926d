//! At the end of a run: drained, in order, forwarded once, one message a key, and nothing behind a refusal.

use std::collections::BTreeMap;

use bytes::Bytes;
use postrider_core::delivery::{Delivery, Position, Status};
use postrider_core::id::{ConnectionId, DeliveryId, EventId};
use postrider_core::{Timestamp, Wait};
use postrider_store::{PageRequest, StoreError};

use super::Oracle;

/// How late the DLQ's action may be once all is well.
const ACTION_SLACK: Wait = Wait::from_secs(60);

impl Oracle {
    pub(crate) async fn at_end(&self, now: Timestamp) {
        if let Err(error) = self.check_all(now).await {
            self.report(1, format!("the store cannot be read at the end: {error}"));
        }
        self.check_first_receipts();
        self.check_arrival_order();
    }

    async fn check_all(&self, now: Timestamp) -> Result<(), StoreError> {
        self.check_books().await?;
        self.check_drained(now).await?;
        self.check_topics().await?;
        self.check_jobs().await?;
        self.check_endpoints().await?;
        self.check_bodies().await
    }

    async fn check_drained(&self, now: Timestamp) -> Result<(), StoreError> {
        let store = self.store();
        for connection in store.all_connections().await? {
            let waiting = store.queue_summary(connection.id).await?.waiting;
            if waiting > 0 && !connection.is_held() {
                let waiting_rows = self
                    .all_deliveries()
                    .await?
                    .into_iter()
                    .filter(|one| one.connection_id == connection.id && one.progress.status.is_waiting());
                let shown = waiting_rows.map(|one| {
                    let progress = &one.progress;
                    let status = progress.status.as_str();
                    format!(
                        "{} {status} after {} attempts, due {}, at {:?}",
                        one.id, progress.attempts, progress.due_at, one.position
                    )
                });
                let shown: Vec<String> = shown.collect();
                let name = &connection.name;
                self.report(
                    7,
                    format!("{waiting} still wait in {name} at {now}, after all faults have ended: {shown:#?}"),
                );
            }
        }
        if self.plan.clock_jumps {
            return Ok(());
        }
        for delivery in self.all_deliveries().await? {
            let Some(connection) = store.connection(delivery.connection_id).await? else { continue };
            let due = postrider_core::decide::dead_letter_due_at(&delivery.progress, &connection.spec.policy.dlq);
            let stays = delivery.progress.dlq_note.is_some();
            if delivery.progress.status == Status::Dlq && !stays && due.is_some_and(|due| due + ACTION_SLACK < now) {
                self.report(7, format!("the DLQ's action is overdue for {}", delivery.id));
            }
        }
        Ok(())
    }

    /// Z22: on the topic once for each time it was forwarded, and only then.
    async fn check_topics(&self) -> Result<(), StoreError> {
        let store = self.store();
        let mut published: BTreeMap<EventId, usize> = BTreeMap::new();
        for project in store.projects().await? {
            let topics = store.topics(project.id, PageRequest { limit: 100, cursor: None }).await?;
            // On the others are events.
            for topic in topics.items.into_iter().filter(|topic| topic.name.as_str() == "undeliverable") {
                let mut cursor = None;
                loop {
                    let page = store.topic_messages(&topic, PageRequest { limit: 500, cursor }).await?;
                    for message in page.items {
                        *published.entry(message.id).or_default() += 1;
                    }
                    cursor = page.next_cursor;
                    if cursor.is_none() {
                        break;
                    }
                }
            }
        }
        for delivery in self.all_deliveries().await? {
            let times = published.remove(&EventId::from_u128(delivery.id.as_u128())).unwrap_or(0);
            let forwarded = delivery.progress.status == Status::Forwarded;
            let fits =
                if self.is_reopened(delivery.id) { !forwarded || times > 0 } else { times == usize::from(forwarded) };
            if !fits {
                let status = delivery.progress.status.as_str();
                self.report(1, format!("{} is {status} and {times} times on the topic", delivery.id));
            }
        }
        for (id, _) in published {
            self.report(1, format!("{id} is on the topic and no delivery was forwarded under that id"));
        }
        Ok(())
    }

    /// Every body is stored for one delivery at most, and for none whose caller was refused; it is the one that was accepted.
    async fn check_bodies(&self) -> Result<(), StoreError> {
        let mut stored: BTreeMap<Bytes, Vec<DeliveryId>> = BTreeMap::new();
        for delivery in self.all_deliveries().await? {
            let body_id = delivery.original_body_id.unwrap_or(delivery.body_id);
            match self.store().body(body_id).await? {
                Some(body) => stored.entry(body).or_default().push(delivery.id),
                None => self.report(8, format!("the body of {} is gone", delivery.id)),
            }
        }
        let ledger = self.ledger();
        let mut found = Vec::new();
        for (body, ids) in &stored {
            let key = ledger.keys.contains_key(body);
            if ids.len() > 1 {
                found.push((if key { 6 } else { 1 }, format!("one request is stored as {ids:?}")));
            }
            match ledger.requests.get(body) {
                None => found.push((8, format!("{ids:?} is stored with a body that nobody handed in"))),
                Some(request) if request.refused && !key && self.plan.faults.error_after == 0 => {
                    found.push((9, format!("{ids:?} is stored, and its caller was told that nothing was")));
                }
                Some(_) => {}
            }
        }
        for body in ledger.told.iter().filter(|body| !stored.contains_key(*body)) {
            found.push((1, format!("the event {body:?} was acknowledged and is nowhere")));
        }
        drop(ledger);
        found.into_iter().for_each(|(invariant, what)| self.report(invariant, what));
        Ok(())
    }

    /// Invariant 2 over the whole log of what was received, for what never went to the tail.
    fn check_first_receipts(&self) {
        let state = self.state();
        let mut last: BTreeMap<ConnectionId, (Position, DeliveryId)> = BTreeMap::new();
        let mut found = Vec::new();
        for (connection, id) in &state.first_receipts {
            if state.unordered.contains(connection) || state.moved.contains(id) {
                continue;
            }
            let Some((_, position)) = state.positions.get(id) else { continue };
            if let Some((before, other)) = last.insert(*connection, (*position, *id))
                && before > *position
            {
                found.push(format!("{id} was received after {other}, which came behind it"));
            }
        }
        drop(state);
        found.into_iter().for_each(|what| self.report(2, what));
    }

    /// Who was answered before another one asked has the earlier place.
    fn check_arrival_order(&self) {
        let mut found = Vec::new();
        {
            let (ledger, state) = (self.ledger(), self.state());
            let placed: Vec<_> = ledger
                .requests
                .values()
                .filter_map(|request| Some((request, state.positions.get(&request.msg_id?)?)))
                .collect();
            for (earlier, (queue, position)) in &placed {
                for (later, (other_queue, other_position)) in &placed {
                    let apart = earlier.acknowledged.is_some_and(|at| at < later.submitted);
                    if queue == other_queue && apart && position > other_position {
                        found.push(format!(
                            "{:?} was accepted before {:?} and stands behind it",
                            earlier.msg_id, later.msg_id
                        ));
                    }
                }
            }
        }
        found.into_iter().for_each(|what| self.report(2, what));
    }

    /// Nothing is due, so nothing is done but what time makes necessary.
    pub(crate) fn check_quiet(&self, calls: u64, allowed: u64) {
        if calls > allowed {
            self.report(7, format!("{calls} calls of the store while nothing was due, {allowed} would do"));
        }
    }

    /// Connections with a dead letter whose action cannot be taken: they are looked at again and again.
    pub(crate) async fn looks_again(&self) -> u64 {
        let Ok(all) = self.all_deliveries().await else { return 0 };
        let stuck = all.iter().filter(|delivery| delivery.progress.dlq_note.is_some());
        stuck.map(|delivery| delivery.connection_id).collect::<std::collections::BTreeSet<_>>().len() as u64
    }

    /// Nothing waits and no dead letter is to be acted on: for the driver, who waits for it.
    pub(crate) async fn is_drained(&self) -> bool {
        let store = self.store();
        let (Ok(all), Ok(connections)) = (self.all_deliveries().await, store.all_connections().await) else {
            return false;
        };
        let policies: BTreeMap<_, _> = connections.iter().map(|known| (known.id, &known.spec.policy)).collect();
        all.iter().all(|delivery: &Delivery| {
            let progress = &delivery.progress;
            let acts = policies.get(&delivery.connection_id).is_some_and(|policy| {
                postrider_core::decide::dead_letter_due_at(progress, &policy.dlq).is_some()
                    && progress.dlq_note.is_none()
            });
            !progress.status.is_waiting() && (progress.status != Status::Dlq || !acts)
        })
    }
}
