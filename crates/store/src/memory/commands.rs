//! What operators ask of the owner of a queue (D06). It must not know how a command is carried out.

use postrider_core::Timestamp;
use postrider_core::id::CommandId;

use super::rows::Data;
use crate::StoreError;
use crate::records::*;

impl Data {
    pub(super) fn submit_command(&mut self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        let waits = self.rows.get(&command.delivery_id).is_some_and(|row| {
            row.delivery.connection_id == command.queue_id && row.delivery.progress.status.is_waiting()
        });
        let Some(queue) = self.queues.get(&command.queue_id).filter(|_| waits) else { return Ok(false) };
        if !self.has_living_owner(queue, now) {
            // The dead owner's token ends with this, and a change by version may follow.
            if let Some(queue) = self.queues.get_mut(&command.queue_id) {
                queue.owner = None;
            }
            return Ok(false);
        }
        self.commands.insert(command.id, (command, None));
        Ok(true)
    }

    pub(super) fn commands(&self, lease: QueueLease) -> Result<Vec<Command>, StoreError> {
        self.require_current(lease)?;
        let mut waiting: Vec<Command> = self
            .commands
            .values()
            .filter(|(command, answer)| command.queue_id == lease.queue_id && answer.is_none())
            .map(|(command, _)| command.clone())
            .collect();
        waiting.sort_by_key(|command| (command.issued_at, command.id));
        Ok(waiting)
    }

    pub(super) fn answer_command(
        &mut self,
        lease: QueueLease,
        id: CommandId,
        answer: CommandAnswer,
    ) -> Result<(), StoreError> {
        self.require_current(lease)?;
        match self.commands.get(&id) {
            Some((command, _)) if command.queue_id == lease.queue_id => self.note_answer(id, answer),
            _ => return Err(StoreError::NotFound { what: "command" }),
        }
        Ok(())
    }

    /// The first answer stays.
    pub(super) fn note_answer(&mut self, id: CommandId, answer: CommandAnswer) {
        if let Some((_, noted @ None)) = self.commands.get_mut(&id) {
            *noted = Some(answer);
            self.end_command_audit(id, answer);
        }
    }

    pub(super) fn take_answer(&mut self, id: CommandId) -> Option<CommandAnswer> {
        let answer = self.commands.get(&id).and_then(|(_, answer)| *answer)?;
        self.commands.remove(&id);
        Some(answer)
    }
}
