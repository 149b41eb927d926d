//! Alerts, as they stand. It must not know when one is due.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::alert::Alert;
use postrider_core::id::{AlertId, ProjectId};

use super::MemoryStore;
use crate::alerts::{AlertWrite, Alerts};
use crate::{PAGE_ROWS_MAX, Page, PageRequest, StoreError};

#[async_trait]
impl Alerts for MemoryStore {
    async fn write_alert(&self, write: AlertWrite) -> Result<bool, StoreError> {
        let mut data = self.open()?;
        let AlertWrite { alert, topic, event, body } = write;
        let is_open = |known: &Alert| known.recovered_at.is_none();
        let is_news = match alert.recovered_at {
            None => !data.alerts.values().any(|known| is_open(known) && known.place() == alert.place()),
            Some(_) => data.alerts.get(&alert.id).is_some_and(is_open),
        };
        if !is_news {
            return Ok(false);
        }
        let project_id = topic.project_id;
        if data.topic_by_name(project_id, &topic.name).is_none() {
            data.create_topic(topic)?;
        }
        data.publish(project_id, event, body)?;
        data.alerts.insert(alert.id, alert);
        Ok(true)
    }

    async fn open_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        Ok(self.open()?.alerts.values().filter(|alert| alert.recovered_at.is_none()).cloned().collect())
    }

    async fn alerts(
        &self,
        project_id: Option<ProjectId>,
        open: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        let limit = page.limit.clamp(1, PAGE_ROWS_MAX) as usize;
        let bad = |_| StoreError::Conflict("the cursor is not one of this list".to_owned());
        let after = page.cursor.as_deref().map(|cursor| cursor.parse::<AlertId>().map_err(bad)).transpose()?;
        let data = self.open()?;
        let is_wanted = |alert: &&Alert| {
            alert.project_id == project_id && open.is_none_or(|open| open == alert.recovered_at.is_none())
        };
        let found = data.alerts.values().rev().filter(is_wanted);
        let mut items: Vec<Alert> =
            found.filter(|alert| after.is_none_or(|after| alert.id < after)).take(limit + 1).cloned().collect();
        let more = items.len() > limit;
        items.truncate(limit);
        let next_cursor = items.last().filter(|_| more).map(|last| last.id.to_string());
        Ok(Page { items, next_cursor })
    }

    async fn prune_alerts(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        let mut data = self.open()?;
        let old = data.alerts.values().filter(|alert| alert.recovered_at.is_some_and(|at| at < before));
        let mut old: Vec<(Option<Timestamp>, AlertId)> = old.map(|alert| (alert.recovered_at, alert.id)).collect();
        old.sort();
        old.truncate(rows_max as usize);
        for (_, id) in &old {
            data.alerts.remove(id);
        }
        Ok(old.len() as u64)
    }
}
