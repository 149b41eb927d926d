//! What must be held back at a send: whoever has one ahead in its line (R15), and what goes beyond an endpoint's rate (R04).

use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;
use postrider_wire::Outgoing;

use super::Oracle;

impl Oracle {
    /// In a line nothing is sent before all that is ahead has left it, on disk.
    pub(super) async fn check_line(&self, stored: &Delivery) {
        let line = |delivery: &Delivery| delivery.event.as_ref().and_then(|event| event.line);
        let Some(own) = line(stored) else { return };
        let waiting = match self.all_waiting(stored.connection_id).await {
            Ok(waiting) => waiting,
            Err(error) => return self.report(2, format!("the queue cannot be read: {error}")),
        };
        let is_ahead = |other: &&Delivery| line(other) == Some(own) && other.position < stored.position;
        for other in waiting.iter().filter(is_ahead) {
            self.report(2, format!("{} is sent while {} waits ahead of it in its line", stored.id, other.id));
        }
    }

    /// In any second no more than its worth and one burst, as long as one process has the endpoint and time goes forward.
    pub(super) fn check_rate(&self, outgoing: &Outgoing, now: Timestamp) {
        let target = outgoing.connection.spec.target.webhook();
        let Some(rate) = target.and_then(|target| target.rate_limit_per_second) else { return };
        if !self.plan.has_quick_store() {
            return;
        }
        let mut state = self.state();
        let times = state.sent_at.entry(outgoing.connection.id).or_default();
        times.retain(|at| now.since(*at).as_millis() < 1000);
        times.push(now);
        let (sent, allowed) = (times.len(), (rate + (rate / 10).max(1)) as usize);
        drop(state);
        if sent > allowed {
            self.report(5, format!("{} is sent {sent} in a second, {allowed} are allowed", outgoing.connection.name));
        }
    }

    /// A new process knows nothing of what the former one has sent.
    pub(super) fn forget_rates(&self) {
        self.state().sent_at.clear();
    }
}
