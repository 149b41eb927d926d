//! The audit log, and changes written together with their entry. It must not know who may do what.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{AuditId, CommandId};

use super::MemoryStore;
use super::rows::Data;
use crate::audit::{AuditEntry, AuditFilter, AuditLog, Change};
use crate::{Command, CommandAnswer, ConfigChange, PAGE_ROWS_MAX, Page, PageRequest, Settled, Settlement, StoreError};

#[async_trait]
impl AuditLog for MemoryStore {
    async fn change(&self, change: Change, entry: AuditEntry) -> Result<(), StoreError> {
        let mut data = self.open()?;
        data.make(change)?;
        data.add_audit(entry);
        Ok(())
    }

    async fn configure_by_hand(&self, batch: Vec<ConfigChange>, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let mut data = self.open()?;
        data.configure(batch)?;
        entries.into_iter().for_each(|entry| data.add_audit(entry));
        Ok(())
    }

    async fn settle_by_hand(&self, settlement: Settlement, entry: AuditEntry) -> Result<Settled, StoreError> {
        let mut data = self.open()?;
        let settled = data.settle(vec![settlement])?.pop().unwrap_or(Settled::Gone);
        if matches!(settled, Settled::Applied { .. }) {
            data.add_audit(entry);
        }
        Ok(settled)
    }

    async fn submit_by_hand(&self, command: Command, entry: AuditEntry, now: Timestamp) -> Result<bool, StoreError> {
        let mut data = self.open()?;
        let id = command.id;
        let is_held = data.submit_command(command, now)?;
        if is_held {
            data.command_audit.insert(id, entry);
        }
        Ok(is_held)
    }

    async fn note(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let mut data = self.open()?;
        entries.into_iter().for_each(|entry| data.add_audit(entry));
        Ok(())
    }

    async fn audit_entries(&self, filter: &AuditFilter, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        let data = self.open()?;
        let end: Option<(Timestamp, AuditId)> = match &page.cursor {
            Some(cursor) => Some(serde_json::from_str(cursor).map_err(|_| StoreError::NotFound { what: "page" })?),
            None => None,
        };
        let limit = page.limit.clamp(1, PAGE_ROWS_MAX) as usize;
        let older = data.audit.iter().rev().filter(|(key, _)| end.is_none_or(|end| **key < end));
        let mut items: Vec<AuditEntry> =
            older.map(|(_, entry)| entry).filter(|entry| filter.lets_through(entry)).take(limit + 1).cloned().collect();
        let has_more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| has_more).map(|entry| serde_json::to_string(&(entry.at, entry.id)));
        let next_cursor = last.transpose().map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(Page { items, next_cursor })
    }

    async fn prune_audit(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        let mut data = self.open()?;
        let old = data.audit.keys().take_while(|(at, _)| *at < before).take(rows_max as usize);
        let old: Vec<(Timestamp, AuditId)> = old.copied().collect();
        for key in &old {
            data.audit.remove(key);
        }
        Ok(old.len() as u64)
    }
}

impl Data {
    fn make(&mut self, change: Change) -> Result<(), StoreError> {
        match change {
            Change::CreateProject(project) => self.create_project(project),
            Change::ReplaceProject(project) => self.replace_project(project),
            Change::CreateConnection(connection) => self.create_connection(&connection),
            Change::ReplaceConnection { connection, version } => self.replace_connection(&connection, version),
            Change::DeleteConnection { id, forced, now } => self.delete_connection(id, forced, now),
            Change::CreateTopic(topic) => self.create_topic(topic),
            Change::DeleteTopic { project_id, name } => self.delete_topic(project_id, &name),
            Change::CreateSubscription(subscription) => self.create_subscription(subscription),
            Change::DeleteSubscription(id) => self.delete_subscription(id),
            Change::CreateKey(key) => self.create_key(*key),
            Change::ReplaceKey { key, version } => self.replace_key(*key, version),
            Change::DeleteKey(id) => self.delete_key(id),
            Change::CreateUser(new) => self.create_user(*new),
            Change::ReplaceUser(change) => self.replace_user(*change),
            Change::DeleteUser(id) => self.delete_user(id),
            Change::CreateSecurity(definition) => self.create_security(&definition),
            Change::ReplaceSecurity { definition, version } => self.replace_security(&definition, version),
            Change::DeleteSecurity(id) => self.delete_security(id),
            Change::CreateEndpoint { connection, row } => {
                self.create_connection(&connection)?;
                self.create_endpoint(&row)
            }
            Change::CreateDestination { connection, row, subscription } => {
                self.refuse_taken_push(&subscription)?;
                self.create_connection(&connection)?;
                self.create_endpoint(&row)?;
                self.create_push(*subscription)
            }
            Change::ReplaceEndpoint { connection, version, verification, switches_on } => {
                self.replace_connection(&connection, version)?;
                self.change_endpoint(connection.id, verification, switches_on)
            }
            Change::ReplaceEndpointKeys { id, keys, version } => self.replace_endpoint_keys(id, &keys, version),
            Change::CreatePushSubscription(subscription) => self.create_push(*subscription),
            Change::ReplacePushSubscription { subscription, version } => self.replace_push(*subscription, version),
            Change::DeletePushSubscription { id, now } => self.delete_push(id, now),
            Change::CreateSource(row) => self.create_source(*row),
            Change::ReplaceSource { row, version } => self.replace_source(*row, version),
            Change::DeleteSource(id) => self.delete_source(id),
            Change::CreateJob { job, active_max } => self.create_job(*job, active_max),
            Change::SetJobState { id, version, state, now } => self.set_job_state(id, version, state, now).map(drop),
        }
    }

    pub(super) fn add_audit(&mut self, entry: AuditEntry) {
        self.audit.insert((entry.at, entry.id), entry);
    }

    /// The command is answered now: its entry becomes final, or goes when nothing was changed.
    pub(super) fn end_command_audit(&mut self, id: CommandId, answer: CommandAnswer) {
        if let (Some(entry), CommandAnswer::Applied) = (self.command_audit.remove(&id), answer) {
            self.add_audit(entry);
        }
    }
}
