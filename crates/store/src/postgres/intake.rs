//! What comes in: requests stored durably, and finished direct calls. It must not know how a caller is answered.

use std::collections::{BTreeMap, BTreeSet};

use postrider_core::delivery::{Position, Progress, Status};
use postrider_core::id::{DeliveryId, QueueId, WorkerId};
use postrider_core::{Timestamp, Wait};

use super::bodies;
use super::columns::Columns;
use super::failures::{Fault, Outcome};
use super::key::{Id as _, Key};
use super::keyed::Keyed;
use super::lines;
use super::queues::{self, Lock};
use super::rows::{ATTEMPT, CHANGING, Cells, Changing, FIXED, json, push_attempt, push_changing, unsigned};
use super::work::Work;
use crate::unclaimed::unclaimed;
use crate::{CallRecord, Enqueued, FencingToken, NewDelivery, StoreError};

/// The first version of every delivery.
const FIRST_VERSION: u32 = 1;

/// A queue as it stands when the first of a batch comes to it, and what the batch has added since.
struct Place {
    ordered: bool,
    deleted: bool,
    next_position: i64,
    waiting: u64,
    waiting_bytes: u64,
    owner: Option<WorkerId>,
    token: i64,
    added: i64,
    added_bytes: i64,
}

/// A request that is let in.
struct Admitted<'a> {
    new: &'a NewDelivery,
    /// Which of those of its queue it is, from 0.
    rank: i64,
    by_due: bool,
    /// The token under which it is claimed.
    token: Option<i64>,
}

pub(super) async fn enqueue(work: &Work, batch: &[&NewDelivery]) -> Outcome<Vec<Enqueued>> {
    if batch.iter().any(|new| !new.progress.status.is_waiting()) {
        return Err(StoreError::Conflict("a new delivery is PENDING or PROCESSING".to_owned()).into());
    }
    let mut known_keys = Keyed::lock(work, batch.iter().filter_map(|new| new.idempotency.as_ref())).await?;
    let mut places = find_places(work, batch).await?;
    refuse_known_ids(work, batch.iter().map(|new| (new.id, new.created_at))).await?;
    let mut admitted = Vec::with_capacity(batch.len());
    let mut answers = Vec::with_capacity(batch.len());
    for new in batch {
        answers.push(admit(work, new, &mut places, &mut known_keys, &mut admitted));
    }
    if admitted.is_empty() {
        return Ok(answers);
    }
    known_keys.write(work).await?;
    let new_bodies: Vec<_> = admitted.iter().map(|one| &one.new.body).collect();
    bodies::add(work, &new_bodies).await?;
    let added = places.iter().filter(|(_, place)| place.added > 0).map(|(id, place)| (*id, place)).collect();
    let first_positions = count_in(work, &added).await?;
    let lines = admitted.iter().filter_map(|one| line_of(one.new)).collect();
    lines::lock(work, &lines).await?;
    insert_hot(work, &admitted, &first_positions).await?;
    lines::release(work, &lines).await?;
    queues::want_owners(work, &added.keys().copied().collect()).await?;
    added.iter().for_each(|(id, place)| work.tell_of_queue(*id, place.owner));
    work.context.counters.enqueued.fetch_add(admitted.len() as u64, std::sync::atomic::Ordering::Relaxed);
    let mut taken = admitted.iter();
    for answer in &mut answers {
        if let Enqueued::Stored { position, .. } = answer
            && let Some(one) = taken.next()
        {
            *position = one.position(&first_positions);
        }
    }
    Ok(answers)
}

impl Admitted<'_> {
    fn position(&self, first: &BTreeMap<QueueId, i64>) -> Position {
        Position(first.get(&self.new.connection_id).copied().unwrap_or_default() + self.rank)
    }
}

fn line_of(new: &NewDelivery) -> Option<(QueueId, i64)> {
    Some((new.connection_id, new.event.as_ref()?.line?.0))
}

pub(super) const PLACES_SQL: &str = "SELECT e.id, e.ordered, e.deleted, e.next_position, e.entered - x.left_count, \
     e.entered_bytes - x.left_bytes, q.owner, q.token \
     FROM queue_entry AS e JOIN queue AS q ON q.id = e.id JOIN queue_exit AS x ON x.id = e.id WHERE e.id = ANY($1)";

/// Reads the queues of the batch. Those that keep order are locked first, and so are those with a claim, whose lease must hold until the
/// end. Other queues are read as they are and locked only where they are counted, at the end (D02).
async fn find_places(work: &Work, batch: &[&NewDelivery]) -> Outcome<BTreeMap<QueueId, Place>> {
    let all: BTreeSet<QueueId> = batch.iter().map(|new| new.connection_id).collect();
    let claimed: BTreeSet<QueueId> =
        batch.iter().filter(|new| new.claimed_under.is_some()).map(|new| new.connection_id).collect();
    let mut locked: BTreeSet<QueueId> = batch.iter().filter(|new| new.ordered).map(|new| new.connection_id).collect();
    locked.extend(&claimed);
    queues::lock_entries(work, &locked).await?;
    queues::lock(work, &claimed, Lock::Share).await?;
    let mut places = read_places(work, &all).await?;
    // Who sent these took them for unordered.
    let late: BTreeSet<QueueId> =
        places.iter().filter(|(id, place)| place.ordered && !locked.contains(id)).map(|(id, _)| *id).collect();
    if !late.is_empty() {
        queues::lock_entries(work, &late).await?;
        places = read_places(work, &all).await?;
    }
    Ok(places)
}

async fn read_places(work: &Work, ids: &BTreeSet<QueueId>) -> Outcome<BTreeMap<QueueId, Place>> {
    let places = work
        .all(PLACES_SQL, &[&queues::keys(ids)], |row| {
            let mut at = Cells::of(row);
            let id = QueueId::from_u128(at.id()?);
            let (ordered, deleted, next_position) = (at.take()?, at.take()?, at.take()?);
            // Read without a lock, a queue may seem to have let out more than came in.
            let (waiting, waiting_bytes) = (at.take::<i64>()?.max(0), at.take::<i64>()?.max(0));
            let owner = at.optional_id()?.map(WorkerId::from_u128);
            let place = Place {
                ordered,
                deleted,
                next_position,
                waiting: unsigned(waiting)?,
                waiting_bytes: unsigned(waiting_bytes)?,
                owner,
                token: at.take()?,
                added: 0,
                added_bytes: 0,
            };
            Ok((id, place))
        })
        .await;
    Ok(places?.into_iter().collect())
}

/// `Full` when one of these would find no room now.
pub(super) async fn check_room(work: &Work, deliveries: &[NewDelivery]) -> Outcome<()> {
    match broken_by(work, &deliveries.iter().collect::<Vec<_>>()).await? {
        Some(limit) => Err(StoreError::Full { limit }.into()),
        None => Ok(()),
    }
}

/// The limit that one of these would break now. Several of them may go to one queue.
pub(super) async fn broken_by(work: &Work, deliveries: &[&NewDelivery]) -> Outcome<Option<&'static str>> {
    let ids: BTreeSet<QueueId> = deliveries.iter().map(|new| new.connection_id).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let mut places = read_places(work, &ids).await?;
    for new in deliveries {
        let Some(place) = places.get_mut(&new.connection_id) else { continue };
        let bytes = new.body.bytes.len() as u64;
        if let Some(limit) = work.limits().broken_by(place.waiting, place.waiting_bytes, bytes) {
            return Ok(Some(limit));
        }
        (place.waiting, place.waiting_bytes) = (place.waiting + 1, place.waiting_bytes + bytes);
    }
    Ok(None)
}

/// Nothing ended before it was created, as far as clocks agree: only those days of the log are looked at.
const CLOCKS_APART_MAX: Wait = Wait::from_secs(24 * 60 * 60);

pub(super) const KNOWN_SQL: &str = "SELECT id FROM delivery WHERE id = ANY($1) \
     UNION ALL SELECT id FROM delivery_log WHERE id = ANY($1) AND ended_at >= $2 LIMIT 1";

async fn refuse_known_ids(work: &Work, new: impl Iterator<Item = (DeliveryId, Timestamp)>) -> Outcome<()> {
    let (mut keys, times): (Vec<Key>, Vec<Timestamp>) = new.map(|(id, created_at)| (id.key(), created_at)).unzip();
    let Some(first) = times.into_iter().min() else { return Ok(()) };
    keys.sort_unstable();
    let twice = keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let since = (first - CLOCKS_APART_MAX).as_millis();
    let known = work.first(KNOWN_SQL, &[&keys, &since], |row| Cells::of(row).take()).await?;
    match known.or(twice) {
        Some(id) => {
            let id = DeliveryId::from_u128(id.number());
            Err(StoreError::Conflict(format!("there is a delivery {id} already")).into())
        }
        None => Ok(()),
    }
}

fn admit<'a>(
    work: &Work,
    new: &'a NewDelivery,
    places: &mut BTreeMap<QueueId, Place>,
    known_keys: &mut Keyed,
    admitted: &mut Vec<Admitted<'a>>,
) -> Enqueued {
    let Some(place) = places.get_mut(&new.connection_id).filter(|place| !place.deleted) else {
        return Enqueued::NoConnection;
    };
    if let Some(given) = &new.idempotency
        && let Some(answer) = known_keys.repeat_of(given, new.created_at)
    {
        return answer;
    }
    let bytes = new.body.bytes.len() as u64;
    let ahead = place.waiting + place.added.unsigned_abs();
    let ahead_bytes = place.waiting_bytes + place.added_bytes.unsigned_abs();
    if let Some(limit) = work.limits().broken_by(ahead, ahead_bytes, bytes) {
        return Enqueued::Full { limit };
    }
    if let Some(given) = &new.idempotency {
        known_keys.remember(given, new.id);
    }
    let claim = new.claimed_under.filter(|lease| {
        !new.ordered
            && !place.ordered
            && line_of(new).is_none()
            && lease.queue_id == new.connection_id
            && place.owner == Some(lease.worker_id)
            && place.token == lease.token.0
            && new.progress.status == Status::Processing
    });
    let token = claim.map(|lease| lease.token.0);
    // What is in a line comes in held back, and is let go afterwards if it is the foremost.
    let by_due = !place.ordered && line_of(new).is_none();
    admitted.push(Admitted { new, rank: place.added, by_due, token });
    let position = Position(place.next_position + place.added);
    place.added += 1;
    place.added_bytes += super::rows::signed(bytes);
    let held_under = place.owner.map(|_| FencingToken(place.token));
    Enqueued::Stored { position, ahead, claimed: claim.is_some(), held_under }
}

/// Counts what comes in and gives it positions, in the order of the queues' ids. The first position of each queue.
async fn count_in(work: &Work, added: &BTreeMap<QueueId, &Place>) -> Outcome<BTreeMap<QueueId, i64>> {
    let late: BTreeSet<QueueId> = added.keys().copied().collect();
    // A queue that was locked at the beginning is locked already.
    queues::lock_entries(work, &late).await?;
    let rows = Columns::of(added, |to, (id, place)| {
        to.key(*id);
        to.int(place.added);
        to.int(place.added_bytes);
        to.flag(place.ordered);
    });
    let sql = format!(
        "UPDATE queue_entry AS e SET next_position = e.next_position + n.added, accepted = e.accepted + n.added, \
         entered = e.entered + n.added, entered_bytes = e.entered_bytes + n.bytes FROM {} AS n (id, added, bytes, ordered) \
         WHERE e.id = n.id AND e.ordered = n.ordered AND NOT e.deleted RETURNING e.id, e.next_position - n.added",
        rows.unnest(1)
    );
    let first = work
        .changed(&sql, &rows.params(), |row| {
            let mut at = Cells::of(row);
            Ok((QueueId::from_u128(at.id()?), at.take()?))
        })
        .await;
    let first = first?;
    if first.len() < added.len() {
        let why = "a connection was changed while something was stored for it".to_owned();
        return Err(Fault::Again(StoreError::Unavailable(why)));
    }
    Ok(first.into_iter().collect())
}

pub(super) fn push_new<'a>(
    to: &mut Columns<'a>,
    new: &'a NewDelivery,
    progress: &'a Progress,
    recorded: u32,
) -> Result<(), StoreError> {
    to.key(new.id);
    to.key(new.project_id);
    to.key(new.connection_id);
    to.text(new.cid.as_str());
    // Ours say when they were given, so only a caller's own need an index; most rows are in none.
    to.optional_flag((new.cid.made_at() != Some(new.created_at)).then_some(true));
    to.text(new.origin.as_str());
    to.time(new.created_at);
    to.text(json(&new.head)?);
    to.optional_key(new.event.as_ref().map(|event| event.id));
    let event = new.event.as_ref();
    to.optional_text(event.map(|event| event.event_type.as_str()));
    to.optional_time(event.map(|event| event.happened_at));
    to.optional_key(event.map(|event| event.subscription_id));
    to.optional_text(event.map(|event| event.payload.as_str()));
    to.optional_int(event.and_then(|event| event.line).map(|line| line.0));
    match &new.ladder {
        Some(ladder) => to.text(json(ladder)?),
        None => to.optional_text(None),
    }
    let changing = Changing {
        body_id: new.body.id,
        body_bytes: new.body.bytes.len() as u64,
        original_body_id: None,
        version: FIRST_VERSION,
        recorded,
        progress,
    };
    push_changing(to, &changing);
    Ok(())
}

async fn insert_hot(work: &Work, admitted: &[Admitted<'_>], first: &BTreeMap<QueueId, i64>) -> Outcome<()> {
    // A claim that did not hold is stored unspent.
    let progresses: Vec<Progress> = admitted
        .iter()
        .map(|one| match (one.token, one.new.progress.status) {
            (None, Status::Processing) => unclaimed(one.new.progress.clone()),
            _ => one.new.progress.clone(),
        })
        .collect();
    let mut rows = Columns::default();
    for (one, progress) in admitted.iter().zip(&progresses) {
        push_new(&mut rows, one.new, progress, 0)?;
        rows.int(one.position(first).0);
        rows.flag(one.by_due);
        rows.optional_int(one.token);
        rows.end_row();
    }
    let sql = format!(
        "INSERT INTO delivery ({FIXED}, {CHANGING}, position, by_due, claim_token) SELECT * FROM {}",
        rows.unnest(1)
    );
    work.write_rows(&sql, &rows).await?;
    Ok(())
}

/// Direct calls go straight to the log (D12). One whose connection has just been deleted is entered as well.
pub(super) async fn record_calls(work: &Work, batch: &[CallRecord]) -> Outcome<()> {
    batch.iter().try_for_each(check_call)?;
    let mut known_keys = Keyed::lock(work, batch.iter().filter_map(|call| call.delivery.idempotency.as_ref())).await?;
    refuse_known_ids(work, batch.iter().map(|call| (call.delivery.id, call.delivery.created_at))).await?;
    for CallRecord { delivery: new, .. } in batch {
        if let Some(given) = &new.idempotency
            && known_keys.repeat_of(given, new.created_at).is_none()
        {
            known_keys.remember(given, new.id);
        }
    }
    known_keys.write(work).await?;
    count_calls(work, batch).await?;
    let new_bodies: Vec<_> = batch.iter().map(|call| &call.delivery.body).collect();
    bodies::add(work, &new_bodies).await?;
    let mut rows = Columns::default();
    for CallRecord { delivery: new, .. } in batch {
        push_new(&mut rows, new, &new.progress, new.progress.attempts)?;
        rows.end_row();
    }
    let sql = format!("INSERT INTO delivery_log ({FIXED}, {CHANGING}) SELECT * FROM {}", rows.unnest(1));
    work.write_rows(&sql, &rows).await?;
    let attempts: Vec<_> =
        batch.iter().flat_map(|call| call.attempts.iter().map(|attempt| (call.delivery.id, attempt))).collect();
    insert_attempts(work, &attempts).await
}

/// They are accepted, and never wait.
async fn count_calls(work: &Work, batch: &[CallRecord]) -> Outcome<()> {
    let mut counts: BTreeMap<QueueId, (i64, &NewDelivery)> = BTreeMap::new();
    for CallRecord { delivery: new, .. } in batch {
        counts.entry(new.connection_id).or_insert((0, new)).0 += 1;
    }
    queues::lock_entries(work, &counts.keys().copied().collect()).await?;
    let rows = Columns::of(&counts, |to, (id, (count, _))| {
        to.key(*id);
        to.int(*count);
    });
    let sql = format!(
        "UPDATE queue_entry AS e SET accepted = e.accepted + n.calls FROM {} AS n (id, calls) WHERE e.id = n.id RETURNING e.id",
        rows.unnest(1)
    );
    let known: BTreeSet<Key> =
        work.changed(&sql, &rows.params(), |row| Cells::of(row).take()).await?.into_iter().collect();
    for (id, (count, new)) in counts.iter().filter(|(id, _)| !known.contains(&id.key())) {
        queues::create(work, *id, new.project_id, new.ordered).await?;
        for table in ["queue_entry", "queue"] {
            work.execute(&format!("UPDATE {table} SET deleted = true WHERE id = $1"), &[&id.key()]).await?;
        }
        work.execute("UPDATE queue_entry SET accepted = $2 WHERE id = $1", &[&id.key(), count]).await?;
    }
    Ok(())
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

pub(super) async fn insert_attempts(
    work: &Work,
    attempts: &[(DeliveryId, &postrider_core::attempt::Attempt)],
) -> Outcome<()> {
    let mut rows = Columns::default();
    for (id, attempt) in attempts {
        push_attempt(&mut rows, *id, attempt)?;
        rows.end_row();
    }
    let sql = format!("INSERT INTO attempt (delivery_id, {ATTEMPT}) SELECT * FROM {}", rows.unnest(1));
    work.write_rows(&sql, &rows).await?;
    Ok(())
}
