//! What comes in: requests stored durably, and finished direct calls. It must not know how a caller is answered.

use postrider_core::Timestamp;
use postrider_core::delivery::{Position, Progress, Status};
use postrider_core::id::{DeliveryId, QueueId};

use super::queues::{self, Queue};
use super::rows::{
    ATTEMPT, ATTEMPT_COLUMNS, CHANGING, CHANGING_COLUMNS, Changing, FIXED, FIXED_COLUMNS, bind_attempt, bind_changing,
    id_of, json, key,
};
use super::work::{Binder, Work, write_rows};
use super::{bodies, lines, replies, work};
use crate::unclaimed::unclaimed;
use crate::{CallRecord, Enqueued, Idempotency, NewDelivery, StoreError};

/// The first version of every delivery.
const FIRST_VERSION: u32 = 1;

/// A request that is let in, with its place.
struct Admitted<'a> {
    new: &'a NewDelivery,
    position: i64,
    by_due: bool,
    /// The token under which it is claimed.
    token: Option<i64>,
}

pub(super) fn enqueue(work: &Work, batch: &[&NewDelivery]) -> Result<Vec<Enqueued>, StoreError> {
    work.space.check()?;
    refuse_known_ids(work, batch.iter().map(|new| new.id))?;
    if batch.iter().any(|new| !new.progress.status.is_waiting()) {
        return Err(StoreError::Conflict("a new delivery is PENDING or PROCESSING".to_owned()));
    }
    let mut admitted = Vec::with_capacity(batch.len());
    let mut answers = Vec::with_capacity(batch.len());
    for new in batch {
        answers.push(admit(work, new, &mut admitted)?);
    }
    let new_bodies: Vec<_> = admitted.iter().map(|one| &one.new.body).collect();
    bodies::add(work, &new_bodies)?;
    insert_hot(work, &admitted)?;
    let awaited: Vec<_> = admitted
        .iter()
        .filter_map(|one| Some((one.new.id, one.new.connection_id, one.position, one.new.awaited_until?.as_millis())))
        .collect();
    replies::await_all(work, &awaited)?;
    lines::release(work, &admitted.iter().filter_map(|one| line_of(one.new)).collect())?;
    work.counters.enqueued.fetch_add(admitted.len() as u64, std::sync::atomic::Ordering::Relaxed);
    Ok(answers)
}

fn line_of(new: &NewDelivery) -> Option<(QueueId, i64)> {
    Some((new.connection_id, new.event.as_ref()?.line?.0))
}

fn refuse_known_ids(work: &Work, ids: impl Iterator<Item = DeliveryId>) -> Result<(), StoreError> {
    let mut keys: Vec<[u8; 16]> = ids.map(|id| key(id.as_u128())).collect();
    let mut known = Vec::new();
    for table in ["delivery", "delivery_log"] {
        work::read_rows(work, (&format!("SELECT id FROM {table} WHERE id IN "), ""), &keys, |row| {
            known.push(row.get::<_, [u8; 16]>(0)?);
            Ok(())
        })?;
    }
    keys.sort_unstable();
    known.extend(keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
    match known.first() {
        Some(id) => {
            Err(StoreError::Conflict(format!("there is a delivery {} already", DeliveryId::from_u128(id_of(*id)))))
        }
        None => Ok(()),
    }
}

fn admit<'a>(work: &Work, new: &'a NewDelivery, admitted: &mut Vec<Admitted<'a>>) -> Result<Enqueued, StoreError> {
    let Some(queue) = queues::find(work, new.connection_id)?.filter(|queue| !queue.deleted) else {
        return Ok(Enqueued::NoConnection);
    };
    if let Some(given) = &new.idempotency
        && let Some(answer) = repeat_of(work, given, new.created_at)?
    {
        return Ok(answer);
    }
    let bytes = new.body.bytes.len() as u64;
    if let Some(limit) = work.limits.broken_by(queue.waiting, queue.waiting_bytes, bytes) {
        return Ok(Enqueued::Full { limit });
    }
    if let Some(given) = &new.idempotency {
        remember(work, given, new.id)?;
    }
    let mut position = 0;
    queues::change(work, queue.id, |queue| {
        position = queue.take_position();
        queue.accepted += 1;
        queue.enters(bytes);
    });
    let line = new.event.as_ref().and_then(|event| event.line);
    // What is in a line comes in held back, and is let go below if it is the foremost.
    let by_due = !queue.ordered && line.is_none();
    let claim = new.claimed_under.filter(|lease| {
        !new.ordered
            && line.is_none()
            && lease.queue_id == queue.id
            && queue.is_held_under(lease)
            && new.progress.status == Status::Processing
    });
    admitted.push(Admitted { new, position, by_due, token: claim.map(|lease| lease.token.0) });
    Ok(Enqueued::Stored {
        position: Position(position),
        ahead: queue.waiting,
        claimed: claim.is_some(),
        held_under: queue.owner.map(|_| crate::FencingToken(queue.token)),
    })
}

/// What a key that has not ended says of this request.
pub(super) fn repeat_of(work: &Work, given: &Idempotency, now: Timestamp) -> Result<Option<Enqueued>, StoreError> {
    work.first(
        "SELECT request_hash, delivery_id FROM idempotency WHERE key_hash = ?1 AND ends_at > ?2",
        &[&given.key_hash, &now.as_millis()],
        |row| {
            let request: [u8; 32] = row.get(0)?;
            if request != given.request_hash {
                return Ok(Enqueued::KeyReused);
            }
            Ok(Enqueued::Repeated(DeliveryId::from_u128(id_of(row.get(1)?))))
        },
    )
}

pub(super) fn remember(work: &Work, given: &Idempotency, id: DeliveryId) -> Result<(), StoreError> {
    work.execute(
        "INSERT OR REPLACE INTO idempotency (key_hash, request_hash, delivery_id, ends_at) VALUES (?1, ?2, ?3, ?4)",
        &[&given.key_hash, &given.request_hash, &key(id.as_u128()), &given.ends_at.as_millis()],
    )?;
    Ok(())
}

fn bind_new(to: &mut Binder<'_, '_>, new: &NewDelivery, progress: &Progress, recorded: u32) -> Result<(), StoreError> {
    to.push(key(new.id.as_u128()))?;
    to.push(key(new.project_id.as_u128()))?;
    to.push(key(new.connection_id.as_u128()))?;
    to.push(new.cid.as_str())?;
    // Ours say when they were given, so only a caller's own need an index; most rows are in none.
    to.push((new.cid.made_at() != Some(new.created_at)).then_some(true))?;
    to.push(new.origin.as_str())?;
    to.push(new.created_at.as_millis())?;
    to.push(json(&new.head)?)?;
    let event = new.event.as_ref();
    to.push(event.map(|event| key(event.id.as_u128())))?;
    to.push(event.map(|event| event.event_type.as_str()))?;
    to.push(event.map(|event| event.happened_at.as_millis()))?;
    to.push(event.map(|event| key(event.subscription_id.as_u128())))?;
    to.push(event.map(|event| event.payload.as_str()))?;
    to.push(event.and_then(|event| event.line).map(|line| line.0))?;
    to.push(new.ladder.as_ref().map(json).transpose()?)?;
    let changing = Changing {
        body_id: new.body.id,
        body_bytes: new.body.bytes.len() as u64,
        original_body_id: None,
        version: FIRST_VERSION,
        recorded,
        progress,
    };
    bind_changing(to, &changing)
}

fn insert_hot(work: &Work, admitted: &[Admitted<'_>]) -> Result<(), StoreError> {
    let before = format!("INSERT INTO delivery ({FIXED}, {CHANGING}, position, by_due, claim_token) VALUES ");
    write_rows(work, (&before, FIXED_COLUMNS + CHANGING_COLUMNS + 3, ""), admitted, |to, one| {
        let progress = &one.new.progress;
        if one.token.is_none() && progress.status == Status::Processing {
            bind_new(to, one.new, &unclaimed(progress.clone()), 0)?;
        } else {
            bind_new(to, one.new, progress, 0)?;
        }
        to.push(one.position)?;
        to.push(one.by_due)?;
        to.push(one.token)
    })
}

/// Direct calls go straight to the log (D12). One whose connection has just been deleted is entered as well.
pub(super) fn record_calls(work: &Work, batch: &[CallRecord]) -> Result<(), StoreError> {
    refuse_known_ids(work, batch.iter().map(|call| call.delivery.id))?;
    batch.iter().try_for_each(check_call)?;
    for CallRecord { delivery: new, .. } in batch {
        if let Some(given) = &new.idempotency
            && repeat_of(work, given, new.created_at)?.is_none()
        {
            remember(work, given, new.id)?;
        }
        if queues::find(work, new.connection_id)?.is_none() {
            let gone = Queue { deleted: true, ..Queue::new(new.connection_id, new.project_id, new.ordered) };
            queues::put(work, gone);
        }
        queues::change(work, new.connection_id, |queue| queue.accepted += 1);
    }
    let new_bodies: Vec<_> = batch.iter().map(|call| &call.delivery.body).collect();
    bodies::add(work, &new_bodies)?;
    let before = format!("INSERT INTO delivery_log ({FIXED}, {CHANGING}) VALUES ");
    write_rows(work, (&before, FIXED_COLUMNS + CHANGING_COLUMNS, ""), batch, |to, call| {
        bind_new(to, &call.delivery, &call.delivery.progress, call.delivery.progress.attempts)
    })?;
    let attempts: Vec<_> =
        batch.iter().flat_map(|call| call.attempts.iter().map(|attempt| (call.delivery.id, attempt))).collect();
    insert_attempts(work, &attempts)
}

fn check_call(call: &CallRecord) -> Result<(), StoreError> {
    let progress = &call.delivery.progress;
    let numbered = (1..).zip(&call.attempts).all(|(number, attempt)| attempt.number == number);
    if !numbered || progress.attempts as usize != call.attempts.len() {
        return Err(StoreError::Corrupt(format!("the attempts of {} are not numbered without gaps", call.delivery.id)));
    }
    if !progress.status.is_terminal() || progress.ended_at.is_none() {
        return Err(StoreError::Corrupt(format!("the call {} has not ended", call.delivery.id)));
    }
    Ok(())
}

pub(super) fn insert_attempts(
    work: &Work,
    attempts: &[(DeliveryId, &postrider_core::attempt::Attempt)],
) -> Result<(), StoreError> {
    let before = format!("INSERT INTO attempt (delivery_id, {ATTEMPT}) VALUES ");
    write_rows(work, (&before, ATTEMPT_COLUMNS, ""), attempts, |to, (id, attempt)| bind_attempt(to, *id, attempt))
}
