//! Alerts, as they stand. It must not know when one is due.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::alert::Alert;
use postrider_core::id::{AlertId, ProjectId};
use tokio_postgres::Row;

use super::columns::Param;
use super::configuration::require_project;
use super::failures::Outcome;
use super::key::Id as _;
use super::listing::BAD_CURSOR;
use super::rows::{Cells, from_json, json, signed};
use super::work::Work;
use super::{PostgresStore, topics};
use crate::alerts::{AlertWrite, Alerts};
use crate::{PAGE_ROWS_MAX, Page, PageRequest, StoreError, Topic};

#[async_trait]
impl Alerts for PostgresStore {
    async fn write_alert(&self, write: AlertWrite) -> Result<bool, StoreError> {
        self.write(write, |work, write| self::write(work, write).boxed()).await
    }

    async fn open_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.read((), |work, ()| open(work).boxed()).await
    }

    async fn alerts(
        &self,
        project_id: Option<ProjectId>,
        open: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        let data = (project_id, open, page);
        self.read(data, |work, (project_id, open, page)| list(work, *project_id, *open, page).boxed()).await
    }

    async fn prune_alerts(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write((before, rows_max), |work, (before, rows_max)| prune(work, *before, *rows_max).boxed()).await
    }
}

fn read(row: &Row) -> Result<Alert, StoreError> {
    from_json(Cells::of(row).text()?, "an alert")
}

async fn write(work: &Work, write: &AlertWrite) -> Outcome<bool> {
    let alert = &write.alert;
    let entry = json(alert)?;
    let changed = match alert.recovered_at {
        None => {
            // Whoever else raises it at the same time waits here, and then has no news.
            let sql = "INSERT INTO alert (id, project_id, connection_id, kind, raised_at, recovered_at, entry) \
                 VALUES ($1, $2, $3, $4, $5, NULL, $6) ON CONFLICT DO NOTHING";
            let params: [Param<'_>; 6] = [
                &alert.id.key(),
                &alert.project_id.map(|id| id.key()),
                &alert.connection_id.map(|id| id.key()),
                &alert.kind.as_str(),
                &alert.raised_at.as_millis(),
                &entry,
            ];
            work.execute(sql, &params).await?
        }
        Some(at) => {
            let sql = "UPDATE alert SET recovered_at = $2, entry = $3 WHERE id = $1 AND recovered_at IS NULL";
            work.execute(sql, &[&alert.id.key(), &at.as_millis(), &entry]).await?
        }
    };
    if changed == 0 {
        return Ok(false);
    }
    ensure_topic(work, &write.topic).await?;
    let project_id = write.topic.project_id;
    topics::publish(work, project_id, &write.event, &write.body).await?;
    Ok(true)
}

async fn ensure_topic(work: &Work, topic: &Topic) -> Outcome<()> {
    require_project(work, topic.project_id, "FOR SHARE").await?;
    let sql = format!("INSERT INTO topic ({}) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING", topics::TOPIC);
    let params: [Param<'_>; 6] = [
        &topic.id.key(),
        &topic.project_id.key(),
        &topic.name.as_str(),
        &topic.description,
        &signed(topic.retention.as_millis()),
        &topic.created_at.as_millis(),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

async fn open(work: &Work) -> Outcome<Vec<Alert>> {
    work.all("SELECT entry FROM alert WHERE recovered_at IS NULL ORDER BY id", &[], read).await
}

/// The cursor is the id of the last one.
async fn list(
    work: &Work,
    project_id: Option<ProjectId>,
    open: Option<bool>,
    page: &PageRequest,
) -> Outcome<Page<Alert>> {
    let limit = page.limit.clamp(1, PAGE_ROWS_MAX);
    let after = page.cursor.as_deref().map(|cursor| cursor.parse::<AlertId>().map_err(|_| BAD_CURSOR)).transpose()?;
    let after = after.unwrap_or(AlertId::from_u128(u128::MAX)).key();
    let project = project_id.map(|id| id.key());
    let sql = "SELECT entry FROM alert WHERE project_id IS NOT DISTINCT FROM $1::uuid AND id < $2 \
         AND ($4::boolean IS NULL OR (recovered_at IS NULL) = $4) ORDER BY id DESC LIMIT $3";
    let room = i64::from(limit) + 1;
    let mut items = work.all(sql, &[&project, &after, &room, &open], read).await?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next_cursor = items.last().filter(|_| more).map(|last| last.id.to_string());
    Ok(Page { items, next_cursor })
}

async fn prune(work: &Work, before: Timestamp, rows_max: u32) -> Outcome<u64> {
    let sql =
        "DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE recovered_at < $1 ORDER BY recovered_at LIMIT $2)";
    work.execute(sql, &[&before.as_millis(), &i64::from(rows_max)]).await
}
