//! The service manager above us: told when the server is ready, that it is alive, and that it stops (sd_notify(3)).
//!
//! Where there is none, nothing happens. It must not know what readiness means.

use std::time::Duration;

use postrider_core::log;
use postrider_engine::Engine;
use sd_notify::NotifyState;

/// From now on requests are answered.
pub fn ready(address: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(&format!("listening on {address}"))]);
}

/// A stop has begun, and takes at most so long.
pub fn stopping(at_most: Duration) {
    let micros = u32::try_from(at_most.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(micros), NotifyState::Status("stopping")]);
}

/// Says that the process is alive for as long as it is, twice in each interval that the service manager asks for. Never returns.
pub async fn watch(engine: Engine) {
    let Some(interval) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    loop {
        // What health calls dead is not called alive here: the service manager starts it anew.
        if engine.live().iter().all(|check| check.trouble.is_none()) {
            tell(&[NotifyState::Watchdog]);
        }
        tokio::time::sleep(interval / 2).await;
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(event = log::SERVICE_UNTOLD, %error, "the service manager cannot be told");
    }
}
