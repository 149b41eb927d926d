//! Users and their sessions. It must not know what a role allows.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{ProjectId, UserId};
use postrider_core::person::Role;
use rusqlite::Row;

use super::configuration::require_project;
use super::rows::{Columns, key, read_all, read_one};
use super::work::Work;
use super::{SqliteStore, audit};
use crate::StoreError;
use crate::audit::AuditEntry;
use crate::people::{
    NewUser, PasswordHash, People, SESSIONS_MAX, Session, TokenHash, USERS_MAX, User, UserChange, last_owner,
};

const COLUMNS: &str =
    "id, project_id, name, role, sees_bodies, password, version, created_at, password_set_at, last_log_in_at";
const MISSING: StoreError = StoreError::NotFound { what: "user" };

#[async_trait]
impl People for SqliteStore {
    async fn users(&self) -> Result<Vec<User>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM person ORDER BY name");
        self.read(move |connection| read_all(connection, &sql, &[], read)).await
    }

    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        let (sql, name) = (format!("SELECT {COLUMNS} FROM person WHERE name = ?1"), name.to_owned());
        self.read(move |connection| read_one(connection, &sql, &[&name], read)).await
    }

    async fn open_session(&self, session: Session, version: u32, entry: AuditEntry) -> Result<(), StoreError> {
        self.write(move |work| {
            open(work, &session, version)?;
            audit::insert(work, &entry)
        })
        .await
    }

    async fn session(&self, token: TokenHash) -> Result<Option<(Session, User)>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, token, opened_at, seen_at, address FROM session JOIN person ON person.id = session.user_id \
             WHERE token = ?1"
        );
        self.read(move |connection| {
            read_one(connection, &sql, &[&token.0], |row| {
                let mut at = Columns { row, next: 0 };
                let user = read_user(&mut at)?;
                let token = TokenHash(at.take()?);
                let (opened_at, seen_at) = (Timestamp::from_millis(at.take()?), Timestamp::from_millis(at.take()?));
                Ok((Session { token, user_id: user.id, opened_at, seen_at, address: at.take()? }, user))
            })
        })
        .await
    }

    async fn note_session_used(&self, token: TokenHash, at: Timestamp) -> Result<(), StoreError> {
        self.write(move |work| {
            let sql = "UPDATE session SET seen_at = ?2 WHERE token = ?1 AND seen_at < ?2";
            work.execute(sql, &[&token.0, &at.as_millis()]).map(drop)
        })
        .await
    }

    async fn end_session(&self, token: TokenHash, entry: AuditEntry) -> Result<(), StoreError> {
        self.write(move |work| match work.execute("DELETE FROM session WHERE token = ?1", &[&token.0])? {
            0 => Ok(()),
            _ => audit::insert(work, &entry),
        })
        .await
    }

    async fn prune_sessions(
        &self,
        idle_since: Timestamp,
        opened_before: Timestamp,
        rows_max: u32,
    ) -> Result<u64, StoreError> {
        self.write(move |work| {
            let sql = "DELETE FROM session WHERE token IN (SELECT token FROM session WHERE seen_at < ?1 OR opened_at < ?2 LIMIT ?3)";
            let gone = work.execute(sql, &[&idle_since.as_millis(), &opened_before.as_millis(), &rows_max])?;
            Ok(gone as u64)
        })
        .await
    }
}

fn read(row: &Row<'_>) -> Result<User, StoreError> {
    read_user(&mut Columns { row, next: 0 })
}

fn read_user(at: &mut Columns<'_, '_>) -> Result<User, StoreError> {
    Ok(User {
        id: UserId::from_u128(at.id()?),
        project_id: at.optional_id()?.map(ProjectId::from_u128),
        name: at.take()?,
        role: at.word(Role::parse)?,
        sees_bodies: at.take()?,
        password: PasswordHash(at.take()?),
        version: at.take()?,
        created_at: Timestamp::from_millis(at.take()?),
        password_set_at: Timestamp::from_millis(at.take()?),
        last_log_in_at: at.time()?,
    })
}

fn open(work: &Work, session: &Session, version: u32) -> Result<(), StoreError> {
    let user = key(session.user_id.as_u128());
    require_version(work, session.user_id, version)?;
    let at = session.opened_at.as_millis();
    work.execute("UPDATE person SET last_log_in_at = ?2 WHERE id = ?1", &[&user, &at])?;
    let kept = i64::try_from(SESSIONS_MAX - 1).unwrap_or(i64::MAX);
    work.execute(
        "DELETE FROM session WHERE token IN (SELECT token FROM session WHERE user_id = ?1 ORDER BY seen_at DESC, token DESC \
         LIMIT -1 OFFSET ?2)",
        &[&user, &kept],
    )?;
    work.execute(
        "INSERT INTO session (token, user_id, opened_at, seen_at, address) VALUES (?1, ?2, ?3, ?4, ?5)",
        &[&session.token.0, &user, &at, &session.seen_at.as_millis(), &session.address],
    )?;
    Ok(())
}

fn require_version(work: &Work, id: UserId, version: u32) -> Result<(), StoreError> {
    let sql = "SELECT version, name FROM person WHERE id = ?1";
    let stored = work.first(sql, &[&key(id.as_u128())], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)))?;
    match stored {
        None => Err(MISSING),
        Some((stored, name)) if stored != version => {
            Err(StoreError::Conflict(format!("the user `{name}` has changed meanwhile")))
        }
        Some(_) => Ok(()),
    }
}

pub(super) fn create(work: &Work, new: &NewUser) -> Result<(), StoreError> {
    let user = &new.user;
    if let Some(project_id) = user.project_id {
        require_project(work, project_id)?;
    }
    let count: i64 = work.first("SELECT count(*) FROM person", &[], |row| Ok(row.get(0)?))?.unwrap_or_default();
    if new.only_as_first && count > 0 {
        return Err(StoreError::Conflict("there is a user already".to_owned()));
    }
    if work.first("SELECT 1 FROM person WHERE name = ?1", &[&user.name], |_| Ok(()))?.is_some() {
        return Err(StoreError::Conflict(format!("there is a user `{}` already", user.name)));
    }
    if count >= i64::try_from(USERS_MAX).unwrap_or(i64::MAX) {
        return Err(StoreError::Full { limit: "users_max" });
    }
    work.execute(
        &format!("INSERT INTO person ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
        &[
            &key(user.id.as_u128()),
            &user.project_id.map(|id| key(id.as_u128())),
            &user.name,
            &user.role.as_str(),
            &user.sees_bodies,
            &user.password.0,
            &user.version,
            &user.created_at.as_millis(),
            &user.password_set_at.as_millis(),
            &user.last_log_in_at.map(Timestamp::as_millis),
        ],
    )?;
    Ok(())
}

pub(super) fn replace(work: &Work, change: &UserChange) -> Result<(), StoreError> {
    let user = &change.user;
    let id = key(user.id.as_u128());
    require_version(work, user.id, change.version)?;
    if !user.owns_all() {
        refuse_no_owner(work, user.id)?;
    }
    if let Some(project_id) = user.project_id {
        require_project(work, project_id)?;
    }
    work.execute(
        "UPDATE person SET project_id = ?2, role = ?3, sees_bodies = ?4, password = ?5, version = ?6, password_set_at = ?7 WHERE id = ?1",
        &[
            &id,
            &user.project_id.map(|id| key(id.as_u128())),
            &user.role.as_str(),
            &user.sees_bodies,
            &user.password.0,
            &user.version,
            &user.password_set_at.as_millis(),
        ],
    )?;
    let kept = change.keeps_session.map(|token| token.0);
    work.execute("DELETE FROM session WHERE user_id = ?1 AND token IS NOT ?2", &[&id, &kept])?;
    Ok(())
}

pub(super) fn delete(work: &Work, id: UserId) -> Result<(), StoreError> {
    refuse_no_owner(work, id)?;
    let id = key(id.as_u128());
    if work.execute("DELETE FROM person WHERE id = ?1", &[&id])? == 0 {
        return Err(MISSING);
    }
    work.execute("DELETE FROM session WHERE user_id = ?1", &[&id]).map(drop)
}

/// Where the installation has an owner, it keeps one.
fn refuse_no_owner(work: &Work, id: UserId) -> Result<(), StoreError> {
    let sql = "SELECT id = ?1 FROM person WHERE project_id IS NULL AND role = 'owner' ORDER BY id = ?1 LIMIT 1";
    // Others first: only where there are none is this one seen.
    match work.first(sql, &[&key(id.as_u128())], |row| Ok(row.get::<_, bool>(0)?))? {
        Some(true) => Err(last_owner()),
        _ => Ok(()),
    }
}
