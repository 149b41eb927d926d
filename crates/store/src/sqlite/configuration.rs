//! Projects, connections and named values. It must not know what a setting means.

use postrider_core::connection::Connection;
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::quota::Allowance;
use postrider_core::{Timestamp, Wait};

use super::queues::{self, Queue};
use super::rows::{CHANGING, FIXED, json, key};
use super::security;
use super::work::Work;
use super::{commands, deferrals, endpoints, events, lines};
use crate::{Project, StoreError, allowances};

pub(super) fn create_project(work: &Work, project: &Project) -> Result<(), StoreError> {
    let taken = work.first(
        "SELECT 1 FROM project WHERE name = ?1 OR id = ?2",
        &[&project.name, &key(project.id.as_u128())],
        |_| Ok(()),
    )?;
    if taken.is_some() {
        return Err(StoreError::Conflict(format!("there is a project `{}` already", project.name)));
    }
    work.execute(
        "INSERT INTO project (id, name, settings, created_at) VALUES (?1, ?2, ?3, ?4)",
        &[&key(project.id.as_u128()), &project.name, &json(&project.settings)?, &project.created_at.as_millis()],
    )?;
    Ok(())
}

pub(super) fn replace_project(work: &Work, project: &Project) -> Result<(), StoreError> {
    let id = key(project.id.as_u128());
    require_project(work, project.id)?;
    let taken = work.first("SELECT 1 FROM project WHERE name = ?1 AND id <> ?2", &[&project.name, &id], |_| Ok(()))?;
    if taken.is_some() {
        return Err(StoreError::Conflict(format!("there is a project `{}` already", project.name)));
    }
    work.execute(
        "UPDATE project SET name = ?2, settings = ?3 WHERE id = ?1",
        &[&id, &project.name, &json(&project.settings)?],
    )?;
    Ok(())
}

pub(super) fn require_project(work: &Work, id: ProjectId) -> Result<(), StoreError> {
    work.first("SELECT 1 FROM project WHERE id = ?1", &[&key(id.as_u128())], |_| Ok(()))?
        .ok_or(StoreError::NotFound { what: "project" })
}

fn check_name(work: &Work, connection: &Connection) -> Result<(), StoreError> {
    let taken = work.first(
        "SELECT 1 FROM connection WHERE project_id = ?1 AND name = ?2 AND kind = ?3 AND id <> ?4",
        &[
            &key(connection.project_id.as_u128()),
            &connection.name,
            &connection.kind().as_str(),
            &key(connection.id.as_u128()),
        ],
        |_| Ok(()),
    )?;
    match taken {
        Some(()) => Err(StoreError::Conflict(format!(
            "there is a {} connection `{}` in this project already",
            connection.kind().as_str(),
            connection.name
        ))),
        None => Ok(()),
    }
}

pub(super) fn create_connection(work: &Work, connection: &Connection) -> Result<(), StoreError> {
    require_project(work, connection.project_id)?;
    check_name(work, connection)?;
    security::require_named(work, connection)?;
    let id = key(connection.id.as_u128());
    if work.first("SELECT 1 FROM connection WHERE id = ?1", &[&id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Conflict(format!("there is a connection {} already", connection.id)));
    }
    work.execute(
        "INSERT INTO connection (id, project_id, kind, name, written, paused, version, created_at, updated_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &[
            &id,
            &key(connection.project_id.as_u128()),
            &connection.kind().as_str(),
            &connection.name,
            &json(&connection.written)?,
            &connection.paused,
            &connection.version,
            &connection.created_at.as_millis(),
            &connection.updated_at.as_millis(),
        ],
    )?;
    let ordered = connection.spec.policy.queue.ordered;
    let queue = match queues::find(work, connection.id)? {
        Some(former) => Queue { ordered, deleted: false, ..former },
        None => Queue::new(connection.id, connection.project_id, ordered),
    };
    queues::put(work, queue);
    Ok(())
}

pub(super) fn replace_connection(work: &Work, connection: &Connection, version: u32) -> Result<(), StoreError> {
    let id = key(connection.id.as_u128());
    let (stored, kind, project) = work
        .first("SELECT version, kind, project_id FROM connection WHERE id = ?1", &[&id], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?, row.get::<_, [u8; 16]>(2)?))
        })?
        .ok_or(StoreError::NotFound { what: "connection" })?;
    if stored != version {
        return Err(StoreError::Conflict(format!(
            "the connection `{}` has changed meanwhile: it has version {stored}, not {version}",
            connection.name
        )));
    }
    if kind != connection.kind().as_str() || project != key(connection.project_id.as_u128()) {
        return Err(StoreError::Conflict("a connection keeps its kind and its project".to_owned()));
    }
    check_name(work, connection)?;
    security::require_named(work, connection)?;
    work.execute(
        "UPDATE connection SET name = ?2, written = ?3, paused = ?4, version = ?5, updated_at = ?6 WHERE id = ?1",
        &[
            &id,
            &connection.name,
            &json(&connection.written)?,
            &connection.paused,
            &connection.version,
            &connection.updated_at.as_millis(),
        ],
    )?;
    let ordered = connection.spec.policy.queue.ordered;
    let Some(queue) = queues::find(work, connection.id)? else { return Ok(()) };
    if queue.ordered == ordered {
        return Ok(());
    }
    queues::change(work, connection.id, |queue| queue.ordered = ordered);
    // Positions are given in every queue, in the order of arrival; which index a row stands in is all that changes. Dead letters too: one
    // that is retried later waits as the others do.
    for part in HOT_PARTS {
        let sql = format!(
            "UPDATE delivery SET by_due = ?2 WHERE connection_id = ?1 AND by_due <> ?2 AND (?3 OR line IS NULL) AND {part}"
        );
        work.execute(&sql, &[&id, &!ordered, &ordered])?;
    }
    if !ordered {
        lines::release_all(work, connection.id)?;
    }
    Ok(())
}

/// One transaction, however much waits: seconds for a million, while other writers wait.
pub(super) fn delete_connection(work: &Work, id: ConnectionId, forced: bool, now: Timestamp) -> Result<(), StoreError> {
    let id_key = key(id.as_u128());
    if work.first("SELECT 1 FROM connection WHERE id = ?1", &[&id_key], |_| Ok(()))?.is_none() {
        return Err(StoreError::NotFound { what: "connection" });
    }
    let queue = queues::find(work, id)?.ok_or_else(|| StoreError::Corrupt(format!("{id} has no queue")))?;
    if !forced && queue.waiting + queue.dead > 0 {
        return Err(StoreError::Conflict(format!(
            "{} requests wait in its queue and {} are in its DLQ",
            queue.waiting, queue.dead
        )));
    }
    discard_all(work, &id_key, now)?;
    commands::answer_all_of_queue(work, id)?;
    deferrals::forget(work, id)?;
    endpoints::delete(work, &id_key)?;
    events::delete_push_to(work, &id_key, now)?;
    work.execute("DELETE FROM connection WHERE id = ?1", &[&id_key])?;
    if queue.accepted == 0 {
        return queues::remove(work, id);
    }
    queues::change(work, id, |queue| {
        *queue = Queue {
            waiting: 0,
            waiting_bytes: 0,
            dead: 0,
            owner: None,
            unreleased: false,
            deleted: true,
            token: queue.token + 1,
            ..queue.clone()
        };
    });
    Ok(())
}

/// The two indexes that together hold every hot row of a connection.
const HOT_PARTS: [&str; 2] = ["position IS NOT NULL", "status = 'DLQ'"];

fn discard_all(work: &Work, id: &[u8; 16], now: Timestamp) -> Result<(), StoreError> {
    let changed: Vec<String> = CHANGING
        .split(", ")
        .map(|column| match column.trim() {
            "status" => "'DISCARDED'".to_owned(),
            "failure" => "'discarded'".to_owned(),
            "error" => "'discarded with its connection' || coalesce('; before that: ' || error, '')".to_owned(),
            "version" => "version + 1".to_owned(),
            "ended_at" => "?2".to_owned(),
            kept => kept.to_owned(),
        })
        .collect();
    let sql = format!(
        "INSERT INTO delivery_log ({FIXED}, {CHANGING}) SELECT {FIXED}, {} FROM delivery WHERE connection_id = ?1",
        changed.join(", ")
    );
    for part in HOT_PARTS {
        work.execute(&format!("{sql} AND {part}"), &[id, &now.as_millis()])?;
        work.execute(&format!("DELETE FROM delivery WHERE connection_id = ?1 AND {part}"), &[id])?;
    }
    Ok(())
}

pub(super) fn set_value(work: &Work, name: &str, value: Option<&str>) -> Result<(), StoreError> {
    match value {
        Some(value) => work.execute("INSERT OR REPLACE INTO value (name, value) VALUES (?1, ?2)", &[&name, &value])?,
        None => work.execute("DELETE FROM value WHERE name = ?1", &[&name])?,
    };
    Ok(())
}

/// The writer is alone, so nobody takes meanwhile.
pub(super) fn take_allowance(
    work: &Work,
    name: &str,
    allowance: Allowance,
    now: Timestamp,
) -> Result<Option<Wait>, StoreError> {
    let name = allowances::value_name(name);
    let kept: Option<String> =
        work.first("SELECT value FROM value WHERE name = ?1", &[&name], |row| Ok(row.get(0)?))?;
    match allowances::take(kept.as_deref(), allowance, now)? {
        Ok(written) => set_value(work, &name, Some(&written)).map(|()| None),
        Err(wait) => Ok(Some(wait)),
    }
}
