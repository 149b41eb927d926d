//! Takes back the attempt that a new delivery had begun on paper, when its lease turns out to have ended. It must not know of stores.

use postrider_core::delivery::{Progress, Status};

/// `Progress::begun` undone for a delivery that was never stored before: nothing was sent, so no number and no rung is spent.
pub(crate) fn unclaimed(progress: Progress) -> Progress {
    Progress {
        status: Status::Pending,
        attempts: progress.attempts.saturating_sub(1),
        round_attempts: progress.round_attempts.saturating_sub(1),
        last_attempt_at: None,
        ..progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::Timestamp;

    #[test]
    fn an_attempt_taken_back_leaves_no_trace() {
        let now = Timestamp::from_millis(7);
        assert_eq!(unclaimed(Progress::accepted(now).begun(now)), Progress::accepted(now));
    }
}
