//! Sources of incoming webhooks, and what they brought. It must not know what a signature is.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{EventId, ProjectId, SourceId};
use postrider_core::source::{Source, SourceSpec};
use rusqlite::Row;

use super::rows::{Columns, from_json, json, key, read_all};
use super::work::Work;
use super::{SqliteStore, audit, events, intake, queues, settle};
use crate::audit::AuditEntry;
use crate::{
    Arrival, Enqueued, NewDelivery, PublishedEvent, Receipt, Received, Renewed, Settled, Settlement, SourceKeys,
    SourceRow, Sources, StoreError,
};

const COLUMNS: &str = "id, project_id, name, topic, written, token_hash, former_token_hash, former_token_until, sealed, former_sealed, \
     former_sealed_until, version, created_at, updated_at";
const MISSING: StoreError = StoreError::NotFound { what: "source" };

#[async_trait]
impl Sources for SqliteStore {
    async fn all_sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM webhook_source ORDER BY id");
        self.read(move |connection| read_all(connection, &sql, &[], read)).await
    }

    async fn reseal_source(&self, id: SourceId, keys: &SourceKeys, version: u32) -> Result<(), StoreError> {
        let keys = keys.clone();
        self.write(move |work| {
            require_version(work, id, version)?;
            let (former, until) = keys.former_sealed.clone().unzip();
            let sql =
                "UPDATE webhook_source SET sealed = ?2, former_sealed = ?3, former_sealed_until = ?4 WHERE id = ?1";
            work.execute(sql, &[&key(id.as_u128()), &keys.sealed, &former, &until.map(Timestamp::as_millis)])?;
            Ok(())
        })
        .await
    }

    async fn receive(&self, arrival: Arrival) -> Result<Received, StoreError> {
        self.write(move |work| receive(work, &arrival)).await
    }

    async fn renew_forward(
        &self,
        settlement: Settlement,
        new: NewDelivery,
        entry: AuditEntry,
    ) -> Result<Renewed, StoreError> {
        self.write(move |work| renew(work, &settlement, &new, &entry)).await
    }

    async fn prune_receipts(&self, now: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write(move |work| {
            let sql = "DELETE FROM webhook_receipt WHERE hash IN \
                 (SELECT hash FROM webhook_receipt WHERE ends_at <= ?1 ORDER BY ends_at LIMIT ?2)";
            Ok(work.execute(sql, &[&now.as_millis(), &rows_max])? as u64)
        })
        .await
    }
}

fn receive(work: &Work, arrival: &Arrival) -> Result<Received, StoreError> {
    let source = key(arrival.source_id.as_u128());
    if work.first("SELECT 1 FROM webhook_source WHERE id = ?1", &[&source], |_| Ok(()))?.is_none() {
        return Err(MISSING);
    }
    let (id, now) = (arrival.event.message.id, arrival.event.message.published_at);
    if let Some(before) = known(work, arrival.by_id.as_ref(), now)? {
        return Ok(Received::SameId(before));
    }
    if let Some(before) = known(work, arrival.by_signature.as_ref(), now)? {
        return Ok(Received::SameSignature(before));
    }
    let answers = match events::publish(work, &arrival.event)? {
        PublishedEvent::Stored(answers) => answers,
        PublishedEvent::Repeated => return Ok(Received::SameId(id)),
    };
    for receipt in arrival.by_id.iter().chain(&arrival.by_signature) {
        let sql = "INSERT INTO webhook_receipt (hash, event_id, ends_at) VALUES (?1, ?2, ?3) \
             ON CONFLICT (hash) DO UPDATE SET event_id = excluded.event_id, ends_at = excluded.ends_at";
        work.execute(sql, &[&receipt.hash, &key(id.as_u128()), &receipt.ends_at.as_millis()])?;
    }
    Ok(Received::Stored(answers))
}

fn known(work: &Work, receipt: Option<&Receipt>, now: Timestamp) -> Result<Option<EventId>, StoreError> {
    let Some(receipt) = receipt else { return Ok(None) };
    let sql = "SELECT event_id FROM webhook_receipt WHERE hash = ?1 AND ends_at > ?2";
    work.first(sql, &[&receipt.hash, &now.as_millis()], |row| Ok(EventId::from_u128(Columns { row, next: 0 }.id()?)))
}

fn renew(work: &Work, settlement: &Settlement, new: &NewDelivery, entry: &AuditEntry) -> Result<Renewed, StoreError> {
    work.space.check()?;
    events::check_room(work, std::slice::from_ref(new))?;
    if queues::find(work, new.connection_id)?.is_none_or(|queue| queue.deleted) {
        return Ok(Renewed::Not(Settled::Gone));
    }
    let settled = settle::settle(work, &[settlement])?.pop().unwrap_or(Settled::Gone);
    if !matches!(settled, Settled::Applied { .. }) {
        return Ok(Renewed::Not(settled));
    }
    let stored = intake::enqueue(work, &[new])?.pop().unwrap_or(Enqueued::NoConnection);
    audit::insert(work, entry)?;
    Ok(Renewed::Stored(stored))
}

fn read(row: &Row<'_>) -> Result<SourceRow, StoreError> {
    let mut at = Columns { row, next: 0 };
    let (id, project_id) = (SourceId::from_u128(at.id()?), ProjectId::from_u128(at.id()?));
    let name: String = at.take()?;
    let _topic: String = at.take()?;
    let written = from_json(at.text()?, "a source")?;
    let spec = SourceSpec::parse(&name, &written).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StoreError::Corrupt(format!("the source `{name}`: {}", errors.join("; ")))
    })?;
    let keys = SourceKeys {
        token_hash: at.take()?,
        former_token: at.take::<Option<[u8; 32]>>()?.zip(at.time()?),
        sealed: at.take()?,
        former_sealed: at.take::<Option<String>>()?.zip(at.time()?),
    };
    let version = at.take()?;
    let (created_at, updated_at) = (Timestamp::from_millis(at.take()?), Timestamp::from_millis(at.take()?));
    Ok(SourceRow { source: Source { id, project_id, name, written, spec, version, created_at, updated_at }, keys })
}

pub(super) fn create(work: &Work, row: &SourceRow) -> Result<(), StoreError> {
    let source = &row.source;
    let project = key(source.project_id.as_u128());
    if work.first("SELECT 1 FROM project WHERE id = ?1", &[&project], |_| Ok(()))?.is_none() {
        return Err(StoreError::NotFound { what: "project" });
    }
    let id = key(source.id.as_u128());
    if work.first("SELECT 1 FROM webhook_source WHERE id = ?1", &[&id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Conflict(format!("there is a source {} already", source.id)));
    }
    refuse_taken(work, source)?;
    let sql = format!(
        "INSERT INTO webhook_source ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    );
    let ((former_token, token_until), (former_sealed, sealed_until)) =
        (row.keys.former_token.unzip(), row.keys.former_sealed.clone().unzip());
    work.execute(
        &sql,
        &[
            &id,
            &project,
            &source.name,
            &source.spec.topic.as_str(),
            &json(&source.written)?,
            &row.keys.token_hash,
            &former_token,
            &token_until.map(Timestamp::as_millis),
            &row.keys.sealed,
            &former_sealed,
            &sealed_until.map(Timestamp::as_millis),
            &source.version,
            &source.created_at.as_millis(),
            &source.updated_at.as_millis(),
        ],
    )?;
    Ok(())
}

/// All of it anew, under the same id.
pub(super) fn replace(work: &Work, row: &SourceRow, version: u32) -> Result<(), StoreError> {
    require_version(work, row.source.id, version)?;
    refuse_taken(work, &row.source)?;
    work.execute("DELETE FROM webhook_source WHERE id = ?1", &[&key(row.source.id.as_u128())])?;
    create(work, row)
}

pub(super) fn delete(work: &Work, id: SourceId) -> Result<(), StoreError> {
    let gone = work.execute("DELETE FROM webhook_source WHERE id = ?1", &[&key(id.as_u128())])?;
    if gone == 0 { Err(MISSING) } else { Ok(()) }
}

fn require_version(work: &Work, id: SourceId, version: u32) -> Result<(), StoreError> {
    let sql = "SELECT version, name FROM webhook_source WHERE id = ?1";
    let stored = work.first(sql, &[&key(id.as_u128())], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)))?;
    let (stored, name) = stored.ok_or(MISSING)?;
    if stored == version {
        return Ok(());
    }
    Err(StoreError::Conflict(format!("the source `{name}` has changed since")))
}

fn refuse_taken(work: &Work, source: &Source) -> Result<(), StoreError> {
    let sql = "SELECT name, topic FROM webhook_source WHERE project_id = ?1 AND (name = ?2 OR topic = ?3) AND id <> ?4";
    let topic = source.spec.topic.as_str();
    let values = (key(source.project_id.as_u128()), key(source.id.as_u128()));
    let taken = work.first(sql, &[&values.0, &source.name, &topic, &values.1], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    match taken {
        None => Ok(()),
        Some((name, _)) if name == source.name => {
            Err(StoreError::Conflict(format!("there is a source `{name}` in this project already")))
        }
        Some((name, topic)) => {
            Err(StoreError::Conflict(format!("the source `{name}` has the topic `{topic}` already")))
        }
    }
}
