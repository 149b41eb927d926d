//! Alerts, as they stand. It must not know when one is due.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::alert::Alert;
use postrider_core::id::{AlertId, ProjectId};
use rusqlite::{Connection, Row};

use super::listing::BAD_CURSOR;
use super::rows::{from_json, json, key, read_all};
use super::work::Work;
use super::{SqliteStore, bodies, topics};
use crate::alerts::{AlertWrite, Alerts};
use crate::{PAGE_ROWS_MAX, Page, PageRequest, StoreError};

#[async_trait]
impl Alerts for SqliteStore {
    async fn write_alert(&self, write: AlertWrite) -> Result<bool, StoreError> {
        self.write(move |work| self::write(work, &write)).await
    }

    async fn open_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        let sql = "SELECT entry FROM alert WHERE recovered_at IS NULL ORDER BY id";
        self.read(move |connection| read_all(connection, sql, &[], read_alert)).await
    }

    async fn alerts(
        &self,
        project_id: Option<ProjectId>,
        open: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        self.read(move |connection| self::page(connection, project_id, open, &page)).await
    }

    async fn prune_alerts(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        let sql = "DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE recovered_at < ?1 ORDER BY recovered_at LIMIT ?2)";
        self.write(move |work| Ok(work.execute(sql, &[&before.as_millis(), &rows_max])? as u64)).await
    }
}

fn read_alert(row: &Row<'_>) -> Result<Alert, StoreError> {
    from_json(&row.get::<_, String>(0)?, "an alert")
}

fn write(work: &Work, write: &AlertWrite) -> Result<bool, StoreError> {
    let alert = &write.alert;
    let entry = json(alert)?;
    let changed = match alert.recovered_at {
        None => work.execute(
            "INSERT INTO alert (id, project_id, connection_id, kind, raised_at, recovered_at, entry) \
             VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6) ON CONFLICT DO NOTHING",
            &[
                &key(alert.id.as_u128()),
                &alert.project_id.map(|id| key(id.as_u128())),
                &alert.connection_id.map(|id| key(id.as_u128())),
                &alert.kind.as_str(),
                &alert.raised_at.as_millis(),
                &entry,
            ],
        )?,
        Some(at) => work.execute(
            "UPDATE alert SET recovered_at = ?2, entry = ?3 WHERE id = ?1 AND recovered_at IS NULL",
            &[&key(alert.id.as_u128()), &at.as_millis(), &entry],
        )?,
    };
    if changed == 0 {
        return Ok(false);
    }
    let project_id = write.topic.project_id;
    let topic_id = match topics::find(work, project_id, &write.topic.name)? {
        Some(id) => id,
        None => {
            topics::create(work, &write.topic)?;
            write.topic.id
        }
    };
    bodies::add(work, &[&write.body])?;
    topics::append(work, topic_id, &write.event, write.body.id)?;
    Ok(true)
}

/// The cursor is the id of the last one.
fn page(
    connection: &Connection,
    project_id: Option<ProjectId>,
    open: Option<bool>,
    page: &PageRequest,
) -> Result<Page<Alert>, StoreError> {
    let limit = page.limit.clamp(1, PAGE_ROWS_MAX);
    let after = page.cursor.as_deref().map(|cursor| cursor.parse::<AlertId>().map_err(|_| BAD_CURSOR)).transpose()?;
    let after = key(after.map_or(u128::MAX, AlertId::as_u128));
    let project = project_id.map(|id| key(id.as_u128()));
    let sql = "SELECT entry FROM alert WHERE project_id IS ?1 AND id < ?2 \
               AND (?4 IS NULL OR (recovered_at IS NULL) = ?4) ORDER BY id DESC LIMIT ?3";
    let mut items = read_all(connection, sql, &[&project, &after, &(limit + 1), &open], read_alert)?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next_cursor = items.last().filter(|_| more).map(|last| last.id.to_string());
    Ok(Page { items, next_cursor })
}
