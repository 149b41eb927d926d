//! What a delivery keeps of its ladder from its creation on (D21): changes of its connection or subscription are for the deliveries after it.
//!
//! It must not know where the ladder came from.

use serde::{Deserialize, Serialize};

use super::{Ladder, Schedule};
use crate::policy::DeliveryPolicy;
use crate::status_set::StatusSet;
use crate::time::Wait;

/// The copy: waits, what is tried again, and how long one attempt may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LadderTerms {
    pub ladder: Ladder,
    pub retryable_statuses: StatusSet,
    #[serde(rename = "timeout_ms")]
    pub timeout: Wait,
}

impl LadderTerms {
    /// Those of a policy; `None`: it goes in rounds, which are read anew each time (Z15).
    pub fn of(policy: &DeliveryPolicy) -> Option<Self> {
        match &policy.schedule {
            Schedule::Ladder(ladder) => Some(LadderTerms {
                ladder: ladder.clone(),
                retryable_statuses: policy.retryable_statuses.clone(),
                timeout: policy.timeout,
            }),
            Schedule::Backoff(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: R03, D21
    #[test]
    fn r03_a_copy_reads_back_and_rounds_have_none() {
        let terms = LadderTerms::of(&DeliveryPolicy::patient()).unwrap();
        assert_eq!((terms.ladder.max_attempts(), terms.timeout), (8, Wait::from_secs(10)));
        let text = serde_json::to_string(&terms).unwrap();
        assert_eq!(serde_json::from_str::<LadderTerms>(&text).unwrap(), terms);
        assert_eq!(LadderTerms::of(&DeliveryPolicy::rounds(super::super::Backoff::default())), None);
    }
}
