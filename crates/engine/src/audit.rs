//! Entries of the audit log, from who did it to what it was done to. It must not know when they are written.

use std::sync::PoisonError;

use postrider_core::Timestamp;
use postrider_core::id::{AuditId, ProjectId};
use postrider_store::AuditEntry;
use serde_json::Value;

use crate::actor::Actor;
use crate::shared::Shared;

impl Shared {
    /// An entry without an object yet.
    pub fn audit_entry(&self, actor: &Actor, project_id: Option<ProjectId>, action: &str) -> AuditEntry {
        let now = self.now();
        let id = self.next_audit_id(AuditId::new(now, self.dice.bits()));
        blank(id, now, actor, project_id, action)
    }

    /// Entries of one millisecond are listed in the order in which they were made.
    fn next_audit_id(&self, id: AuditId) -> AuditId {
        let mut last = self.last_audit_id.lock().unwrap_or_else(PoisonError::into_inner);
        let id = id.max(AuditId::from_u128(last.as_u128().saturating_add(1)));
        *last = id;
        id
    }
}

/// An entry without an object yet.
pub(crate) fn blank(
    id: AuditId,
    at: Timestamp,
    actor: &Actor,
    project_id: Option<ProjectId>,
    action: &str,
) -> AuditEntry {
    AuditEntry {
        id,
        at,
        project_id,
        actor: actor.for_audit(),
        action: action.to_owned(),
        object: None,
        object_name: None,
        before: None,
        after: None,
        times: 1,
    }
}

/// The rest of an entry, one after another.
pub(crate) trait Describe {
    fn about(self, id: impl ToString, name: &str) -> Self;
    fn with_before(self, before: Value) -> Self;
    fn with_after(self, after: Value) -> Self;
}

impl Describe for AuditEntry {
    fn about(mut self, id: impl ToString, name: &str) -> Self {
        self.object = Some(id.to_string());
        self.object_name = Some(name.to_owned());
        self
    }

    fn with_before(mut self, before: Value) -> Self {
        self.before = Some(before);
        self
    }

    fn with_after(mut self, after: Value) -> Self {
        self.after = Some(after);
        self
    }
}
