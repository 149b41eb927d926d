//! What operators ask of the owner of a queue (D06). It must not know how a command is carried out.

use postrider_core::Timestamp;
use postrider_core::id::CommandId;

use super::rows::Data;
use crate::StoreError;
use crate::records::*;

impl Data {
    pub(super) fn submit_command(&mut self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        let has_taker = self.has_taker(&command, now);
        if has_taker {
            self.commands.insert(command.id, (command, None));
        }
        Ok(has_taker)
    }

    /// Whether the delivery waits in a queue with a living owner. A dead owner loses the queue here and now.
    pub(super) fn has_taker(&mut self, command: &Command, now: Timestamp) -> bool {
        let waits = self.rows.get(&command.delivery_id).is_some_and(|row| {
            row.delivery.connection_id == command.queue_id && row.delivery.progress.status.is_waiting()
        });
        let Some(queue) = self.queues.get(&command.queue_id).filter(|_| waits) else { return false };
        if self.has_living_owner(queue, now) {
            return true;
        }
        // The dead owner's token ends with this, and a change by version may follow.
        if let Some(queue) = self.queues.get_mut(&command.queue_id) {
            queue.owner = None;
        }
        false
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

    /// The first answer stays. One of a job is counted there and goes.
    pub(super) fn note_answer(&mut self, id: CommandId, answer: CommandAnswer) {
        if let Some(job_id) = self.commands.get(&id).and_then(|(command, _)| command.job_id) {
            self.commands.remove(&id);
            return self.note_job_answer(job_id, answer);
        }
        if let Some((_, noted)) = self.commands.get_mut(&id) {
            noted.get_or_insert(answer);
        }
    }

    pub(super) fn take_answer(&mut self, id: CommandId) -> Option<CommandAnswer> {
        let answer = self.commands.get(&id).and_then(|(_, answer)| *answer)?;
        self.commands.remove(&id);
        Some(answer)
    }
}
