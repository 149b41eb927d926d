//! Bodies, each stored once with a count of what refers to it: deliveries, log rows, topic messages.

use postrider_core::id::BodyId;

use super::rows::{key, signed};
use super::work::{Work, read_rows, write_rows};
use crate::{NewBody, StoreError};

/// Stores each body, or counts a use more of one that is there. Deliveries of one event stand next to each other, and their body goes over
/// once.
pub(super) fn add(work: &Work, bodies: &[&NewBody]) -> Result<(), StoreError> {
    let (before, after) =
        ("INSERT INTO body (id, uses, bytes) VALUES ", " ON CONFLICT (id) DO UPDATE SET uses = uses + excluded.uses");
    let runs: Vec<&[&NewBody]> = bodies.chunk_by(|a, b| a.id == b.id).collect();
    write_rows(work, (before, 3, after), &runs, |to, run| {
        let Some(body) = run.first() else { return Ok(()) };
        to.push(key(body.id.as_u128()))?;
        to.push(signed(run.len() as u64))?;
        to.push(&body.bytes[..])
    })
}

/// One use more of a body that is there.
pub(super) fn share(work: &Work, id: BodyId) -> Result<(), StoreError> {
    let shared = work.execute("UPDATE body SET uses = uses + 1 WHERE id = ?1", &[&key(id.as_u128())])?;
    if shared == 1 { Ok(()) } else { Err(StoreError::Corrupt(format!("the body {id} is missing"))) }
}

/// One use less of each; how many bodies went with their last use.
pub(super) fn drop_uses(work: &Work, ids: &[[u8; 16]]) -> Result<u64, StoreError> {
    // Most bodies have one use, so most go in one statement; the others are counted down one by one.
    let mut shared = Vec::new();
    read_rows(work, ("SELECT id FROM body WHERE uses > 1 AND id IN ", ""), ids, |row| {
        shared.push(row.get::<_, [u8; 16]>(0)?);
        Ok(())
    })?;
    let (many, once): (Vec<[u8; 16]>, Vec<[u8; 16]>) = ids.iter().partition(|id| shared.contains(id));
    let mut gone = 0;
    for id in many {
        work.execute("UPDATE body SET uses = uses - 1 WHERE id = ?1", &[&id])?;
        gone += work.execute("DELETE FROM body WHERE id = ?1 AND uses = 0", &[&id])? as u64;
    }
    let before = work.connection.total_changes();
    super::work::change_rows(work, "DELETE FROM body WHERE id IN ", &once)?;
    Ok(gone + (work.connection.total_changes() - before))
}
