//! The audit log, and changes written together with their entry. It must not know who may do what.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{AuditId, CommandId};
use rusqlite::{Connection, ToSql};

use super::listing::{BAD_CURSOR, cut, rows_of};
use super::rows::{Columns, from_json, json, key, read_all};
use super::work::Work;
use super::{
    SqliteStore, commands, configuration, configure, credentials, endpoints, events, health, jobs, people, security,
    settle, sources, topics,
};
use crate::audit::{AuditEntry, AuditFilter, AuditLog, Change};
use crate::{Command, CommandAnswer, ConfigChange, Page, PageRequest, Settled, Settlement, StoreError};

#[async_trait]
impl AuditLog for SqliteStore {
    async fn change(&self, change: Change, entry: AuditEntry) -> Result<(), StoreError> {
        self.write(move |work| {
            make(work, &change)?;
            insert(work, &entry)
        })
        .await
    }

    async fn configure_by_hand(&self, batch: Vec<ConfigChange>, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.write(move |work| {
            configure::configure(work, &batch)?;
            entries.iter().try_for_each(|entry| insert(work, entry))
        })
        .await
    }

    async fn settle_by_hand(&self, settlement: Settlement, entry: AuditEntry) -> Result<Settled, StoreError> {
        self.write(move |work| {
            let settled = settle::settle(work, &[&settlement])?.pop().unwrap_or(Settled::Gone);
            if matches!(settled, Settled::Applied { .. }) {
                insert(work, &entry)?;
            }
            Ok(settled)
        })
        .await
    }

    async fn submit_by_hand(&self, command: Command, entry: AuditEntry, now: Timestamp) -> Result<bool, StoreError> {
        self.write(move |work| {
            let is_held = commands::submit(work, &command, now)?;
            if is_held {
                work.execute(
                    "INSERT INTO command_audit (command_id, entry) VALUES (?1, ?2)",
                    &[&key(command.id.as_u128()), &json(&entry)?],
                )?;
            }
            Ok(is_held)
        })
        .await
    }

    async fn note(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.write(move |work| entries.iter().try_for_each(|entry| insert(work, entry))).await
    }

    async fn audit_entries(&self, filter: &AuditFilter, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| list(connection, &filter, &page)).await
    }

    async fn prune_audit(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write(move |work| {
            let sql = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 ORDER BY at, id LIMIT ?2)";
            Ok(work.execute(sql, &[&before.as_millis(), &rows_max])? as u64)
        })
        .await
    }
}

fn make(work: &Work, change: &Change) -> Result<(), StoreError> {
    match change {
        Change::CreateProject(project) => configuration::create_project(work, project),
        Change::ReplaceProject(project) => configuration::replace_project(work, project),
        Change::CreateConnection(connection) => configuration::create_connection(work, connection),
        Change::ReplaceConnection { connection, version } => {
            configuration::replace_connection(work, connection, *version)
        }
        Change::DeleteConnection { id, forced, now } => configuration::delete_connection(work, *id, *forced, *now),
        Change::CreateTopic(topic) => topics::create(work, topic),
        Change::DeleteTopic { project_id, name } => topics::delete(work, *project_id, name),
        Change::CreateSubscription(subscription) => topics::create_subscription(work, subscription),
        Change::DeleteSubscription(id) => topics::delete_subscription(work, *id),
        Change::CreateKey(key) => credentials::create(work, key),
        Change::ReplaceKey { key, version } => credentials::replace(work, key, *version),
        Change::DeleteKey(id) => credentials::delete(work, *id),
        Change::CreateUser(new) => people::create(work, new),
        Change::ReplaceUser(change) => people::replace(work, change),
        Change::DeleteUser(id) => people::delete(work, *id),
        Change::CreateSecurity(definition) => security::create(work, definition),
        Change::ReplaceSecurity { definition, version } => security::replace(work, definition, *version),
        Change::DeleteSecurity(id) => security::delete(work, *id),
        Change::CreateEndpoint { connection, row } => {
            configuration::create_connection(work, connection)?;
            endpoints::create(work, row)
        }
        Change::CreateDestination { connection, row, subscription } => {
            configuration::create_connection(work, connection)?;
            endpoints::create(work, row)?;
            events::create_push(work, subscription)
        }
        Change::ReplaceEndpoint { connection, version, verification, switches_on } => {
            configuration::replace_connection(work, connection, *version)?;
            health::change(work, connection.id, *verification, *switches_on)
        }
        Change::ReplaceEndpointKeys { id, keys, version } => endpoints::replace_keys(work, *id, keys, *version),
        Change::CreatePushSubscription(subscription) => events::create_push(work, subscription),
        Change::ReplacePushSubscription { subscription, version } => events::replace_push(work, subscription, *version),
        Change::DeletePushSubscription { id, now } => events::delete_push(work, *id, *now),
        Change::CreateSource(row) => sources::create(work, row),
        Change::ReplaceSource { row, version } => sources::replace(work, row, *version),
        Change::DeleteSource(id) => sources::delete(work, *id),
        Change::CreateJob { job, active_max } => jobs::create(work, job, *active_max),
        Change::SetJobState { id, version, state, now } => jobs::set_state(work, *id, *version, *state, *now).map(drop),
    }
}

pub(super) fn insert(work: &Work, entry: &AuditEntry) -> Result<(), StoreError> {
    let text = json(entry)?;
    work.execute(
        "INSERT INTO audit (id, project_id, actor, action, object, at, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        &[
            &key(entry.id.as_u128()),
            &entry.project_id.map(|id| key(id.as_u128())),
            &entry.actor.id,
            &entry.action,
            &entry.object,
            &entry.at.as_millis(),
            &text,
        ],
    )?;
    Ok(())
}

/// The command is answered in this transaction: its entry becomes final, or goes when nothing was changed.
pub(super) fn end_command(work: &Work, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
    let sql = "DELETE FROM command_audit WHERE command_id = ?1 RETURNING entry";
    let entry = work.first(sql, &[&key(id.as_u128())], |row| {
        from_json::<AuditEntry>(Columns { row, next: 0 }.text()?, "an entry of the audit log")
    })?;
    match (entry, answer) {
        (Some(entry), CommandAnswer::Applied) => insert(work, &entry),
        _ => Ok(()),
    }
}

/// The list's statement, with the conditions that the filter has; each value is bound once.
pub(super) fn list_sql(filter: &AuditFilter) -> String {
    let mut sql = "SELECT entry, at, id FROM audit WHERE (at, id) < (?1, ?2) AND at >= ?3 AND at < ?4".to_owned();
    for (is_set, condition) in [
        (filter.project_id.is_some(), " AND project_id = ?6"),
        (filter.actor.is_some(), " AND actor = ?7"),
        (filter.action.is_some(), " AND (action = ?8 OR substr(action, 1, length(?8) + 1) = ?8 || '.')"),
        (filter.object.is_some(), " AND object = ?9"),
    ] {
        if is_set {
            sql.push_str(condition);
        }
    }
    sql.push_str(" ORDER BY at DESC, id DESC LIMIT ?5");
    sql
}

fn list(connection: &Connection, filter: &AuditFilter, page: &PageRequest) -> Result<Page<AuditEntry>, StoreError> {
    let rows = rows_of(page);
    let (at, id) = match page.cursor.as_deref() {
        Some(cursor) => read_cursor(cursor).ok_or(BAD_CURSOR)?,
        None => (i64::MAX, u128::MAX),
    };
    let room = i64::try_from(rows + 1).unwrap_or(i64::MAX);
    let from = filter.from.map_or(i64::MIN, Timestamp::as_millis);
    let before = filter.before.map_or(i64::MAX, Timestamp::as_millis);
    let project = filter.project_id.map(|id| key(id.as_u128()));
    let (id, sql) = (key(id), list_sql(filter));
    let all: [&dyn ToSql; 9] =
        [&at, &id, &from, &before, &room, &project, &filter.actor, &filter.action, &filter.object];
    // SQLite knows as many parameters as the highest number in the text.
    let bound = (1..=all.len()).rev().find(|number| sql.contains(&format!("?{number}"))).unwrap_or(0);
    let found = read_all(connection, &sql, &all[..bound], |row| {
        from_json::<AuditEntry>(Columns { row, next: 0 }.text()?, "an entry of the audit log")
    })?;
    Ok(cut(found, rows, |entry: &AuditEntry| format!("a.{}.{}", entry.at.as_millis(), entry.id)))
}

fn read_cursor(text: &str) -> Option<(i64, u128)> {
    let (at, id) = text.strip_prefix("a.")?.split_once('.')?;
    Some((at.parse().ok()?, id.parse::<AuditId>().ok()?.as_u128()))
}
