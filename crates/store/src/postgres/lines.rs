//! Lines within a queue without order: of each only the foremost may go, and the next one once that has left (R15).
//!
//! It must not know how a line got its number.

use std::collections::BTreeSet;

use postrider_core::id::QueueId;

use super::columns::Columns;
use super::failures::Outcome;
use super::key::Id as _;
use super::work::Work;

/// Lines in which something came, left or got another place.
pub(super) type Touched = BTreeSet<(QueueId, i64)>;

/// Whoever stores into a line and whoever settles in it take turns, so that neither overlooks what the other is about to commit. Held to the
/// end of the transaction; taken before any row is written, in one order.
pub(super) async fn lock(work: &Work, touched: &Touched) -> Outcome<()> {
    if touched.is_empty() {
        return Ok(());
    }
    #[allow(clippy::cast_possible_truncation, reason = "any 64 bits of it will do")]
    let turn = |(queue_id, line): &(QueueId, i64)| (queue_id.as_u128() as i64).rotate_left(1) ^ line;
    let turns: BTreeSet<i64> = touched.iter().map(turn).collect();
    let turns: Vec<i64> = turns.into_iter().collect();
    work.rows("SELECT pg_advisory_xact_lock(turn) FROM unnest($1::bigint[]) AS turn", &[&turns]).await?;
    Ok(())
}

pub(super) fn release_sql(touched: &str) -> String {
    format!(
        "UPDATE delivery AS d SET by_due = true FROM (SELECT h.id FROM {touched} AS t (queue_id, line) \
         JOIN queue_entry AS e ON e.id = t.queue_id AND NOT e.ordered CROSS JOIN LATERAL (SELECT id FROM delivery \
         WHERE connection_id = t.queue_id AND line = t.line AND position IS NOT NULL ORDER BY position LIMIT 1) AS h) AS foremost \
         WHERE d.id = foremost.id AND NOT d.by_due"
    )
}

/// Lets the foremost of each go when its time has come. Whoever comes in, or comes back, does so held back.
pub(super) async fn release(work: &Work, touched: &Touched) -> Outcome<()> {
    let rows = Columns::of(touched, |to, (queue_id, line)| {
        to.key(*queue_id);
        to.int(*line);
    });
    work.write_rows(&release_sql(&rows.unnest(1)), &rows).await?;
    Ok(())
}

/// The same of all lines of a queue whose order was given up.
pub(super) async fn release_all(work: &Work, queue_id: QueueId) -> Outcome<()> {
    let sql = "UPDATE delivery SET by_due = true WHERE NOT by_due AND id IN (SELECT DISTINCT ON (line) id FROM delivery \
         WHERE connection_id = $1 AND line IS NOT NULL AND position IS NOT NULL ORDER BY line, position)";
    work.execute(sql, &[&queue_id.key()]).await?;
    Ok(())
}
