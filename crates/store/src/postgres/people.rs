//! Users and their sessions. It must not know what a role allows.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::id::{ProjectId, UserId};
use postrider_core::person::Role;
use tokio_postgres::Row;

use super::configuration::require_project;
use super::failures::Outcome;
use super::key::Id as _;
use super::rows::Cells;
use super::work::Work;
use super::{PostgresStore, audit};
use crate::StoreError;
use crate::audit::AuditEntry;
use crate::people::{
    NewUser, PasswordHash, People, SESSIONS_MAX, Session, TokenHash, USERS_MAX, User, UserChange, last_owner,
};

const COLUMNS: &str =
    "id, project_id, name, role, sees_bodies, password, version, created_at, password_set_at, last_log_in_at";
const MISSING: StoreError = StoreError::NotFound { what: "user" };
/// Held by whoever adds, changes or removes users: how many there are, and which of them are owners, is looked at and written as one.
const ONE_AT_A_TIME: &str = "SELECT pg_advisory_xact_lock(hashtext('postrider person'))";

#[async_trait]
impl People for PostgresStore {
    async fn users(&self) -> Result<Vec<User>, StoreError> {
        self.read((), |work, ()| all(work).boxed()).await
    }

    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        self.read(name.to_owned(), |work, name| by_name(work, name).boxed()).await
    }

    async fn open_session(&self, session: Session, version: u32, entry: AuditEntry) -> Result<(), StoreError> {
        self.write((session, version, entry), |work, (session, version, entry)| {
            async move {
                open(work, session, *version).await?;
                audit::insert(work, entry).await
            }
            .boxed()
        })
        .await
    }

    async fn session(&self, token: TokenHash) -> Result<Option<(Session, User)>, StoreError> {
        self.read(token, |work, token| one(work, *token).boxed()).await
    }

    async fn note_session_used(&self, token: TokenHash, at: Timestamp) -> Result<(), StoreError> {
        self.write((token, at), |work, (token, at)| {
            async move {
                let sql = "UPDATE session SET seen_at = $2 WHERE token = $1 AND seen_at < $2";
                work.execute(sql, &[&&token.0[..], &at.as_millis()]).await.map(drop)
            }
            .boxed()
        })
        .await
    }

    async fn end_session(&self, token: TokenHash, entry: AuditEntry) -> Result<(), StoreError> {
        self.write((token, entry), |work, (token, entry)| {
            async move {
                match work.execute("DELETE FROM session WHERE token = $1", &[&&token.0[..]]).await? {
                    0 => Ok(()),
                    _ => audit::insert(work, entry).await,
                }
            }
            .boxed()
        })
        .await
    }

    async fn prune_sessions(
        &self,
        idle_since: Timestamp,
        opened_before: Timestamp,
        rows_max: u32,
    ) -> Result<u64, StoreError> {
        self.write((idle_since, opened_before, rows_max), |work, (idle_since, opened_before, rows_max)| {
            async move {
                let sql = "DELETE FROM session WHERE token IN (SELECT token FROM session WHERE seen_at < $1 OR opened_at < $2 LIMIT $3)";
                let params: [super::columns::Param<'_>; 3] =
                    [&idle_since.as_millis(), &opened_before.as_millis(), &i64::from(*rows_max)];
                work.execute(sql, &params).await
            }
            .boxed()
        })
        .await
    }
}

async fn all(work: &Work) -> Outcome<Vec<User>> {
    work.all(&format!("SELECT {COLUMNS} FROM person ORDER BY name"), &[], read).await
}

async fn by_name(work: &Work, name: &str) -> Outcome<Option<User>> {
    work.first(&format!("SELECT {COLUMNS} FROM person WHERE name = $1"), &[&name], read).await
}

async fn one(work: &Work, token: TokenHash) -> Outcome<Option<(Session, User)>> {
    let sql = format!(
        "SELECT {COLUMNS}, opened_at, seen_at, address FROM session JOIN person ON person.id = session.user_id WHERE token = $1"
    );
    work.first(&sql, &[&&token.0[..]], |row| {
        let mut at = Cells::of(row);
        let user = read_user(&mut at)?;
        let (opened_at, seen_at) = (at.time()?, at.time()?);
        Ok((Session { token, user_id: user.id, opened_at, seen_at, address: at.take()? }, user))
    })
    .await
}

fn read(row: &Row) -> Result<User, StoreError> {
    read_user(&mut Cells::of(row))
}

fn read_user(at: &mut Cells<'_>) -> Result<User, StoreError> {
    Ok(User {
        id: UserId::from_u128(at.id()?),
        project_id: at.optional_id()?.map(ProjectId::from_u128),
        name: at.take()?,
        role: at.word(Role::parse)?,
        sees_bodies: at.take()?,
        password: PasswordHash(at.take()?),
        version: at.number()?,
        created_at: at.time()?,
        password_set_at: at.time()?,
        last_log_in_at: at.optional_time()?,
    })
}

async fn open(work: &Work, session: &Session, version: u32) -> Outcome<()> {
    let user = session.user_id.key();
    require_version(work, session.user_id, version).await?;
    let at = session.opened_at.as_millis();
    work.execute("UPDATE person SET last_log_in_at = $2 WHERE id = $1", &[&user, &at]).await?;
    let kept = i64::try_from(SESSIONS_MAX - 1).unwrap_or(i64::MAX);
    work.execute(
        "DELETE FROM session WHERE token IN (SELECT token FROM session WHERE user_id = $1 ORDER BY seen_at DESC, token DESC OFFSET $2)",
        &[&user, &kept],
    )
    .await?;
    work.execute(
        "INSERT INTO session (token, user_id, opened_at, seen_at, address) VALUES ($1, $2, $3, $4, $5)",
        &[&&session.token.0[..], &user, &at, &session.seen_at.as_millis(), &session.address],
    )
    .await?;
    Ok(())
}

async fn require_version(work: &Work, id: UserId, version: u32) -> Outcome<()> {
    let sql = "SELECT version, name FROM person WHERE id = $1 FOR UPDATE";
    let stored = work
        .first(sql, &[&id.key()], |row| {
            let mut at = Cells::of(row);
            Ok((at.number::<u32>()?, at.take::<String>()?))
        })
        .await?;
    match stored {
        None => Err(MISSING.into()),
        Some((stored, name)) if stored != version => {
            Err(StoreError::Conflict(format!("the user `{name}` has changed meanwhile")).into())
        }
        Some(_) => Ok(()),
    }
}

pub(super) async fn create(work: &Work, new: &NewUser) -> Outcome<()> {
    let user = &new.user;
    work.rows(ONE_AT_A_TIME, &[]).await?;
    if let Some(project_id) = user.project_id {
        require_project(work, project_id, "FOR SHARE").await?;
    }
    let count = work.first("SELECT count(*) FROM person", &[], |row| Cells::of(row).count()).await?.unwrap_or_default();
    if new.only_as_first && count > 0 {
        return Err(StoreError::Conflict("there is a user already".to_owned()).into());
    }
    if work.exists("SELECT 1 FROM person WHERE name = $1", &[&user.name]).await? {
        return Err(StoreError::Conflict(format!("there is a user `{}` already", user.name)).into());
    }
    if count >= USERS_MAX as u64 {
        return Err(StoreError::Full { limit: "users_max" }.into());
    }
    let sql = format!("INSERT INTO person ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
    let params: [super::columns::Param<'_>; 10] = [
        &user.id.key(),
        &user.project_id.map(|id| id.key()),
        &user.name,
        &user.role.as_str(),
        &user.sees_bodies,
        &user.password.0,
        &i64::from(user.version),
        &user.created_at.as_millis(),
        &user.password_set_at.as_millis(),
        &user.last_log_in_at.map(Timestamp::as_millis),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

pub(super) async fn replace(work: &Work, change: &UserChange) -> Outcome<()> {
    let user = &change.user;
    let id = user.id.key();
    work.rows(ONE_AT_A_TIME, &[]).await?;
    require_version(work, user.id, change.version).await?;
    if !user.owns_all() {
        refuse_no_owner(work, user.id).await?;
    }
    if let Some(project_id) = user.project_id {
        require_project(work, project_id, "FOR SHARE").await?;
    }
    let params: [super::columns::Param<'_>; 7] = [
        &id,
        &user.project_id.map(|id| id.key()),
        &user.role.as_str(),
        &user.sees_bodies,
        &user.password.0,
        &i64::from(user.version),
        &user.password_set_at.as_millis(),
    ];
    work.execute(
        "UPDATE person SET project_id = $2, role = $3, sees_bodies = $4, password = $5, version = $6, password_set_at = $7 WHERE id = $1",
        &params,
    )
    .await?;
    let kept = change.keeps_session.as_ref().map(|token| &token.0[..]);
    work.execute("DELETE FROM session WHERE user_id = $1 AND token IS DISTINCT FROM $2", &[&id, &kept]).await?;
    Ok(())
}

pub(super) async fn delete(work: &Work, id: UserId) -> Outcome<()> {
    work.rows(ONE_AT_A_TIME, &[]).await?;
    refuse_no_owner(work, id).await?;
    if work.execute("DELETE FROM person WHERE id = $1", &[&id.key()]).await? == 0 {
        return Err(MISSING.into());
    }
    work.execute("DELETE FROM session WHERE user_id = $1", &[&id.key()]).await.map(drop)
}

/// Where the installation has an owner, it keeps one.
async fn refuse_no_owner(work: &Work, id: UserId) -> Outcome<()> {
    let sql = "SELECT id = $1 FROM person WHERE project_id IS NULL AND role = 'owner' ORDER BY id = $1 LIMIT 1";
    // Others first: only where there are none is this one seen.
    match work.first(sql, &[&id.key()], |row| Cells::of(row).take::<bool>()).await? {
        Some(true) => Err(last_owner().into()),
        _ => Ok(()),
    }
}
