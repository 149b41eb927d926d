//! What may go, in bounded steps: old log rows, topic messages nobody waits for, ended keys. It must not touch what waits, nor the DLQ.

use postrider_core::Timestamp;
use postrider_core::id::{BodyId, CommandId, DeliveryId, TopicId};

use super::rows::Data;
use crate::records::*;

impl Data {
    pub(super) fn prune(&mut self, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Pruned {
        let rows_max = rows_max as usize;
        let mut pruned = Pruned::default();
        let ended: Vec<DeliveryId> = self
            .log_by_end
            .iter()
            .take_while(|(ended_at, _)| *ended_at < log_before)
            .map(|(_, id)| *id)
            .take(rows_max)
            .collect();
        for id in ended {
            self.prune_delivery(id, &mut pruned);
        }
        let unowed: Vec<(TopicId, i64)> = self
            .messages
            .iter()
            .filter(|((topic_id, _), message)| {
                let retention = self.topics.get(topic_id).map(|topic| topic.retention);
                message.owed_by == 0 && retention.is_some_and(|retention| message.published_at + retention <= now)
            })
            .map(|(key, _)| *key)
            .take(rows_max)
            .collect();
        for (topic_id, sequence) in unowed {
            pruned.bodies += u64::from(self.remove_message(topic_id, sequence));
            pruned.topic_messages += 1;
        }
        let keys: Vec<[u8; 32]> =
            self.keys.iter().filter(|(_, key)| key.ends_at <= now).map(|(hash, _)| *hash).take(rows_max).collect();
        for hash in keys {
            self.keys.remove(&hash);
            pruned.idempotency_keys += 1;
        }
        let answers: Vec<[u8; 32]> = self
            .answer_keys
            .iter()
            .filter(|(_, key)| key.ends_at <= now)
            .map(|(hash, _)| *hash)
            .take(rows_max)
            .collect();
        for hash in answers {
            self.answer_keys.remove(&hash);
            pruned.idempotency_keys += 1;
        }
        let replies: Vec<DeliveryId> =
            self.replies.iter().filter(|(_, row)| row.ends_at <= now).map(|(id, _)| *id).take(rows_max).collect();
        for id in replies {
            self.replies.remove(&id);
        }
        // Answers that nobody came for, and commands to owners that never were; a job's go with their job.
        let commands: Vec<CommandId> = self
            .commands
            .iter()
            .filter(|(_, (command, _))| command.issued_at < log_before && command.job_id.is_none())
            .map(|(id, _)| *id)
            .take(rows_max)
            .collect();
        for id in commands {
            self.commands.remove(&id);
            self.command_audit.remove(&id);
        }
        pruned
    }

    fn prune_delivery(&mut self, id: DeliveryId, pruned: &mut Pruned) {
        let Some(row) = self.leave(id) else { return };
        for number in 1..=row.recorded {
            pruned.attempts += u64::from(self.attempts.remove(&(id, number)).is_some());
        }
        let bodies: [Option<BodyId>; 2] = [Some(row.delivery.body_id), row.delivery.original_body_id];
        for body_id in bodies.into_iter().flatten() {
            pruned.bodies += u64::from(self.drop_body(body_id));
        }
        self.ledger.entry(row.delivery.connection_id).or_default().pruned += 1;
        pruned.deliveries += 1;
    }
}
