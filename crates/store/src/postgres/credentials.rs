//! API keys, as hashes. It must not know what a scope allows.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::access::ScopeSet;
use postrider_core::id::{KeyId, ProjectId};
use tokio_postgres::Row;

use super::PostgresStore;
use super::configuration::require_project;
use super::failures::Outcome;
use super::key::Id as _;
use super::rows::Cells;
use super::work::Work;
use crate::StoreError;
use crate::credentials::{ApiKey, Credentials, FormerKey, KEYS_MAX, KeyHash};

const COLUMNS: &str = "id, project_id, name, scopes, hash, hint, former_hash, former_until, version, created_at, rotated_at, expires_at, \
     last_used_at";

#[async_trait]
impl Credentials for PostgresStore {
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.read((), |work, ()| all(work).boxed()).await
    }

    async fn note_keys_used(&self, used: Vec<(KeyId, Timestamp)>) -> Result<(), StoreError> {
        self.write(used, |work, used| note_used(work, used).boxed()).await
    }
}

async fn note_used(work: &Work, used: &[(KeyId, Timestamp)]) -> Outcome<()> {
    for (id, at) in used {
        let sql = "UPDATE api_key SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at < $2, true)";
        work.execute(sql, &[&id.key(), &at.as_millis()]).await?;
    }
    Ok(())
}

fn key_hash(stored: &[u8]) -> Result<KeyHash, StoreError> {
    let hash = stored.try_into().map_err(|_| StoreError::Corrupt("a key's hash of another length".to_owned()))?;
    Ok(KeyHash(hash))
}

async fn all(work: &Work) -> Outcome<Vec<ApiKey>> {
    work.all(&format!("SELECT {COLUMNS} FROM api_key ORDER BY id"), &[], read).await
}

fn read(row: &Row) -> Result<ApiKey, StoreError> {
    let mut at = Cells::of(row);
    let id = KeyId::from_u128(at.id()?);
    let project_id = at.optional_id()?.map(ProjectId::from_u128);
    let name = at.take()?;
    let scopes = at.word(|text| ScopeSet::parse(text.split(',')).ok())?;
    let (hash, hint) = (key_hash(at.take()?)?, at.take()?);
    let former = match (at.take::<Option<&[u8]>>()?, at.optional_time()?) {
        (Some(hash), Some(works_until)) => Some(FormerKey { hash: key_hash(hash)?, works_until }),
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
        version: at.number()?,
        created_at: at.time()?,
        rotated_at: at.optional_time()?,
        expires_at: at.optional_time()?,
        last_used_at: at.optional_time()?,
    })
}

async fn refuse_taken_name(work: &Work, new: &ApiKey) -> Outcome<()> {
    let taken = "SELECT 1 FROM api_key WHERE project_id IS NOT DISTINCT FROM $1 AND name = $2 AND id <> $3";
    if work.exists(taken, &[&new.project_id.map(|id| id.key()), &new.name, &new.id.key()]).await? {
        return Err(StoreError::Conflict(format!("there is a key `{}` already", new.name)).into());
    }
    Ok(())
}

pub(super) async fn create(work: &Work, new: &ApiKey) -> Outcome<()> {
    work.tell_of_configuration();
    if let Some(project_id) = new.project_id {
        require_project(work, project_id, "FOR SHARE").await?;
    }
    refuse_taken_name(work, new).await?;
    let count = work.first("SELECT count(*) FROM api_key", &[], |row| Cells::of(row).count()).await?;
    if count.unwrap_or_default() >= KEYS_MAX as u64 {
        return Err(StoreError::Full { limit: "keys_max" }.into());
    }
    write(work, new).await
}

pub(super) async fn replace(work: &Work, new: &ApiKey, version: u32) -> Outcome<()> {
    work.tell_of_configuration();
    let sql = "SELECT version FROM api_key WHERE id = $1 FOR UPDATE";
    match work.first(sql, &[&new.id.key()], |row| Cells::of(row).number::<u32>()).await? {
        None => return Err(StoreError::NotFound { what: "key" }.into()),
        Some(stored) if stored != version => {
            return Err(StoreError::Conflict(format!("the key `{}` has changed meanwhile", new.name)).into());
        }
        Some(_) => {}
    }
    refuse_taken_name(work, new).await?;
    work.execute("DELETE FROM api_key WHERE id = $1", &[&new.id.key()]).await?;
    write(work, new).await
}

pub(super) async fn delete(work: &Work, id: KeyId) -> Outcome<()> {
    work.tell_of_configuration();
    match work.execute("DELETE FROM api_key WHERE id = $1", &[&id.key()]).await? {
        0 => Err(StoreError::NotFound { what: "key" }.into()),
        _ => Ok(()),
    }
}

async fn write(work: &Work, new: &ApiKey) -> Outcome<()> {
    let scopes = new.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",");
    let sql =
        format!("INSERT INTO api_key ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)");
    let params: [super::columns::Param<'_>; 13] = [
        &new.id.key(),
        &new.project_id.map(|id| id.key()),
        &new.name,
        &scopes,
        &&new.hash.0[..],
        &new.hint,
        &new.former.as_ref().map(|former| &former.hash.0[..]),
        &new.former.map(|former| former.works_until.as_millis()),
        &i64::from(new.version),
        &new.created_at.as_millis(),
        &new.rotated_at.map(Timestamp::as_millis),
        &new.expires_at.map(Timestamp::as_millis),
        &new.last_used_at.map(Timestamp::as_millis),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}
