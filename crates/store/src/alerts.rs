//! The verbs of alerts: a crossing and its event are one transaction (law 2, P09).
//!
//! A store must not know when an alert is due; crossings come in as values.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::alert::Alert;
use postrider_core::id::ProjectId;

use crate::{NewBody, Page, PageRequest, StoreError, Topic, TopicMessageDraft};

/// A crossing as it is written.
#[derive(Clone, Debug)]
pub struct AlertWrite {
    /// Open when it is raised, with `recovered_at` when it recovers.
    pub alert: Alert,
    /// The topic is made where the project has none of its name.
    pub topic: Topic,
    pub event: TopicMessageDraft,
    pub body: NewBody,
}

#[async_trait]
pub trait Alerts: Send + Sync {
    /// Writes a crossing with its event. `false`, and nothing written, when it is no news: one that is raised is open already at its place,
    /// or one that recovers is not open.
    async fn write_alert(&self, write: AlertWrite) -> Result<bool, StoreError>;

    /// All that are open, oldest first.
    async fn open_alerts(&self) -> Result<Vec<Alert>, StoreError>;

    /// Open or past ones, or both, of a project or of the installation, newest first.
    async fn alerts(
        &self,
        project_id: Option<ProjectId>,
        open: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError>;

    /// Removes at most `rows_max` that recovered before this time; how many it removed.
    async fn prune_alerts(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError>;
}
