//! The owner's window: what it loads or claims of its queue. It must not know what becomes of it.

use std::collections::BTreeSet;

use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Position};

use super::columns::Columns;
use super::failures::Outcome;
use super::key::Id as _;
use super::queues::{self, Lock};
use super::rows::{CHANGING, Cells, FIXED, hot_columns, prefixed, read_delivery, read_delivery_at, signed};
use super::work::Work;
use crate::{Loaded, QueueLease, StoreError, WindowLimit};

/// What an owner asks of an unordered queue.
pub(super) struct Claim {
    pub lease: QueueLease,
    pub now: Timestamp,
    pub limit: WindowLimit,
}

impl Claim {
    pub fn rows_max(&self) -> usize {
        self.limit.deliveries_max as usize
    }
}

fn read_loaded(at: &mut Cells<'_>) -> Result<Loaded, StoreError> {
    let delivery = read_delivery_at(at)?;
    Ok(Loaded { delivery, body: at.body()? })
}

/// Columns of `d` with the body of `b` behind.
fn with_body() -> String {
    format!("{}, {}, d.position, b.bytes", prefixed("d.", FIXED), prefixed("d.", CHANGING))
}

const HELD_SQL: &str = "SELECT 1 FROM queue WHERE id = $1 AND owner = $2 AND token = $3";

/// Whether the lease still holds, as a reader sees it.
pub(super) async fn check_lease(work: &Work, lease: &QueueLease) -> Outcome<()> {
    let params: [super::columns::Param<'_>; 3] = [&lease.queue_id.key(), &lease.worker_id.key(), &lease.token.0];
    if work.exists(HELD_SQL, &params).await? { Ok(()) } else { Err(StoreError::LeaseLost.into()) }
}

/// The bodies of the window are counted before any is read. The first row fits always.
pub(super) fn load_sql() -> String {
    format!(
        "SELECT {} FROM (SELECT w.*, row_number() OVER line AS rank, sum(w.body_bytes) OVER line AS bytes_so_far FROM (\
         SELECT * FROM delivery WHERE connection_id = $1 AND position > $2 AND position IS NOT NULL AND NOT by_due \
         ORDER BY position LIMIT $3) AS w WINDOW line AS (ORDER BY w.position)) AS d JOIN body AS b ON b.id = d.body_id \
         WHERE d.rank = 1 OR d.bytes_so_far <= $4::bigint ORDER BY d.position",
        with_body()
    )
}

pub(super) async fn load(
    work: &Work,
    lease: &QueueLease,
    after: Option<Position>,
    limit: WindowLimit,
) -> Outcome<Vec<Loaded>> {
    let behind = after.map_or(i64::MIN, |position| position.0);
    let (key, rows, bytes) = (lease.queue_id.key(), i64::from(limit.deliveries_max), signed(limit.bytes_max));
    let sql = load_sql();
    let params: [super::columns::Param<'_>; 4] = [&key, &behind, &rows, &bytes];
    let loaded = work.all(&sql, &params, |row| read_loaded(&mut Cells::of(row)));
    // Both are under way together: what is loaded under a lease that ends meanwhile cannot be settled.
    let (loaded, ()) = tokio::try_join!(loaded, check_lease(work, lease))?;
    Ok(loaded)
}

/// Several claims in one statement. Of each queue fresh ones go before old retries, in each by due time; the same change as
/// `Progress::begun`.
pub(super) fn claim_sql(wanted: &str) -> String {
    let due = |tried: &str| {
        format!(
            "(SELECT id, tried, due_at, body_bytes FROM delivery WHERE connection_id = w.queue_id AND {tried} AND due_at <= w.now \
             AND by_due AND position IS NOT NULL AND status = 'PENDING' ORDER BY due_at, id LIMIT w.rows_max)"
        )
    };
    format!(
        "UPDATE delivery AS d SET status = 'PROCESSING', attempts = d.attempts + 1, round_attempts = d.round_attempts + 1, \
         last_attempt_at = c.now, claim_token = c.token, version = d.version + 1 FROM (\
         SELECT w.nr, w.now, w.token, p.id, p.rank FROM {wanted} AS w (nr, queue_id, token, now, rows_max, bytes_max) \
         CROSS JOIN LATERAL (SELECT id, rank FROM (SELECT id, row_number() OVER line AS rank, sum(body_bytes) OVER line AS bytes_so_far \
         FROM ({} UNION ALL {}) AS due WINDOW line AS (ORDER BY tried, due_at, id)) AS ranked \
         WHERE rank <= w.rows_max AND (rank = 1 OR bytes_so_far <= w.bytes_max)) AS p) AS c \
         JOIN body AS b ON true WHERE d.id = c.id AND b.id = d.body_id RETURNING {}, c.nr, c.rank",
        due("NOT tried"),
        due("tried"),
        with_body()
    )
}

/// `None` for a claim whose lease has ended.
pub(super) async fn claim_all(work: &Work, claims: &[&Claim]) -> Outcome<Vec<Option<Vec<Loaded>>>> {
    let ids: BTreeSet<_> = claims.iter().map(|claim| claim.lease.queue_id).collect();
    let held = queues::lock(work, &ids, Lock::Share).await?;
    let holds = |claim: &Claim| held.get(&claim.lease.queue_id).is_some_and(|queue| queue.is_held_under(&claim.lease));
    let mut answers: Vec<Option<Vec<Loaded>>> = claims.iter().map(|claim| holds(claim).then(Vec::new)).collect();
    let mut rest: Vec<usize> = (0..claims.len()).filter(|nr| answers[*nr].is_some()).collect();
    while !rest.is_empty() {
        // A second claim of one queue must see the first one.
        let mut seen = BTreeSet::new();
        let (now, later): (Vec<usize>, Vec<usize>) =
            rest.into_iter().partition(|nr| seen.insert(claims[*nr].lease.queue_id));
        claim_run(work, claims, &now, &mut answers).await?;
        rest = later;
    }
    Ok(answers)
}

async fn claim_run(work: &Work, claims: &[&Claim], run: &[usize], answers: &mut [Option<Vec<Loaded>>]) -> Outcome<()> {
    let rows = Columns::of(run, |to, nr| {
        let claim = claims[*nr];
        to.int(i64::try_from(*nr).unwrap_or(i64::MAX));
        to.key(claim.lease.queue_id);
        to.int(claim.lease.token.0);
        to.time(claim.now);
        to.int(claim.limit.deliveries_max);
        to.int(signed(claim.limit.bytes_max));
    });
    let claimed = work
        .changed(&claim_sql(&rows.unnest(1)), &rows.params(), |row| {
            let mut at = Cells::of(row);
            let loaded = read_loaded(&mut at)?;
            let (nr, rank): (i64, i64) = (at.take()?, at.take()?);
            Ok((nr, rank, loaded))
        })
        .await;
    let mut claimed = claimed?;
    claimed.sort_by_key(|(nr, rank, _)| (*nr, *rank));
    for (nr, _, loaded) in claimed {
        let answer = usize::try_from(nr).ok().and_then(|nr| answers.get_mut(nr));
        if let Some(Some(answer)) = answer {
            answer.push(loaded);
        }
    }
    Ok(())
}

pub(super) const NEXT_DUE_SQL: &str = "SELECT min(due_at) FROM (\
     (SELECT due_at FROM delivery WHERE connection_id = $1 AND NOT tried AND by_due AND position IS NOT NULL AND status = 'PENDING' \
     ORDER BY due_at LIMIT 1) UNION ALL \
     (SELECT due_at FROM delivery WHERE connection_id = $1 AND tried AND by_due AND position IS NOT NULL AND status = 'PENDING' \
     ORDER BY due_at LIMIT 1)) AS next";

pub(super) async fn next_due(work: &Work, lease: &QueueLease) -> Outcome<Option<Timestamp>> {
    check_lease(work, lease).await?;
    let due = work.first(NEXT_DUE_SQL, &[&lease.queue_id.key()], |row| Cells::of(row).optional_time()).await?;
    Ok(due.flatten())
}

pub(super) fn former_claims_sql() -> String {
    format!(
        "SELECT {} FROM delivery WHERE connection_id = $1 AND status = 'PROCESSING' AND coalesce(claim_token, 0) < $2 \
         ORDER BY position LIMIT $3",
        hot_columns()
    )
}

pub(super) async fn claimed_by_former_owner(work: &Work, lease: &QueueLease, rows_max: u32) -> Outcome<Vec<Delivery>> {
    check_lease(work, lease).await?;
    let params: [super::columns::Param<'_>; 3] = [&lease.queue_id.key(), &lease.token.0, &i64::from(rows_max)];
    work.all(&former_claims_sql(), &params, read_delivery).await
}
