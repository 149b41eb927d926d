//! How often people of each project have lately asked for a test, a verification or a resend (V09). The store counts, so that it holds over all
//! servers and over a start. It must not know what is asked for.

use postrider_core::id::ProjectId;
use postrider_core::quota::BY_HAND;

use crate::refusal::Refusal;
use crate::shared::Shared;

/// One test, verification or resend, or one job that resends (D27).
///
/// # Errors
/// `TooMany`, with when the next one may come.
pub(crate) async fn take(shared: &Shared, project: ProjectId) -> Result<(), Refusal> {
    match shared.store.take_allowance(&format!("by_hand.{project}"), BY_HAND, shared.now()).await? {
        None => Ok(()),
        Some(retry_after) => Err(Refusal::TooMany {
            what: "a project may ask for 10 tests, verifications and resends a minute",
            retry_after,
        }),
    }
}
