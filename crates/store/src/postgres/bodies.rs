//! Bodies, each stored once with a count of what refers to it: deliveries, log rows, topic messages.

use std::collections::BTreeMap;

use postrider_core::id::BodyId;

use super::columns::Columns;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::work::Work;
use crate::{NewBody, StoreError};

/// Stores each body, or counts the uses more of one that is there. In the order of their ids, as all do.
pub(super) async fn add(work: &Work, bodies: &[&NewBody]) -> Outcome<()> {
    let mut uses: BTreeMap<BodyId, (i64, &NewBody)> = BTreeMap::new();
    for body in bodies {
        uses.entry(body.id).or_insert((0, body)).0 += 1;
    }
    let rows = Columns::of(&uses, |to, (id, (uses, body))| {
        to.key(*id);
        to.int(*uses);
        to.bytes(&body.bytes);
    });
    let sql = format!(
        "INSERT INTO body (id, uses, bytes) SELECT * FROM {} ON CONFLICT (id) DO UPDATE SET uses = body.uses + excluded.uses",
        rows.unnest(1)
    );
    work.write_rows(&sql, &rows).await?;
    Ok(())
}

/// One use more of a body that is there.
pub(super) async fn share(work: &Work, id: BodyId) -> Outcome<()> {
    let shared = work.execute("UPDATE body SET uses = uses + 1 WHERE id = $1", &[&id.key()]).await?;
    if shared == 1 { Ok(()) } else { Err(StoreError::Corrupt(format!("the body {id} is missing")).into()) }
}

/// So many uses less of each; how many bodies went with their last use.
pub(super) async fn drop_uses(work: &Work, ids: impl IntoIterator<Item = Key>) -> Outcome<u64> {
    let mut uses: BTreeMap<Key, i64> = BTreeMap::new();
    for id in ids {
        *uses.entry(id).or_default() += 1;
    }
    let (keys, counts): (Vec<Key>, Vec<i64>) = uses.into_iter().unzip();
    if keys.is_empty() {
        return Ok(0);
    }
    work.rows("SELECT 1 FROM body WHERE id = ANY($1) ORDER BY id FOR UPDATE", &[&keys]).await?;
    let meant = "unnest($1::uuid[], $2::bigint[]) AS n (id, uses) WHERE body.id = n.id";
    let gone = format!("DELETE FROM body USING {meant} AND body.uses <= n.uses");
    let gone = work.execute(&gone, &[&keys, &counts]).await?;
    if gone < keys.len() as u64 {
        work.execute(&format!("UPDATE body SET uses = body.uses - n.uses FROM {meant}"), &[&keys, &counts]).await?;
    }
    Ok(gone)
}
