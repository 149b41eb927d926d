//! The audit log, and changes written together with their entry. It must not know who may do what.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::id::{AuditId, CommandId};

use super::columns::Param;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::listing::{BAD_CURSOR, cut, room_of, rows_of};
use super::rows::{Cells, from_json, json};
use super::work::Work;
use super::{
    PostgresStore, commands, configuration, configure, credentials, endpoints, events, health, jobs, people, security,
    settle, sources, topics,
};
use crate::audit::{AuditEntry, AuditFilter, AuditLog, Change};
use crate::{Command, CommandAnswer, ConfigChange, Page, PageRequest, Settled, Settlement, StoreError};

#[async_trait]
impl AuditLog for PostgresStore {
    async fn change(&self, change: Change, entry: AuditEntry) -> Result<(), StoreError> {
        self.write((change, entry), |work, (change, entry)| change_and_note(work, change, entry).boxed()).await
    }

    async fn configure_by_hand(&self, batch: Vec<ConfigChange>, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.write((batch, entries), |work, (batch, entries)| {
            async move {
                configure::configure(work, batch).await?;
                insert_all(work, entries).await
            }
            .boxed()
        })
        .await
    }

    async fn settle_by_hand(&self, settlement: Settlement, entry: AuditEntry) -> Result<Settled, StoreError> {
        self.write((settlement, entry), |work, (settlement, entry)| settle_and_note(work, settlement, entry).boxed())
            .await
    }

    async fn submit_by_hand(&self, command: Command, entry: AuditEntry, now: Timestamp) -> Result<bool, StoreError> {
        let data = (command, entry, now);
        self.write(data, |work, (command, entry, now)| submit_and_note(work, command, entry, *now).boxed()).await
    }

    async fn note(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.write(entries, |work, entries| insert_all(work, entries).boxed()).await
    }

    async fn audit_entries(&self, filter: &AuditFilter, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        self.read((filter.clone(), page), |work, (filter, page)| list(work, filter, page).boxed()).await
    }

    async fn prune_audit(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write((before, rows_max), |work, (before, rows_max)| prune(work, *before, *rows_max).boxed()).await
    }
}

async fn change_and_note(work: &Work, change: &Change, entry: &AuditEntry) -> Outcome<()> {
    make(work, change).await?;
    insert(work, entry).await
}

async fn settle_and_note(work: &Work, settlement: &Settlement, entry: &AuditEntry) -> Outcome<Settled> {
    let settled = settle::settle(work, &[settlement]).await?.pop().unwrap_or(Settled::Gone);
    if matches!(settled, Settled::Applied { .. }) {
        insert(work, entry).await?;
    }
    Ok(settled)
}

async fn submit_and_note(work: &Work, command: &Command, entry: &AuditEntry, now: Timestamp) -> Outcome<bool> {
    let is_held = commands::submit(work, command, now).await?;
    if is_held {
        let sql = "INSERT INTO command_audit (command_id, entry) VALUES ($1, $2)";
        work.execute(sql, &[&command.id.key(), &json(entry)?]).await?;
    }
    Ok(is_held)
}

async fn prune(work: &Work, before: Timestamp, rows_max: u32) -> Outcome<u64> {
    let sql = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2)";
    work.execute(sql, &[&before.as_millis(), &i64::from(rows_max)]).await
}

async fn make(work: &Work, change: &Change) -> Outcome<()> {
    match change {
        Change::CreateProject(project) => configuration::create_project(work, project).await,
        Change::ReplaceProject(project) => configuration::replace_project(work, project).await,
        Change::CreateConnection(connection) => configuration::create_connection(work, connection).await,
        Change::ReplaceConnection { connection, version } => {
            configuration::replace_connection(work, connection, *version).await
        }
        Change::DeleteConnection { id, forced, now } => {
            configuration::delete_connection(work, *id, *forced, *now).await
        }
        Change::CreateTopic(topic) => topics::create(work, topic).await,
        Change::DeleteTopic { project_id, name } => topics::delete(work, *project_id, name).await,
        Change::CreateSubscription(subscription) => topics::create_subscription(work, subscription).await,
        Change::DeleteSubscription(id) => topics::delete_subscription(work, *id).await,
        Change::CreateKey(key) => credentials::create(work, key).await,
        Change::ReplaceKey { key, version } => credentials::replace(work, key, *version).await,
        Change::DeleteKey(id) => credentials::delete(work, *id).await,
        Change::CreateUser(new) => people::create(work, new).await,
        Change::ReplaceUser(change) => people::replace(work, change).await,
        Change::DeleteUser(id) => people::delete(work, *id).await,
        Change::CreateSecurity(definition) => security::create(work, definition).await,
        Change::ReplaceSecurity { definition, version } => security::replace(work, definition, *version).await,
        Change::DeleteSecurity(id) => security::delete(work, *id).await,
        Change::CreateEndpoint { connection, row } => {
            configuration::create_connection(work, connection).await?;
            endpoints::create(work, row).await
        }
        Change::CreateDestination { connection, row, subscription } => {
            configuration::create_connection(work, connection).await?;
            endpoints::create(work, row).await?;
            events::create_push(work, subscription).await
        }
        Change::ReplaceEndpoint { connection, version, verification, switches_on } => {
            configuration::replace_connection(work, connection, *version).await?;
            health::change(work, connection.id, *verification, *switches_on).await
        }
        Change::ReplaceEndpointKeys { id, keys, version } => endpoints::replace_keys(work, *id, keys, *version).await,
        Change::CreatePushSubscription(subscription) => events::create_push(work, subscription).await,
        Change::ReplacePushSubscription { subscription, version } => {
            events::replace_push(work, subscription, *version).await
        }
        Change::DeletePushSubscription { id, now } => events::delete_push(work, *id, *now).await,
        Change::CreateSource(row) => sources::create(work, row).await,
        Change::ReplaceSource { row, version } => sources::replace(work, row, *version).await,
        Change::DeleteSource(id) => sources::delete(work, *id).await,
        Change::CreateJob { job, active_max } => jobs::create(work, job, *active_max).await,
        Change::SetJobState { id, version, state, now } => {
            jobs::set_state(work, *id, *version, *state, *now).await.map(drop)
        }
    }
}

async fn insert_all(work: &Work, entries: &[AuditEntry]) -> Outcome<()> {
    for entry in entries {
        insert(work, entry).await?;
    }
    Ok(())
}

pub(super) async fn insert(work: &Work, entry: &AuditEntry) -> Outcome<()> {
    let object = entry.object.as_deref().map(|object| super::columns::storable(object.into()));
    let params: [Param<'_>; 7] = [
        &entry.id.key(),
        &entry.project_id.map(|id| id.key()),
        &super::columns::storable(entry.actor.id.as_str().into()),
        &entry.action,
        &object,
        &entry.at.as_millis(),
        &json(entry)?,
    ];
    let sql =
        "INSERT INTO audit (id, project_id, actor, action, object, at, entry) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    work.execute(sql, &params).await?;
    Ok(())
}

/// The command is answered in this transaction: its entry becomes final, or goes when nothing was changed.
pub(super) async fn end_command(work: &Work, id: CommandId, answer: CommandAnswer) -> Outcome<()> {
    let sql = "DELETE FROM command_audit WHERE command_id = $1 RETURNING entry";
    let entry = work
        .changed(sql, &[&id.key()], |row| from_json::<AuditEntry>(Cells::of(row).text()?, "an entry of the audit log"))
        .await;
    match (entry?.first(), answer) {
        (Some(entry), CommandAnswer::Applied) => insert(work, entry).await,
        _ => Ok(()),
    }
}

/// The list's statement, with the conditions that the filter has; and their values behind the first five.
fn list_sql<'f>(filter: &'f AuditFilter, project: &'f Option<Key>) -> (String, Vec<Param<'f>>) {
    let mut sql = "SELECT entry FROM audit WHERE (at, id) < ($1, $2) AND at >= $3 AND at < $4".to_owned();
    let mut values: Vec<Param<'f>> = Vec::new();
    let mut add = |condition: &str, value: Param<'f>| {
        values.push(value);
        sql.push_str(&condition.replace('?', &format!("${}", values.len() + 5)));
    };
    if project.is_some() {
        add(" AND project_id = ?", project);
    }
    if filter.actor.is_some() {
        add(" AND actor = ?", &filter.actor);
    }
    if filter.action.is_some() {
        add(" AND (action = ? OR starts_with(action, ? || '.'))", &filter.action);
    }
    if filter.object.is_some() {
        add(" AND object = ?", &filter.object);
    }
    sql.push_str(" ORDER BY at DESC, id DESC LIMIT $5");
    (sql, values)
}

async fn list(work: &Work, filter: &AuditFilter, page: &PageRequest) -> Outcome<Page<AuditEntry>> {
    let (at, id) = match page.cursor.as_deref() {
        Some(cursor) => read_cursor(cursor).ok_or(BAD_CURSOR)?,
        None => (i64::MAX, u128::MAX),
    };
    let from = filter.from.map_or(i64::MIN, Timestamp::as_millis);
    let before = filter.before.map_or(i64::MAX, Timestamp::as_millis);
    let (key, room, project) = (Key::of(id), room_of(page), filter.project_id.map(|id| id.key()));
    let (sql, values) = list_sql(filter, &project);
    let mut params: Vec<Param<'_>> = vec![&at, &key, &from, &before, &room];
    params.extend(values);
    let read = |row: &tokio_postgres::Row| from_json::<AuditEntry>(Cells::of(row).text()?, "an entry of the audit log");
    let found = work.all(&sql, &params, read).await?;
    Ok(cut(found, rows_of(page), |entry: &AuditEntry| format!("a.{}.{}", entry.at.as_millis(), entry.id)))
}

fn read_cursor(text: &str) -> Option<(i64, u128)> {
    let (at, id) = text.strip_prefix("a.")?.split_once('.')?;
    Some((at.parse().ok()?, id.parse::<AuditId>().ok()?.as_u128()))
}
