//! How endpoints are switched off and on: what each attempt makes of its endpoint, and what its owner does (V03-V06, D29).
//!
//! The core says when one is switched off; it is written with the attempt that shows it. It must not know how the owner is told.

use std::sync::Arc;

use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::delivery::Progress;
use postrider_core::endpoint::{AttemptEnd, EndpointState, SwitchedOff, Verification};
use postrider_core::health::EndpointHealth;
use postrider_core::id::{ConnectionId, EndpointId, ProjectId};
use postrider_core::log;
use postrider_core::operational::OperationalEvent;
use postrider_core::{Failure, Timestamp};
use postrider_store::{AuditEntry, EndpointRow, HealthWrite, OffWrite};
use serde_json::{Map, Value, json};

use crate::actor::Actor;
use crate::announcer;
use crate::audit::Describe as _;
use crate::configuring;
use crate::endpointing;
use crate::endpoints;
use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::shared::Shared;

impl Engine {
    /// How an endpoint stands, whichever server makes its attempts; a new one where it has no row yet.
    pub async fn endpoint_state(&self, connection: &Connection) -> Result<EndpointState, Refusal> {
        let row = if self.shared.options.other_workers {
            self.shared.store.endpoint(connection.id).await?
        } else {
            self.shared.endpoints.get(connection.id).map(|endpoint| endpoint.row.clone())
        };
        Ok(row.map(|row| endpoints::standing(connection, &row)).unwrap_or_default())
    }

    /// On again: its count starts over (V06). Nothing is changed where it is on.
    pub async fn enable_endpoint(&self, project: ProjectId, id: EndpointId) -> Result<Arc<Connection>, Refusal> {
        set_enabled(&self.shared, &self.actor, project, id, true).await
    }

    /// Off by its owner: no events make deliveries for it, and what waits is dead-lettered when it comes due (V05).
    pub async fn disable_endpoint(&self, project: ProjectId, id: EndpointId) -> Result<Arc<Connection>, Refusal> {
        set_enabled(&self.shared, &self.actor, project, id, false).await
    }

    /// Whether it has to answer a challenge before it is sent anything.
    pub async fn require_verification(
        &self,
        project: ProjectId,
        id: EndpointId,
        required: bool,
    ) -> Result<Arc<Connection>, Refusal> {
        let known = endpointing::find(&self.shared, project, id)?;
        let state = self.endpoint_state(&known).await?;
        if (state.verification != Verification::NotNeeded) == required {
            return Ok(known);
        }
        let verification = if required { Verification::Pending } else { Verification::NotNeeded };
        let entry_after = json!({"verification": verification});
        let row = configuring::RowChange { verification: Some(verification), switches_on: None };
        configuring::write_endpoint(
            &self.shared,
            &self.actor,
            "endpoint.verification",
            &known,
            row,
            entry_after,
            |_| {},
        )
        .await
    }
}

async fn set_enabled(
    shared: &Shared,
    actor: &Actor,
    project: ProjectId,
    id: EndpointId,
    enabled: bool,
) -> Result<Arc<Connection>, Refusal> {
    let known = endpointing::find(shared, project, id)?;
    let Some(target) = known.spec.target.webhook() else { return Ok(known) };
    let row = shared.store.endpoint(known.id).await?;
    let state = row.map(|row| row.state).unwrap_or_default();
    let off = state.off;
    let switches_on = (enabled && off.is_some()).then(|| state.epoch.saturating_add(1));
    if target.enabled == enabled && switches_on.is_none() {
        return Ok(known);
    }
    let written = enabled_as(&known.written, enabled);
    let spec = configuring::read_again(&known, &written)?;
    let action = if enabled { "endpoint.enable" } else { "endpoint.disable" };
    let row = configuring::RowChange { verification: None, switches_on };
    let after = json!({"enabled": enabled, "switchedOff": off.filter(|_| switches_on.is_none())});
    let changed = configuring::write_endpoint(shared, actor, action, &known, row, after, |connection| {
        connection.written = written;
        connection.spec = spec;
    })
    .await?;
    if enabled {
        tracing::info!(event = log::ENDPOINT_SWITCHED_ON, endpoint = %id, "an endpoint was switched on");
        let event = OperationalEvent::EndpointRecovered { endpoint: announcer::subject(&changed), at: shared.now() };
        shared.announce(project, event);
    }
    Ok(changed)
}

fn enabled_as(written: &Map<String, Value>, enabled: bool) -> Map<String, Value> {
    let mut written = written.clone();
    written.insert("enabled".to_owned(), enabled.into());
    written
}

/// What an attempt that has ended makes of its endpoint; known from here on, since others end before it is written. `seen`: the epoch in
/// which it began.
pub(crate) fn noted(
    shared: &Shared,
    connection: &Connection,
    seen: u32,
    progress: &mut Progress,
    record: &Attempt,
    now: Timestamp,
) -> Option<Box<HealthWrite>> {
    connection.spec.target.webhook()?;
    let ended = match record.failure {
        None => AttemptEnd::Delivered,
        Some(failure) => AttemptEnd::Failed { failure, status: record.status },
    };
    let rules = &connection.spec.policy.switch_off;
    let after = shared.endpoints.foresee(connection.id, |row| {
        let after = row.state.after_attempt(seen, ended, progress.counting, rules, now)?;
        row.state = after.state;
        Some(after)
    })?;
    progress.counting = after.counting;
    let off = after.state.off.map(|off| {
        let entry = entry(shared, connection, &after.state, off);
        Box::new(OffWrite { off, entry })
    });
    Some(Box::new(HealthWrite { epoch: seen, health: after.state.health, off }))
}

/// The timer has found that it fails for too long. `Some`: what to write, if it still stands so.
pub(crate) fn swept(shared: &Shared, connection: &Connection, row: &EndpointRow, now: Timestamp) -> Option<OffWrite> {
    if row.state.off.is_some() {
        return None;
    }
    let reason = row.state.health.sweep(&connection.spec.policy.switch_off, now)?;
    let state = row.state.switched_off(reason, now);
    let off = state.off?;
    Some(OffWrite { off, entry: entry(shared, connection, &state, off) })
}

/// It is written: its owner is to be told, and whoever subscribes to such events.
pub(crate) fn switched_off(shared: &Shared, id: ConnectionId, off: SwitchedOff, health: EndpointHealth) {
    shared.untold.notify_one();
    let endpoint = EndpointId::of(id);
    let reason = off.reason.as_str();
    tracing::warn!(event = log::ENDPOINT_SWITCHED_OFF, %endpoint, reason, "an endpoint was switched off");
    let Some(connection) = shared.connections.get(id) else { return };
    let event = OperationalEvent::EndpointSwitchedOff {
        endpoint: announcer::subject(&connection),
        reason: off.reason,
        failing_since: health.failing_since,
        failed_in_a_row: health.failed_in_a_row,
        at: off.at,
    };
    shared.announce(connection.project_id, event);
}

/// The server itself has done it.
fn entry(shared: &Shared, connection: &Connection, state: &EndpointState, off: SwitchedOff) -> AuditEntry {
    let endpoint = EndpointId::of(connection.id);
    let entry = shared.audit_entry(&Actor::system(), Some(connection.project_id), "endpoint.switch_off");
    entry.about(endpoint, &connection.name).with_after(json!({
        "reason": off.reason,
        "failingSince": state.health.failing_since,
        "failedInARow": state.health.failed_in_a_row,
    }))
}

/// D27: nobody sends anything again to an endpoint that is off, or for a project that is not entitled.
pub(crate) fn check_by_hand(shared: &Shared, connection: &Connection) -> Result<(), Refusal> {
    if connection.spec.target.webhook().is_none() {
        return Ok(());
    }
    match endpoints::refused(shared, connection).map(|refused| refused.failure) {
        Some(Failure::EndpointOff) => Err(Refusal::Conflict(format!(
            "the endpoint is off, so nothing is sent to it: send it a test, then switch it on (`POST …/endpoints/{}/enable`)",
            EndpointId::of(connection.id)
        ))),
        Some(Failure::NotEntitled) => {
            Err(Refusal::Conflict("the project is not entitled to webhooks (`entitled` is false)".to_owned()))
        }
        _ => Ok(()),
    }
}
