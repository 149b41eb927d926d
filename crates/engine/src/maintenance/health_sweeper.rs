//! Switches off what has been failing for too long, and tells owners of each switching-off (V04).
//!
//! Whom to tell stands in the store, so that a crash forgets nobody; who tells has taken it over there, so that two servers do not both tell.
//! A crash between the mail and the note of it tells twice, under the same id. It must not know when an endpoint is to be switched off.

use std::collections::BTreeMap;
use std::sync::Arc;

use postrider_core::connection::Connection;
use postrider_core::endpoint::{EndpointState, SwitchedOff};
use postrider_core::health::SwitchOffReason;
use postrider_core::id::{ConnectionId, EndpointId};
use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_core::{Timestamp, Wait};
use postrider_store::{EndpointRow, StoreError};
use tokio::sync::oneshot;

use crate::runner::ToRunner;
use crate::shared::Shared;
use crate::switching;

const ROWS_MAX: u32 = 256;
/// Whoever has taken over telling an owner has it for so long, and takes it anew while the mail waits.
const TELLING: Wait = Wait::from_secs(15 * 60);
/// How often mails under way are looked at.
const LOOK_EVERY: Wait = Wait::from_secs(1);

/// Mails that wait for a mail server, with the row as it was taken over.
#[derive(Default)]
struct Telling(BTreeMap<ConnectionId, (EndpointRow, oneshot::Receiver<()>)>);

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut telling = Telling::default();
    let mut sweep_at = shared.clock.monotonic();
    loop {
        shared.vitals.busy(Worker::HealthSweeper);
        let now = shared.clock.monotonic();
        let swept = if sweep_at <= now {
            sweep_at = now + shared.options.endpoint_sweep_every;
            sweep(&shared).await
        } else {
            Ok(())
        };
        if let Err(error) = swept.and(telling.look(&shared).await) {
            tracing::warn!(event = log::ENDPOINTS_UNREAD, %error, "how endpoints do cannot be read or written now");
        }
        shared.vitals.idle(Worker::HealthSweeper);
        let until_sweep = sweep_at.saturating_sub(shared.clock.monotonic());
        let pause = if telling.0.is_empty() { until_sweep } else { until_sweep.min(LOOK_EVERY) };
        tokio::select! {
            biased;
            () = shared.untold.notified() => {}
            () = tokio::time::sleep(pause.max(Wait::from_millis(1)).as_duration()) => {}
        }
    }
}

/// By what the store says: the server that makes an endpoint's attempts may not be this one, and may have none left to make.
async fn sweep(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let rows = shared.store.failing_endpoints(after, ROWS_MAX).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.id);
        for row in rows {
            shared.vitals.busy(Worker::HealthSweeper);
            let Some(connection) = shared.connections.get(row.id) else { continue };
            let Some(off) = switching::swept(shared, &connection, &row, shared.now()) else { continue };
            let written = off.off;
            if shared.store.switch_off_endpoint(&row, off).await? {
                let state = row.state.switched_off(written.reason, written.at);
                shared.endpoints.foresee(row.id, |known| {
                    known.state = EndpointState { last_test: known.state.last_test, ..state };
                    Some(())
                });
                switching::switched_off(shared, row.id, written, row.state.health);
                shared.queues.tell(row.id, ToRunner::ConnectionChanged);
            }
        }
    }
}

impl Telling {
    async fn look(&mut self, shared: &Arc<Shared>) -> Result<(), StoreError> {
        self.hear(shared).await?;
        for row in shared.store.untold_endpoints(shared.now(), ROWS_MAX).await? {
            if let std::collections::btree_map::Entry::Vacant(place) = self.0.entry(row.id)
                && let Some(told) = tell(shared, &row).await?
            {
                place.insert(told);
            }
        }
        Ok(())
    }

    /// What became of the mails under way.
    async fn hear(&mut self, shared: &Arc<Shared>) -> Result<(), StoreError> {
        for (mut row, mut told) in std::mem::take(&mut self.0).into_values() {
            match told.try_recv() {
                Ok(()) => shared.store.end_telling(row.id, row.state.epoch).await?,
                Err(oneshot::error::TryRecvError::Closed) => {
                    give_up(shared, &row, "no mail server took the mail").await?
                }
                Err(oneshot::error::TryRecvError::Empty) => {
                    let now = shared.now();
                    if row.tell_at.is_some_and(|until| until.since(now) < Wait::from_millis(TELLING.as_millis() / 2))
                        && shared.store.take_telling(&row, now + TELLING).await?
                    {
                        row.tell_at = Some(now + TELLING);
                    }
                    self.0.insert(row.id, (row, told));
                }
            }
        }
        Ok(())
    }
}

/// Posts the mail once it is ours to post.
async fn tell(
    shared: &Arc<Shared>,
    row: &EndpointRow,
) -> Result<Option<(EndpointRow, oneshot::Receiver<()>)>, StoreError> {
    let (Some(connection), Some(off)) = (shared.connections.get(row.id), row.state.off) else {
        return Ok(None);
    };
    let until = shared.now() + TELLING;
    if !shared.store.take_telling(row, until).await? {
        return Ok(None);
    }
    let row = EndpointRow { tell_at: Some(until), ..row.clone() };
    let owner = shared.projects.settings(connection.project_id).and_then(|settings| settings.owner_email.clone());
    let Some(owner) = owner else {
        let endpoint = EndpointId::of(row.id);
        tracing::warn!(event = log::ENDPOINT_OWNER_UNKNOWN, %endpoint, "an endpoint was switched off, and its project has no `ownerEmail`");
        shared.store.end_telling(row.id, row.state.epoch).await?;
        return Ok(None);
    };
    let endpoint = EndpointId::of(connection.id);
    // The same for every try of the same switching-off, so that a mail program shows one.
    let id = format!("{endpoint}.off.{}", row.state.epoch);
    let (subject, text) = mail(&connection, endpoint, &row, off);
    match shared.post_mail_and_hear(id, vec![owner], subject, text) {
        Some(told) => Ok(Some((row, told))),
        None => {
            give_up(shared, &row, "no mail server is set, or its outbox is full").await?;
            Ok(None)
        }
    }
}

async fn give_up(shared: &Shared, row: &EndpointRow, why: &str) -> Result<(), StoreError> {
    let endpoint = EndpointId::of(row.id);
    tracing::error!(event = log::ENDPOINT_OWNER_UNTOLD, %endpoint, why, "the owner of an endpoint could not be told");
    shared.store.end_telling(row.id, row.state.epoch).await
}

/// Without the address: its query may hold what opens it.
fn mail(connection: &Connection, endpoint: EndpointId, row: &EndpointRow, off: SwitchedOff) -> (String, String) {
    let name = &connection.name;
    let origin = connection.spec.target.webhook().map_or("", |target| target.url.origin());
    let health = row.state.health;
    let why = match off.reason {
        SwitchOffReason::Gone => "It answered 410 Gone, which says that the address no longer exists.".to_owned(),
        SwitchOffReason::FailuresInARow => {
            format!("{} different deliveries failed in a row.", health.failed_in_a_row)
        }
        SwitchOffReason::FailingFor => "It has been failing for too long.".to_owned(),
    };
    let since = health.failing_since.map_or_else(String::new, |since: Timestamp| {
        format!("Failing since {since}; {} different deliveries failed.\n", health.failed_in_a_row)
    });
    let text = format!(
        "The webhook endpoint {name} ({endpoint}, {origin}) was switched off at {at}.\n\n{why}\n{since}\n\
         While it is off, new events are not sent to it, now or later, and deliveries that still wait for a retry are dead-lettered when \
         they come due.\n\n\
         What to do: mend the receiver, send it a test (POST …/endpoints/{endpoint}/test), then switch it on again \
         (POST …/endpoints/{endpoint}/enable). Its failure count starts over.\n",
        at = off.at,
    );
    (format!("Switched off: the webhook endpoint {name}"), text)
}
