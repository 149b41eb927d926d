//! API keys, as hashes. It must not know what a scope allows.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::access::ScopeSet;
use postrider_core::id::{KeyId, ProjectId};
use rusqlite::Row;

use super::SqliteStore;
use super::configuration::require_project;
use super::rows::{Columns, key, read_all};
use super::work::Work;
use crate::StoreError;
use crate::credentials::{ApiKey, Credentials, FormerKey, KEYS_MAX, KeyHash};

const COLUMNS: &str = "id, project_id, name, scopes, hash, hint, former_hash, former_until, version, created_at, rotated_at, expires_at, \
     last_used_at";

#[async_trait]
impl Credentials for SqliteStore {
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM api_key ORDER BY id");
        self.read(move |connection| read_all(connection, &sql, &[], read)).await
    }

    async fn note_keys_used(&self, used: Vec<(KeyId, Timestamp)>) -> Result<(), StoreError> {
        self.write(move |work| {
            for (id, at) in &used {
                work.execute(
                    "UPDATE api_key SET last_used_at = ?2 WHERE id = ?1 AND coalesce(last_used_at < ?2, 1)",
                    &[&key(id.as_u128()), &at.as_millis()],
                )?;
            }
            Ok(())
        })
        .await
    }
}

fn read(row: &Row<'_>) -> Result<ApiKey, StoreError> {
    let mut at = Columns { row, next: 0 };
    let id = KeyId::from_u128(at.id()?);
    let project_id = at.optional_id()?.map(ProjectId::from_u128);
    let name = at.take()?;
    let scopes = at.word(|text| ScopeSet::parse(text.split(',')).ok())?;
    let (hash, hint) = (KeyHash(at.take()?), at.take()?);
    let former = match (at.take::<Option<[u8; 32]>>()?, at.time()?) {
        (Some(hash), Some(works_until)) => Some(FormerKey { hash: KeyHash(hash), works_until }),
        _ => None,
    };
    Ok(ApiKey {
        id,
        project_id,
        name,
        scopes,
        hash,
        hint,
        former,
        version: at.take()?,
        created_at: Timestamp::from_millis(at.take()?),
        rotated_at: at.time()?,
        expires_at: at.time()?,
        last_used_at: at.time()?,
    })
}

fn refuse_taken_name(work: &Work, new: &ApiKey) -> Result<(), StoreError> {
    let project = new.project_id.map(|id| key(id.as_u128()));
    let taken = work.first(
        "SELECT 1 FROM api_key WHERE coalesce(project_id, x'') = coalesce(?1, x'') AND name = ?2 AND id <> ?3",
        &[&project, &new.name, &key(new.id.as_u128())],
        |_| Ok(()),
    )?;
    match taken {
        Some(()) => Err(StoreError::Conflict(format!("there is a key `{}` already", new.name))),
        None => Ok(()),
    }
}

pub(super) fn create(work: &Work, new: &ApiKey) -> Result<(), StoreError> {
    if let Some(project_id) = new.project_id {
        require_project(work, project_id)?;
    }
    refuse_taken_name(work, new)?;
    let count: i64 = work.first("SELECT count(*) FROM api_key", &[], |row| Ok(row.get(0)?))?.unwrap_or_default();
    if count >= i64::try_from(KEYS_MAX).unwrap_or(i64::MAX) {
        return Err(StoreError::Full { limit: "keys_max" });
    }
    write(work, new)
}

pub(super) fn replace(work: &Work, new: &ApiKey, version: u32) -> Result<(), StoreError> {
    let sql = "SELECT version FROM api_key WHERE id = ?1";
    let stored = work.first(sql, &[&key(new.id.as_u128())], |row| Ok(row.get::<_, u32>(0)?))?;
    match stored {
        None => return Err(StoreError::NotFound { what: "key" }),
        Some(stored) if stored != version => {
            return Err(StoreError::Conflict(format!("the key `{}` has changed meanwhile", new.name)));
        }
        Some(_) => {}
    }
    refuse_taken_name(work, new)?;
    write(work, new)
}

pub(super) fn delete(work: &Work, id: KeyId) -> Result<(), StoreError> {
    match work.execute("DELETE FROM api_key WHERE id = ?1", &[&key(id.as_u128())])? {
        0 => Err(StoreError::NotFound { what: "key" }),
        _ => Ok(()),
    }
}

fn write(work: &Work, new: &ApiKey) -> Result<(), StoreError> {
    let scopes = new.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",");
    work.execute(
        &format!(
            "INSERT OR REPLACE INTO api_key ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        ),
        &[
            &key(new.id.as_u128()),
            &new.project_id.map(|id| key(id.as_u128())),
            &new.name,
            &scopes,
            &new.hash.0,
            &new.hint,
            &new.former.map(|former| former.hash.0),
            &new.former.map(|former| former.works_until.as_millis()),
            &new.version,
            &new.created_at.as_millis(),
            &new.rotated_at.map(Timestamp::as_millis),
            &new.expires_at.map(Timestamp::as_millis),
            &new.last_used_at.map(Timestamp::as_millis),
        ],
    )?;
    Ok(())
}
