//! Projects, connections and named values. It must not know what a setting means.

use std::collections::BTreeSet;

use postrider_core::connection::Connection;
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::quota::Allowance;
use postrider_core::{Timestamp, Wait};

use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::queues::{self, Lock};
use super::rows::{CHANGING, Cells, FIXED, json, prefixed};
use super::security;
use super::work::Work;
use super::{commands, deferrals, endpoints, events, lines};
use crate::{Project, StoreError, allowances};

pub(super) async fn create_project(work: &Work, project: &Project) -> Outcome<()> {
    work.tell_of_configuration();
    let taken = "SELECT 1 FROM project WHERE name = $1 OR id = $2";
    if work.exists(taken, &[&project.name, &project.id.key()]).await? {
        return Err(StoreError::Conflict(format!("there is a project `{}` already", project.name)).into());
    }
    let sql = "INSERT INTO project (id, name, settings, created_at) VALUES ($1, $2, $3, $4)";
    let settings = json(&project.settings)?;
    work.execute(sql, &[&project.id.key(), &project.name, &settings, &project.created_at.as_millis()]).await?;
    Ok(())
}

pub(super) async fn replace_project(work: &Work, project: &Project) -> Outcome<()> {
    work.tell_of_configuration();
    let id = project.id.key();
    require_project(work, project.id, "FOR UPDATE").await?;
    if work.exists("SELECT 1 FROM project WHERE name = $1 AND id <> $2", &[&project.name, &id]).await? {
        return Err(StoreError::Conflict(format!("there is a project `{}` already", project.name)).into());
    }
    let sql = "UPDATE project SET name = $2, settings = $3 WHERE id = $1";
    work.execute(sql, &[&id, &project.name, &json(&project.settings)?]).await?;
    Ok(())
}

/// `how` it is locked, so that it stays.
pub(super) async fn require_project(work: &Work, id: ProjectId, how: &str) -> Outcome<()> {
    let sql = format!("SELECT 1 FROM project WHERE id = $1 {how}");
    if work.exists(&sql, &[&id.key()]).await? { Ok(()) } else { Err(StoreError::NotFound { what: "project" }.into()) }
}

async fn check_name(work: &Work, connection: &Connection) -> Outcome<()> {
    let taken = "SELECT 1 FROM connection WHERE project_id = $1 AND name = $2 AND kind = $3 AND id <> $4";
    let kind = connection.kind().as_str();
    let params: [super::columns::Param<'_>; 4] =
        [&connection.project_id.key(), &connection.name, &kind, &connection.id.key()];
    if work.exists(taken, &params).await? {
        let why = format!("there is a {kind} connection `{}` in this project already", connection.name);
        return Err(StoreError::Conflict(why).into());
    }
    Ok(())
}

pub(super) async fn create_connection(work: &Work, connection: &Connection) -> Outcome<()> {
    work.tell_of_configuration();
    require_project(work, connection.project_id, "FOR SHARE").await?;
    check_name(work, connection).await?;
    security::require_named(work, connection).await?;
    let id = connection.id.key();
    if work.exists("SELECT 1 FROM connection WHERE id = $1", &[&id]).await? {
        return Err(StoreError::Conflict(format!("there is a connection {} already", connection.id)).into());
    }
    work.execute(
        "INSERT INTO connection (id, project_id, kind, name, written, paused, version, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            &id,
            &connection.project_id.key(),
            &connection.kind().as_str(),
            &connection.name,
            &json(&connection.written)?,
            &connection.paused,
            &i64::from(connection.version),
            &connection.created_at.as_millis(),
            &connection.updated_at.as_millis(),
        ],
    )
    .await?;
    let ordered = connection.spec.policy.queue.ordered;
    // The row that a former connection of this id left goes on.
    let former = "UPDATE queue_entry SET ordered = $2, deleted = false WHERE id = $1";
    if work.execute(former, &[&id, &ordered]).await? == 0 {
        return queues::create(work, connection.id, connection.project_id, ordered).await;
    }
    work.execute("UPDATE queue SET deleted = false WHERE id = $1", &[&id]).await?;
    Ok(())
}

pub(super) async fn replace_connection(work: &Work, connection: &Connection, version: u32) -> Outcome<()> {
    work.tell_of_configuration();
    let id = connection.id.key();
    let sql = "SELECT version, kind, project_id FROM connection WHERE id = $1 FOR UPDATE";
    let stored = work
        .first(sql, &[&id], |row| {
            let mut at = Cells::of(row);
            Ok((at.number::<u32>()?, at.take::<String>()?, at.take::<Key>()?))
        })
        .await;
    let (stored, kind, project) = stored?.ok_or(StoreError::NotFound { what: "connection" })?;
    if stored != version {
        let name = &connection.name;
        let why = format!("the connection `{name}` has changed meanwhile: it has version {stored}, not {version}");
        return Err(StoreError::Conflict(why).into());
    }
    if kind != connection.kind().as_str() || project != connection.project_id.key() {
        return Err(StoreError::Conflict("a connection keeps its kind and its project".to_owned()).into());
    }
    check_name(work, connection).await?;
    security::require_named(work, connection).await?;
    work.execute(
        "UPDATE connection SET name = $2, written = $3, paused = $4, version = $5, updated_at = $6 WHERE id = $1",
        &[
            &id,
            &connection.name,
            &json(&connection.written)?,
            &connection.paused,
            &i64::from(connection.version),
            &connection.updated_at.as_millis(),
        ],
    )
    .await?;
    let ordered = connection.spec.policy.queue.ordered;
    let turned = "UPDATE queue_entry SET ordered = $2 WHERE id = $1 AND ordered <> $2";
    if work.execute(turned, &[&id, &ordered]).await? == 0 {
        return Ok(());
    }
    queues::lock(work, &BTreeSet::from([connection.id]), Lock::Alone).await?;
    // Positions are given in every queue, in the order of arrival; which index a row stands in is all that changes. Dead letters too: one
    // that is retried later waits as the others do.
    for part in HOT_PARTS {
        let sql = format!(
            "UPDATE delivery SET by_due = $2 WHERE connection_id = $1 AND by_due <> $2 AND ($3 OR line IS NULL) AND {part}"
        );
        work.execute(&sql, &[&id, &!ordered, &ordered]).await?;
    }
    if !ordered {
        lines::release_all(work, connection.id).await?;
    }
    Ok(())
}

/// One transaction, however much waits: nobody stores into this queue or settles in it meanwhile.
pub(super) async fn delete_connection(work: &Work, id: ConnectionId, forced: bool, now: Timestamp) -> Outcome<()> {
    work.tell_of_configuration();
    let key = id.key();
    if !work.exists("SELECT 1 FROM connection WHERE id = $1 FOR UPDATE", &[&key]).await? {
        return Err(StoreError::NotFound { what: "connection" }.into());
    }
    queues::lock_entries(work, &BTreeSet::from([id])).await?;
    queues::lock(work, &BTreeSet::from([id]), Lock::Alone).await?;
    let counts = "SELECT e.accepted, e.entered - x.left_count, x.dead FROM queue_entry AS e JOIN queue_exit AS x ON x.id = e.id \
         WHERE e.id = $1 FOR UPDATE OF x";
    let counts = work
        .first(counts, &[&key], |row| {
            let mut at = Cells::of(row);
            Ok((at.count()?, at.count()?, at.count()?))
        })
        .await;
    let (accepted, waiting, dead) = counts?.ok_or_else(|| StoreError::Corrupt(format!("{id} has no queue")))?;
    if !forced && waiting + dead > 0 {
        let why = format!("{waiting} requests wait in its queue and {dead} are in its DLQ");
        return Err(StoreError::Conflict(why).into());
    }
    discard_all(work, key, now).await?;
    commands::answer_all_of_queue(work, id).await?;
    deferrals::forget(work, id).await?;
    endpoints::delete(work, id).await?;
    events::delete_push_to(work, id, now).await?;
    work.execute("DELETE FROM connection WHERE id = $1", &[&key]).await?;
    if accepted == 0 {
        return queues::remove(work, id).await;
    }
    work.execute("UPDATE queue_entry SET deleted = true WHERE id = $1", &[&key]).await?;
    let owner = "UPDATE queue SET owner = NULL, unreleased = false, wanted = false, deleted = true, token = token + 1 WHERE id = $1";
    work.execute(owner, &[&key]).await?;
    let left = "UPDATE queue_exit AS x SET left_count = e.entered, left_bytes = e.entered_bytes, dead = 0 FROM queue_entry AS e \
         WHERE x.id = $1 AND e.id = $1";
    work.execute(left, &[&key]).await?;
    Ok(())
}

/// The two indexes that together hold every hot row of a connection.
const HOT_PARTS: [&str; 2] = ["position IS NOT NULL", "status = 'DLQ'"];

async fn discard_all(work: &Work, id: Key, now: Timestamp) -> Outcome<()> {
    let changed: Vec<String> = CHANGING
        .split(", ")
        .map(|column| match column.trim() {
            "status" => "'DISCARDED'".to_owned(),
            "failure" => "'discarded'".to_owned(),
            "error" => "'discarded with its connection' || coalesce('; before that: ' || gone.error, '')".to_owned(),
            "version" => "gone.version + 1".to_owned(),
            "ended_at" => "$2::bigint".to_owned(),
            kept => format!("gone.{kept}"),
        })
        .collect();
    for part in HOT_PARTS {
        let sql = format!(
            "WITH gone AS (DELETE FROM delivery WHERE connection_id = $1 AND {part} RETURNING *) \
             INSERT INTO delivery_log ({FIXED}, {CHANGING}) SELECT {}, {} FROM gone",
            prefixed("gone.", FIXED),
            changed.join(", ")
        );
        work.execute(&sql, &[&id, &now.as_millis()]).await?;
    }
    Ok(())
}

pub(super) async fn set_value(work: &Work, name: &str, value: Option<&str>) -> Outcome<()> {
    match value {
        Some(value) => {
            let sql = "INSERT INTO value (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            work.execute(sql, &[&name, &value]).await?
        }
        None => work.execute("DELETE FROM value WHERE name = $1", &[&name]).await?,
    };
    Ok(())
}

/// Servers take turns at one name; the row may not be there yet, so the turn is a lock of its own.
pub(super) async fn take_allowance(
    work: &Work,
    name: &str,
    allowance: Allowance,
    now: Timestamp,
) -> Outcome<Option<Wait>> {
    let name = allowances::value_name(name);
    work.rows("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&name]).await?;
    let kept: Option<String> =
        work.first("SELECT value FROM value WHERE name = $1", &[&name], |row| Cells::of(row).take()).await?;
    match allowances::take(kept.as_deref(), allowance, now)? {
        Ok(written) => set_value(work, &name, Some(&written)).await.map(|()| None),
        Err(wait) => Ok(Some(wait)),
    }
}
