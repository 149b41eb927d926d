//! Sources of incoming webhooks, and what they brought. It must not know what a signature is.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::id::{EventId, ProjectId, SourceId};
use postrider_core::source::{Source, SourceSpec};
use tokio_postgres::Row;

use super::columns::Param;
use super::configuration::require_project;
use super::failures::Outcome;
use super::key::Id as _;
use super::rows::{Cells, from_json, json};
use super::work::Work;
use super::{PostgresStore, audit, events, intake, settle};
use crate::audit::AuditEntry;
use crate::{
    Arrival, Enqueued, NewDelivery, PublishedEvent, Receipt, Received, Renewed, Settled, Settlement, SourceKeys,
    SourceRow, Sources, StoreError,
};

const COLUMNS: &str = "id, project_id, name, topic, written, token_hash, former_token_hash, former_token_until, sealed, former_sealed, \
     former_sealed_until, version, created_at, updated_at";
const MISSING: StoreError = StoreError::NotFound { what: "source" };

#[async_trait]
impl Sources for PostgresStore {
    async fn all_sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        self.read((), |work, ()| all(work).boxed()).await
    }

    async fn reseal_source(&self, id: SourceId, keys: &SourceKeys, version: u32) -> Result<(), StoreError> {
        let data = (id, keys.clone(), version);
        self.write(data, |work, (id, keys, version)| reseal(work, *id, keys, *version).boxed()).await
    }

    async fn receive(&self, arrival: Arrival) -> Result<Received, StoreError> {
        self.write(arrival, |work, arrival| receive(work, arrival).boxed()).await
    }

    async fn renew_forward(
        &self,
        settlement: Settlement,
        new: NewDelivery,
        entry: AuditEntry,
    ) -> Result<Renewed, StoreError> {
        let data = (settlement, new, entry);
        self.write(data, |work, (settlement, new, entry)| renew(work, settlement, new, entry).boxed()).await
    }

    async fn prune_receipts(&self, now: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write((now, rows_max), |work, (now, rows_max)| prune(work, *now, *rows_max).boxed()).await
    }
}

async fn all(work: &Work) -> Outcome<Vec<SourceRow>> {
    work.all(&format!("SELECT {COLUMNS} FROM webhook_source ORDER BY id"), &[], read).await
}

async fn receive(work: &Work, arrival: &Arrival) -> Outcome<Received> {
    let source = arrival.source_id.key();
    if !work.exists("SELECT 1 FROM webhook_source WHERE id = $1 FOR SHARE", &[&source]).await? {
        return Err(MISSING.into());
    }
    let (id, now) = (arrival.event.message.id, arrival.event.message.published_at);
    // Two servers that are given the same webhook at once take turns; in one order, so that neither waits for the other for ever.
    let mut turns: Vec<i64> = arrival.by_id.iter().chain(&arrival.by_signature).map(turn).collect();
    turns.sort_unstable();
    for turn in turns {
        work.rows("SELECT pg_advisory_xact_lock($1)", &[&turn]).await?;
    }
    if let Some(before) = known(work, arrival.by_id.as_ref(), now).await? {
        return Ok(Received::SameId(before));
    }
    if let Some(before) = known(work, arrival.by_signature.as_ref(), now).await? {
        return Ok(Received::SameSignature(before));
    }
    let answers = match events::publish(work, &arrival.event).await? {
        PublishedEvent::Stored(answers) => answers,
        PublishedEvent::Repeated => return Ok(Received::SameId(id)),
    };
    for receipt in arrival.by_id.iter().chain(&arrival.by_signature) {
        let sql = "INSERT INTO webhook_receipt (hash, event_id, ends_at) VALUES ($1, $2, $3) \
             ON CONFLICT (hash) DO UPDATE SET event_id = excluded.event_id, ends_at = excluded.ends_at";
        work.execute(sql, &[&&receipt.hash[..], &id.key(), &receipt.ends_at.as_millis()]).await?;
    }
    Ok(Received::Stored(answers))
}

fn turn(receipt: &Receipt) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&receipt.hash[..8]);
    i64::from_be_bytes(bytes)
}

async fn known(work: &Work, receipt: Option<&Receipt>, now: Timestamp) -> Outcome<Option<EventId>> {
    let Some(receipt) = receipt else { return Ok(None) };
    let sql = "SELECT event_id FROM webhook_receipt WHERE hash = $1 AND ends_at > $2";
    let params: [Param<'_>; 2] = [&&receipt.hash[..], &now.as_millis()];
    work.first(sql, &params, |row| Ok(EventId::from_u128(Cells::of(row).id()?))).await
}

async fn renew(work: &Work, settlement: &Settlement, new: &NewDelivery, entry: &AuditEntry) -> Outcome<Renewed> {
    intake::check_room(work, std::slice::from_ref(new)).await?;
    let settled = settle::settle(work, &[settlement]).await?.pop().unwrap_or(Settled::Gone);
    if !matches!(settled, Settled::Applied { .. }) {
        return Ok(Renewed::Not(settled));
    }
    let stored = intake::enqueue(work, &[new]).await?.pop().unwrap_or(Enqueued::NoConnection);
    match stored {
        // Somebody else took the room since it was looked at.
        Enqueued::Full { limit } => Err(StoreError::Full { limit }.into()),
        Enqueued::NoConnection => Err(StoreError::NotFound { what: "connection" }.into()),
        stored => {
            audit::insert(work, entry).await?;
            Ok(Renewed::Stored(stored))
        }
    }
}

async fn prune(work: &Work, now: Timestamp, rows_max: u32) -> Outcome<u64> {
    let sql = "DELETE FROM webhook_receipt WHERE hash IN \
         (SELECT hash FROM webhook_receipt WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    work.execute(sql, &[&now.as_millis(), &i64::from(rows_max)]).await
}

async fn reseal(work: &Work, id: SourceId, keys: &SourceKeys, version: u32) -> Outcome<()> {
    work.tell_of_configuration();
    require_version(work, id, version).await?;
    let (former, until) = keys.former_sealed.clone().unzip();
    let sql = "UPDATE webhook_source SET sealed = $2, former_sealed = $3, former_sealed_until = $4 WHERE id = $1";
    let params: [Param<'_>; 4] = [&id.key(), &keys.sealed, &former, &until.map(Timestamp::as_millis)];
    work.execute(sql, &params).await?;
    Ok(())
}

fn read(row: &Row) -> Result<SourceRow, StoreError> {
    let mut at = Cells::of(row);
    let (id, project_id) = (SourceId::from_u128(at.id()?), ProjectId::from_u128(at.id()?));
    let name: String = at.take()?;
    let _topic: String = at.take()?;
    let written = from_json(at.text()?, "a source")?;
    let spec = SourceSpec::parse(&name, &written).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StoreError::Corrupt(format!("the source `{name}`: {}", errors.join("; ")))
    })?;
    let bad = |_| StoreError::Corrupt(format!("the source `{name}` has a token's hash that is none"));
    let token_hash = at.take::<&[u8]>()?.try_into().map_err(bad)?;
    let former = at.take::<Option<&[u8]>>()?.map(<[u8; 32]>::try_from).transpose().map_err(bad)?;
    let keys = SourceKeys {
        token_hash,
        former_token: former.zip(at.optional_time()?),
        sealed: at.take()?,
        former_sealed: at.take::<Option<String>>()?.zip(at.optional_time()?),
    };
    let version = at.number()?;
    let (created_at, updated_at) = (at.time()?, at.time()?);
    Ok(SourceRow { source: Source { id, project_id, name, written, spec, version, created_at, updated_at }, keys })
}

pub(super) async fn create(work: &Work, row: &SourceRow) -> Outcome<()> {
    work.tell_of_configuration();
    let source = &row.source;
    // Locked alone: of two sources of one name or topic, the second one sees the first.
    require_project(work, source.project_id, "FOR UPDATE").await?;
    if work.exists("SELECT 1 FROM webhook_source WHERE id = $1", &[&source.id.key()]).await? {
        return Err(StoreError::Conflict(format!("there is a source {} already", source.id)).into());
    }
    refuse_taken(work, source).await?;
    insert(work, row).await
}

async fn insert(work: &Work, row: &SourceRow) -> Outcome<()> {
    let source = &row.source;
    let sql = format!(
        "INSERT INTO webhook_source ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    );
    let (former_token, token_until) = row.keys.former_token.unzip();
    let (former_sealed, sealed_until) = row.keys.former_sealed.clone().unzip();
    let former_token = former_token.as_ref().map(|hash| &hash[..]);
    let params: [Param<'_>; 14] = [
        &source.id.key(),
        &source.project_id.key(),
        &source.name,
        &source.spec.topic.as_str(),
        &json(&source.written)?,
        &&row.keys.token_hash[..],
        &former_token,
        &token_until.map(Timestamp::as_millis),
        &row.keys.sealed,
        &former_sealed,
        &sealed_until.map(Timestamp::as_millis),
        &i64::from(source.version),
        &source.created_at.as_millis(),
        &source.updated_at.as_millis(),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

/// All of it anew, under the same id.
pub(super) async fn replace(work: &Work, row: &SourceRow, version: u32) -> Outcome<()> {
    work.tell_of_configuration();
    require_project(work, row.source.project_id, "FOR UPDATE").await?;
    require_version(work, row.source.id, version).await?;
    refuse_taken(work, &row.source).await?;
    work.execute("DELETE FROM webhook_source WHERE id = $1", &[&row.source.id.key()]).await?;
    insert(work, row).await
}

pub(super) async fn delete(work: &Work, id: SourceId) -> Outcome<()> {
    work.tell_of_configuration();
    let gone = work.execute("DELETE FROM webhook_source WHERE id = $1", &[&id.key()]).await?;
    if gone == 0 { Err(MISSING.into()) } else { Ok(()) }
}

async fn require_version(work: &Work, id: SourceId, version: u32) -> Outcome<()> {
    let sql = "SELECT version, name FROM webhook_source WHERE id = $1 FOR UPDATE";
    let stored = work
        .first(sql, &[&id.key()], |row| {
            let mut at = Cells::of(row);
            Ok((at.number::<u32>()?, at.take::<String>()?))
        })
        .await?;
    let (stored, name) = stored.ok_or(MISSING)?;
    if stored == version {
        return Ok(());
    }
    Err(StoreError::Conflict(format!("the source `{name}` has changed since")).into())
}

async fn refuse_taken(work: &Work, source: &Source) -> Outcome<()> {
    let sql = "SELECT name, topic FROM webhook_source WHERE project_id = $1 AND (name = $2 OR topic = $3) AND id <> $4";
    let params: [Param<'_>; 4] =
        [&source.project_id.key(), &source.name, &source.spec.topic.as_str(), &source.id.key()];
    let taken = work
        .first(sql, &params, |row| {
            let mut at = Cells::of(row);
            Ok((at.take::<String>()?, at.take::<String>()?))
        })
        .await?;
    let why = match taken {
        None => return Ok(()),
        Some((name, _)) if name == source.name => format!("there is a source `{name}` in this project already"),
        Some((name, topic)) => format!("the source `{name}` has the topic `{topic}` already"),
    };
    Err(StoreError::Conflict(why).into())
}
