//! Whether a connection's remote system can be reached now, asked by a person. Nothing of it is a delivery, nor stored as one.
//!
//! It must not know how anything is dialled.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use postrider_core::id::ProjectId;
use postrider_core::log;
use postrider_core::reach::{ReachStage, Reached};
use postrider_core::{NoAnswerKind, Wait};
use postrider_wire::{Reach, ReachMethod, Stamp};

use crate::engine::ConnectionRef;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// Somebody waits for the answer.
const TIMEOUT_MAX: Wait = Wait::from_secs(10);

/// Also while the connection is paused or not active: that is when people ask.
pub(crate) async fn ping(
    shared: &Shared,
    project: ProjectId,
    wanted: &ConnectionRef,
    method: ReachMethod,
) -> Result<Reached, Refusal> {
    let connection = shared.connections.find(project, wanted)?;
    let credentials = match shared.securities.credentials_for(&connection) {
        Ok(credentials) => credentials,
        Err(why) => return Ok(Reached::not(ReachStage::Resolve, NoAnswerKind::SecretUnreadable, why)),
    };
    let is_stamped = credentials.as_ref().is_some_and(|credentials| credentials.is_stamped());
    let stamp = is_stamped.then(|| Stamp { at: shared.now(), nonce: shared.dice.bits() });
    let timeout = connection.spec.policy.timeout.min(TIMEOUT_MAX);
    let reach = Reach { connection, credentials, stamp, method, timeout };
    let reached = AssertUnwindSafe(shared.sender.reach(reach)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(event = log::ATTEMPT_PANICKED, "trying to reach a remote system broke down");
        Reached::not(ReachStage::Resolve, NoAnswerKind::Internal, "trying broke down")
    });
    Ok(reached)
}
