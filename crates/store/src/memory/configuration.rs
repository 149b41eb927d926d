//! Projects, connections and named values. It must not know what a connection's settings mean, except for its kind.

use postrider_core::connection::Connection;
use postrider_core::delivery::Status;
use postrider_core::id::{ConnectionId, DeliveryId};
use postrider_core::{Failure, Timestamp};

use super::rows::{Data, Queue};
use crate::StoreError;
use crate::records::*;

impl Data {
    pub(super) fn create_project(&mut self, project: Project) -> Result<(), StoreError> {
        if self.projects.values().any(|known| known.name == project.name || known.id == project.id) {
            return Err(StoreError::Conflict(format!("there is a project `{}` already", project.name)));
        }
        self.projects.insert(project.id, project);
        Ok(())
    }

    pub(super) fn replace_project(&mut self, project: Project) -> Result<(), StoreError> {
        if !self.projects.contains_key(&project.id) {
            return Err(StoreError::NotFound { what: "project" });
        }
        if self.projects.values().any(|known| known.name == project.name && known.id != project.id) {
            return Err(StoreError::Conflict(format!("there is a project `{}` already", project.name)));
        }
        self.projects.insert(project.id, project);
        Ok(())
    }

    pub(super) fn create_connection(&mut self, connection: &Connection) -> Result<(), StoreError> {
        if !self.projects.contains_key(&connection.project_id) {
            return Err(StoreError::NotFound { what: "project" });
        }
        if self.connections.contains_key(&connection.id) {
            return Err(StoreError::Conflict(format!("there is a connection {} already", connection.id)));
        }
        self.refuse_taken_name(connection)?;
        self.require_security(connection)?;
        self.connections.insert(connection.id, connection.clone());
        self.queues.insert(connection.id, Queue::default());
        Ok(())
    }

    /// Positions need no change when `ordered` is turned on: this store gives every queue's positions in the order of arrival.
    pub(super) fn replace_connection(&mut self, connection: &Connection, version: u32) -> Result<(), StoreError> {
        let Some(known) = self.connections.get(&connection.id) else {
            return Err(StoreError::NotFound { what: "connection" });
        };
        if known.version != version {
            return Err(StoreError::Conflict(format!("the connection `{}` has changed since", known.name)));
        }
        if known.kind() != connection.kind() || known.project_id != connection.project_id {
            return Err(StoreError::Conflict("a connection keeps its kind and its project".to_owned()));
        }
        self.refuse_taken_name(connection)?;
        self.require_security(connection)?;
        self.connections.insert(connection.id, connection.clone());
        Ok(())
    }

    fn refuse_taken_name(&self, connection: &Connection) -> Result<(), StoreError> {
        let is_taken = self.connections.values().any(|known| {
            known.id != connection.id
                && known.project_id == connection.project_id
                && known.kind() == connection.kind()
                && known.name == connection.name
        });
        if is_taken {
            return Err(StoreError::Conflict(format!(
                "there is a connection `{}` of type `{}` already",
                connection.name,
                connection.kind().as_str()
            )));
        }
        Ok(())
    }

    pub(super) fn delete_connection(
        &mut self,
        id: ConnectionId,
        forced: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(queue) = self.queues.get(&id) else { return Err(StoreError::NotFound { what: "connection" }) };
        let held: Vec<DeliveryId> = queue.line.values().copied().chain(queue.dead.iter().map(|(_, id)| *id)).collect();
        if !held.is_empty() && !forced {
            return Err(StoreError::Conflict(format!("{} requests are in the connection's queue or DLQ", held.len())));
        }
        for delivery_id in held {
            self.discard_with_connection(delivery_id, now);
        }
        let of_queue = self.commands.values().map(|(command, _)| command).filter(|command| command.queue_id == id);
        for command_id in of_queue.map(|command| command.id).collect::<Vec<_>>() {
            self.note_answer(command_id, CommandAnswer::NotWaiting);
        }
        self.queues.remove(&id);
        self.connections.remove(&id);
        self.endpoints.remove(&id);
        self.delete_push_to(id, now)
    }

    /// Z18: kept in the log.
    fn discard_with_connection(&mut self, id: DeliveryId, now: Timestamp) {
        let Some(mut row) = self.leave(id) else { return };
        let delivery = &mut row.delivery;
        delivery.position = None;
        delivery.version += 1;
        delivery.progress.status = Status::Discarded;
        delivery.progress.failure = Some(Failure::Discarded);
        delivery.progress.error = Some(match delivery.progress.error.take() {
            Some(error) => format!("discarded with its connection; before that: {error}"),
            None => "discarded with its connection".to_owned(),
        });
        delivery.progress.ended_at = Some(now);
        row.claimed_under = None;
        self.enter(row);
    }

    pub(super) fn set_value(&mut self, name: &str, value: Option<String>) {
        match value {
            Some(value) => self.values.insert(name.to_owned(), value),
            None => self.values.remove(name),
        };
    }
}
