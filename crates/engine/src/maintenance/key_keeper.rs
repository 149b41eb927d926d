//! Beside the requests: when keys were last used, and how often which were refused, written every minute; and with other servers on the
//! same store, all keys read anew every few seconds, so that one revoked there soon ends here.
//!
//! It must not know what a key opens.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_store::AuditEntry;

use crate::actor::Actor;
use crate::keys::RELOAD_EVERY;
use crate::shared::Shared;

const WRITE_EVERY: Duration = Duration::from_secs(60);

pub(crate) async fn run(shared: Arc<Shared>) {
    let reload = shared.options.other_workers;
    let every = if reload { RELOAD_EVERY } else { WRITE_EVERY };
    let mut since_write = Duration::ZERO;
    loop {
        shared.vitals.idle(Worker::KeyKeeper);
        tokio::time::sleep(every).await;
        shared.vitals.busy(Worker::KeyKeeper);
        if reload && let Err(error) = shared.keys.load(&*shared.store).await {
            tracing::warn!(event = log::KEYS_UNREADABLE, %error, "the keys could not be read anew; those known go on");
        }
        since_write += every;
        if since_write >= WRITE_EVERY {
            since_write = Duration::ZERO;
            write(&shared).await;
        }
    }
}

/// What has been noted since the last time.
pub(crate) async fn write(shared: &Shared) {
    let uses = shared.keys.unwritten_uses();
    if !uses.is_empty() {
        match shared.store.note_keys_used(uses.clone()).await {
            Ok(()) => shared.keys.uses_written(&uses),
            Err(error) => {
                tracing::warn!(event = log::KEY_USES_NOT_WRITTEN, %error, "the last uses of keys could not be written")
            }
        }
    }
    let refused = shared.keys.take_refused();
    if refused.is_empty() {
        return;
    }
    let entries: Vec<AuditEntry> = refused
        .into_iter()
        .map(|(refused, times)| {
            let actor = Actor { id: refused.actor_id, name: refused.actor_name, address: refused.address };
            AuditEntry { times, ..shared.audit_entry(&actor, refused.project_id, refused.why.action()) }
        })
        .collect();
    if let Err(error) = shared.store.note(entries).await {
        tracing::warn!(event = log::KEY_REFUSALS_NOT_WRITTEN, %error, "refused uses of keys could not be written to the audit log");
    }
}
