//! Runners: one task for each queue that this worker has, which attempts its deliveries in their turn.
//!
//! A runner must not know how others get on: what it holds is its own queue's window and nothing else.

mod commands;
pub(crate) mod fifo;
mod gate;
mod held_up;
mod next;
pub(crate) mod slots;
pub(crate) mod unordered;
pub(crate) mod window;

use std::sync::Arc;

use postrider_core::attempt::Attempt;
use postrider_core::breaker::{self, Turn};
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::decide::{Decision, Event, Gate, Snapshot, before_attempt, decide};
use postrider_core::deferral::Deferral;
use postrider_core::delivery::{Delivery, Progress, Status};
use postrider_core::envelope;
use postrider_core::id::{DeliveryId, QueueId};
use postrider_core::log;
use postrider_core::message::RequestHead;
use postrider_core::operational::OperationalEvent;
use postrider_core::verdict::{Again, Failed, Verdict};
use postrider_core::{Timestamp, Wait};
use postrider_store::{FencingToken, HealthWrite, Loaded, QueueLease, Settled, TakenQueue};
use postrider_wire::{Outgoing, WebhookAttempt};
use tokio::sync::mpsc;

use crate::announcer;
use crate::dispatcher::QueueHandle;
use crate::endpointing;
use crate::endpoints;
use crate::shared::Shared;
use held_up::HeldUp;

pub(crate) type Inbox = mpsc::UnboundedSender<ToRunner>;

/// What a runner is told. Messages of one sender arrive in the order in which they were sent.
pub(crate) enum ToRunner {
    /// Just stored by this process; `ahead` were waiting in the queue at that moment, which a worker held under this token.
    Fresh { loaded: Box<Loaded>, ahead: u64, held_under: Option<FencingToken> },
    /// Just stored, and claimed for this runner in the same transaction: a slot is kept for it.
    Claimed(Box<Loaded>),
    /// A decision of the given life was written, or not.
    Settled { life: u64, delivery_id: DeliveryId, settled: Settled },
    /// The queue was found without an owner and taken for this runner.
    Taken(TakenQueue),
    /// Something in the queue changed in the store: a dead letter came back, a person acted.
    Wake,
    /// An operator's command waits.
    Commands,
    /// A caller of another process may wait for its reply (D11).
    Called,
    /// The connection's settings or its pause changed, or it is gone.
    ConnectionChanged,
    /// The worker's lease has ended: all that is held belongs to others now.
    LeaseLost,
    /// Finish what is under way, begin nothing.
    Stop,
    /// The same, and another worker goes on with the queue.
    GiveBack,
    /// Stop waiting for what is under way.
    Abort,
}

/// Why a runner ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Told to; all decisions are written.
    Stopped,
    /// Told to, for another worker; all decisions are written.
    GivenBack,
    /// The lease is gone.
    Lost,
    /// `ordered` was changed: the other kind of runner goes on under the same lease.
    OrderChanged,
    /// The connection was deleted.
    Deleted,
}

/// What every runner works with.
pub(crate) struct Post {
    pub shared: Arc<Shared>,
    pub handle: Arc<QueueHandle>,
    pub lease: QueueLease,
    /// Counts the runners that this queue has had in this process.
    pub life: u64,
    /// The former owner may have had something in flight (D04).
    pub taken_over: bool,
    /// A former owner had claimed something; unsettled, it may have been sent.
    pub has_claims: bool,
    /// Operators' commands waited when it was taken.
    pub has_commands: bool,
}

impl Post {
    pub fn queue_id(&self) -> QueueId {
        self.lease.queue_id
    }

    /// An attempt has ended: what the endpoint's breaker makes of it, and who is told.
    fn circuit_heard(&self, connection: &Connection, verdict: &Verdict, is_probe: bool) {
        let shared = &self.shared;
        let failure = match verdict {
            Verdict::Delivered => None,
            Verdict::Failed(failed) => Some(failed.failure),
        };
        let now = shared.now();
        let endpoint = || announcer::subject(connection);
        match self.handle.slots.ended(shared, breaker::Ended::of(failure), is_probe, now) {
            Turn::Opened { until, failed_in_a_row, is_new: true } => {
                tracing::warn!(
                    event = log::CIRCUIT_OPENED, connection = connection.name, failed_in_a_row, %until,
                    "an endpoint keeps failing and is left alone for a while"
                );
                let event =
                    OperationalEvent::EndpointCircuitOpened { endpoint: endpoint(), failed_in_a_row, until, at: now };
                shared.announce(connection.project_id, event);
            }
            Turn::Closed { open_since } => {
                tracing::info!(
                    event = log::CIRCUIT_CLOSED, connection = connection.name, %open_since,
                    "an endpoint that was left alone answers again"
                );
                let event = OperationalEvent::EndpointRecovered { endpoint: endpoint(), at: now };
                shared.announce(connection.project_id, event);
            }
            Turn::Opened { .. } | Turn::None => {}
        }
    }

    /// What holds the queue up from now on, as others see it.
    fn find_held_up(&self, held_up: &mut HeldUp, deferral: Option<Deferral>, now: Timestamp) {
        let is_endpoint = self.connection().is_some_and(|connection| connection.spec.target.webhook().is_some());
        let deferral = deferral.filter(|_| is_endpoint);
        held_up.find(deferral, now);
        self.handle.slots.set_deferral(deferral);
    }

    /// Writes it once it lasts, for those who look from other servers.
    async fn write_held_up(&self, held_up: &mut HeldUp) {
        let now = self.shared.now();
        let Some(deferral) = held_up.to_write(now) else { return };
        match self.shared.store.note_deferral(self.lease, deferral).await {
            Ok(()) => held_up.wrote(deferral),
            Err(_) => return held_up.not_written(now),
        }
        match deferral {
            Some(Deferral { by, until }) => tracing::info!(
                event = log::QUEUE_DEFERRED, queue = %self.queue_id(), reason = by.as_str(), until = until.map(|at| at.to_string()),
                "what is due in a queue is held back for now"
            ),
            None => {
                tracing::info!(event = log::QUEUE_NOT_DEFERRED, queue = %self.queue_id(), "a queue is not held back any more");
            }
        }
    }

    /// The connection as it is now; its address, credentials and pause are always live (D21).
    pub fn connection(&self) -> Option<Arc<Connection>> {
        self.shared.connections.get(self.lease.queue_id)
    }
}

/// An attempt as it is written, with what it makes of its endpoint.
pub(crate) struct Made {
    pub record: Attempt,
    pub health: Option<Box<HealthWrite>>,
}

impl From<Attempt> for Made {
    fn from(record: Attempt) -> Self {
        Made { record, health: None }
    }
}

impl Post {
    /// How the endpoint stands by the store, as far as this process may not know it: whoever had the queue before may have changed it.
    pub async fn read_endpoint(&self) {
        let is_known = self.life == 1 && !self.shared.options.other_workers;
        let is_endpoint = self.connection().is_some_and(|connection| connection.kind() == ConnectionKind::Webhook);
        if is_known || !is_endpoint {
            return;
        }
        if let Err(error) = endpointing::read_one_anew(&self.shared, self.queue_id()).await {
            tracing::warn!(event = log::ENDPOINTS_UNREAD, %error, "how an endpoint does cannot be read now");
        }
    }
}

/// How long a runner rests after a store did not answer it.
pub(crate) const STORE_PAUSE: Wait = Wait::from_millis(500);

/// What waits for a slot of its project looks so often at least.
pub(crate) const LOOK_FOR_SLOTS: Wait = Wait::from_secs(2);
/// However soon a deferral may be over, it is not looked at more often than this.
pub(crate) const SHORTEST_WAIT: Wait = Wait::from_millis(1);

pub(crate) fn outgoing(
    connection: &Arc<Connection>,
    delivery: &Delivery,
    head: &Arc<RequestHead>,
    body: &bytes::Bytes,
    timeout: Wait,
) -> Outgoing {
    let timeout = delivery.ladder.as_ref().map_or(timeout, |terms| terms.timeout);
    Outgoing {
        connection: Arc::clone(connection),
        delivery_id: delivery.id,
        cid: delivery.cid.clone(),
        attempt: delivery.progress.attempts,
        head: Arc::clone(head),
        body: delivery.event.as_ref().map_or_else(|| body.clone(), |event| envelope::body(event, body)),
        credentials: None,
        webhook: connection.spec.target.webhook().map(|_| Box::new(WebhookAttempt::of(delivery.event.clone()))),
        service: None,
        trace: None,
        stamp: None,
        timeout,
    }
}

/// The earlier of two times of which either may be missing.
pub(crate) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// What becomes of a delivery that has come due and may not be sent; `None`: it may (R14, V05).
pub(crate) fn refused(shared: &Shared, live: &Connection, at: Snapshot<'_>, now: Timestamp) -> Option<Decision> {
    let refused = endpoints::refused(shared, live)?;
    // Only a person's wish is ever refused.
    decide(Event::NotSendable(refused), at, now, shared.roll()).ok()
}

/// An attempt at an endpoint that the guard did not let out was none: nobody was dialled (R14).
pub(crate) fn was_made(connection: &Connection, verdict: &Verdict) -> bool {
    let held_back = matches!(verdict, Verdict::Failed(Failed { again: Again::Refused, .. }));
    !(held_back && connection.spec.target.webhook().is_some())
}

/// What becomes of a delivery that has expired or is too old (Z17, R09); `None`: it is neither. `behind`: whom it waits for (D28).
pub(crate) fn given_up(
    shared: &Shared,
    at: Snapshot<'_>,
    open_since: Option<Timestamp>,
    now: Timestamp,
    behind: Option<DeliveryId>,
) -> Option<Decision> {
    let event = match before_attempt(at, open_since, now) {
        Gate::Expired => Event::Expired,
        Gate::TooOld => Event::TooOld { behind },
        Gate::Attempt | Gate::WaitUntil(_) => return None,
    };
    // Only a person's wish is ever refused.
    decide(event, at, now, shared.roll()).ok()
}

/// Takes back the number and the rung that a claim had given.
pub(crate) fn not_begun(claimed: &Progress) -> Progress {
    let mut progress = claimed.clone();
    progress.status = Status::Pending;
    progress.attempts = progress.attempts.saturating_sub(1);
    progress.round_attempts = progress.round_attempts.saturating_sub(1);
    if progress.attempts == 0 {
        progress.last_attempt_at = None;
    }
    progress
}
