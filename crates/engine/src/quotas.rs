//! How often people of each project have lately asked for a test, a verification or a resend (V09). Kept in memory: each server counts for
//! itself, and a start begins anew. It must not know what is asked for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use postrider_core::Wait;
use postrider_core::id::ProjectId;
use postrider_core::quota::{BY_HAND, Quota};

use crate::refusal::Refusal;
use crate::shared::Shared;

/// With more projects than this, those that have asked for nothing lately are forgotten.
const KEPT_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Quotas(Mutex<BTreeMap<ProjectId, Quota>>);

impl Quotas {
    fn take(&self, project: ProjectId, now: Wait) -> Result<(), Wait> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX && !kept.contains_key(&project) {
            kept.retain(|_, quota| !quota.is_idle(BY_HAND, now));
        }
        kept.entry(project).or_default().take(BY_HAND, now)
    }
}

/// One test, verification or resend, or one job that resends (D27).
///
/// # Errors
/// `TooMany`, with when the next one may come.
pub(crate) fn take(shared: &Shared, project: ProjectId) -> Result<(), Refusal> {
    shared.quotas.take(project, shared.clock.monotonic()).map_err(|retry_after| Refusal::TooMany {
        what: "a project may ask for 10 tests, verifications and resends a minute",
        retry_after,
    })
}
