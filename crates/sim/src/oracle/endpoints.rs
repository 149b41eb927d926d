//! How endpoints do, held against the log of their deliveries' attempts: no crash and no lost lease counts a failure twice or not at all
//! (V04, law 2).

use postrider_core::Timestamp;
use postrider_core::attempt::Attempt;
use postrider_core::health::Counting;
use postrider_store::{EndpointRow, StoreError};

use super::Oracle;

/// One delivery of an endpoint, as its attempts say.
struct Told {
    last_success: Option<Timestamp>,
    last_failure: Option<Timestamp>,
    /// A person has sent it again: what failed since is not counted.
    by_hand: bool,
}

impl Oracle {
    pub(super) async fn check_endpoints(&self) -> Result<(), StoreError> {
        // A clock that goes back puts failures before the beginning of their own row.
        if self.plan.clock_jumps {
            return Ok(());
        }
        let all = self.all_deliveries().await?;
        for row in self.store().all_endpoints().await? {
            let mut told = Vec::new();
            for delivery in all.iter().filter(|delivery| delivery.connection_id == row.id) {
                let attempts = self.store().attempts(delivery.id).await?;
                told.push(as_told(&attempts, delivery.progress.counting == Counting::ByHand));
            }
            self.check_count(&row, &told);
            let switched = u32::from(row.state.off.is_some());
            if row.state.epoch % 2 != switched {
                self.report(11, format!("{} is in epoch {} and off: {switched}", row.id, row.state.epoch));
            }
        }
        Ok(())
    }

    /// Nobody has switched it: then what it has counted is what failed since the last success.
    fn check_count(&self, row: &EndpointRow, deliveries: &[Told]) {
        if row.state.epoch > 0 {
            return;
        }
        let last_success = deliveries.iter().filter_map(|one| one.last_success).max();
        let failed = |one: &&Told, at_least: bool| {
            // At the same instant either may have been first.
            one.last_failure.is_some_and(|at| last_success.is_none_or(|ok| at > ok || (at_least && at == ok)))
        };
        let fewest = deliveries.iter().filter(|one| failed(one, false) && !one.by_hand).count();
        let most = deliveries.iter().filter(|one| failed(one, true)).count();
        let health = row.state.health;
        let told = health.failed_in_a_row as usize;
        if !(fewest..=most).contains(&told) || health.failing_since.is_some() != (told > 0) {
            let since = health.failing_since;
            self.report(
                11,
                format!("{} has {told} failures in a row since {since:?}; its attempts say {fewest} to {most}", row.id),
            );
        }
    }
}

fn as_told(attempts: &[Attempt], by_hand: bool) -> Told {
    let ends = |counts: &dyn Fn(&Attempt) -> bool| {
        attempts.iter().filter(|attempt| counts(attempt)).map(|attempt| attempt.started_at + attempt.took).max()
    };
    Told {
        last_success: ends(&|attempt| attempt.failure.is_none()),
        last_failure: ends(&|attempt| attempt.failure.is_some_and(|failure| failure.counts_towards_switch_off())),
        by_hand,
    }
}
