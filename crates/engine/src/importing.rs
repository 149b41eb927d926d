//! Many changes to the configuration at once, all of them or none, each with its entry in the audit log (D18, P07, law 2).
//!
//! It must not know what a file says, nor what a setting means.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use postrider_core::connection::Connection;
use postrider_core::id::{AuditId, ConnectionId, ProjectId, SecurityId, SourceId, SubscriptionId};
use postrider_core::security::SecurityDefinition;
use postrider_core::source::Source;
use postrider_core::subscription::PushSubscription;
use postrider_core::{Secret, SettingError};
use postrider_store::{AuditEntry, ConfigChange, PullSubscription, SecretOwner, SourceRow, Store, StoreError};
use serde_json::{Value, json};

use crate::actor::Actor;
use crate::audit::{self, Describe as _};
use crate::channels;
use crate::clock::Clock;
use crate::configuring;
use crate::dice::Dice;
use crate::endpointing;
use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::securing;
use crate::shared::Shared;
use crate::sourcing;
use crate::subscribing;
use crate::topics;
use crate::transforming;
use crate::vault::Vault;

impl Engine {
    /// All of the changes or none; `secrets` are those of the definitions and sources among them, and are sealed first.
    ///
    /// # Errors
    /// `Conflict` when something changed meanwhile.
    pub async fn configure(
        &self,
        batch: Vec<ConfigChange>,
        secrets: &BTreeMap<SecretOwner, Secret>,
    ) -> Result<(), Refusal> {
        apply(&self.shared, &self.actor, batch, secrets).await
    }

    /// Of all projects.
    pub fn all_sources(&self) -> Vec<SourceRow> {
        self.shared.sources.all().iter().map(|known| known.row.clone()).collect()
    }

    /// The definitions of all projects.
    pub async fn all_security_definitions(&self) -> Result<Vec<SecurityDefinition>, Refusal> {
        Ok(self.shared.store.all_security().await?)
    }
}

/// And then the cache, the runners and the sender learn of it.
async fn apply(
    shared: &Shared,
    actor: &Actor,
    mut batch: Vec<ConfigChange>,
    secrets: &BTreeMap<SecretOwner, Secret>,
) -> Result<(), Refusal> {
    securing::check_room(shared, &batch)?;
    sourcing::check_room(shared, &batch)?;
    check(shared, &batch).await?;
    check_addresses(&shared.connections.all(), &batch)?;
    securing::seal_batch(&shared.vault, &mut batch, secrets)?;
    sourcing::seal_batch(&shared.vault, &mut batch, secrets)?;
    let former = former(&*shared.store, &batch).await?;
    let entries = entries(&former, &batch, &|project, action| shared.audit_entry(actor, project, action));
    shared.store.configure_by_hand(batch.clone(), entries).await?;
    let mut has_new_topics = false;
    for change in batch {
        match change {
            ConfigChange::CreateSecurity(definition) | ConfigChange::ReplaceSecurity { definition, .. } => {
                securing::use_imported(shared, *definition);
            }
            ConfigChange::CreateConnection(connection) => {
                endpointing::complete(shared, &connection).await?;
                shared.connections.put(Arc::from(connection));
            }
            ConfigChange::CreateProject(project) | ConfigChange::ReplaceProject { now: project, .. } => {
                shared.projects.put(&project);
            }
            ConfigChange::ReplaceConnection { connection, .. } => {
                let id = connection.id;
                shared.connections.put(Arc::from(connection));
                configuring::tell(shared, id);
            }
            ConfigChange::CreateSource(row) | ConfigChange::ReplaceSource { row, .. } => {
                sourcing::use_imported(shared, *row);
            }
            ConfigChange::CreatePush(subscription) | ConfigChange::ReplacePush { subscription, .. } => {
                shared.subscriptions.put(Arc::from(subscription));
            }
            ConfigChange::CreateTopic(_) => has_new_topics = true,
            // Nobody keeps these in memory.
            ConfigChange::ReplaceTopic { .. }
            | ConfigChange::CreateSubscription(_)
            | ConfigChange::ReplaceSubscription { .. } => {}
        }
    }
    if has_new_topics {
        // Dead letters may wait for just these topics.
        for connection in shared.connections.all() {
            shared.sweeps.settings_changed(connection.id);
        }
    }
    Ok(())
}

/// What is refused where somebody changes one of these alone: addresses that may not be reached, programs that cannot be compiled.
async fn check(shared: &Shared, batch: &[ConfigChange]) -> Result<(), Refusal> {
    for change in batch {
        match change {
            ConfigChange::CreateConnection(connection) | ConfigChange::ReplaceConnection { connection, .. } => {
                configuring::check_reach(shared, &Arc::new((**connection).clone())).await?;
            }
            ConfigChange::CreatePush(subscription) | ConfigChange::ReplacePush { subscription, .. } => {
                transforming::check(shared, &subscription.spec).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// D16: an address is one channel's, also of two in one file.
fn check_addresses(known: &[Arc<Connection>], batch: &[ConfigChange]) -> Result<(), Refusal> {
    let wanted: Vec<&Connection> = batch.iter().filter_map(connection_of).collect();
    let is_changed = |id: ConnectionId| wanted.iter().any(|connection| connection.id == id);
    let kept = known.iter().map(|known| &**known).filter(|known| !is_changed(known.id));
    let all: Vec<&Connection> = kept.chain(wanted.iter().copied()).collect();
    let errors: Vec<_> = wanted
        .iter()
        .filter_map(|connection| {
            let error = channels::check_among(connection, all.iter().copied()).err()?;
            Some(SettingError::new(format!("{}.{}", connection.name, error.field), &error.given, &error.allowed))
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(Refusal::Invalid(errors)) }
}

fn connection_of(change: &ConfigChange) -> Option<&Connection> {
    match change {
        ConfigChange::CreateConnection(connection) | ConfigChange::ReplaceConnection { connection, .. } => {
            Some(connection)
        }
        _ => None,
    }
}

/// The same for a store on which no engine has been started yet; the audit log names the server itself.
pub async fn configure_store(
    store: &dyn Store,
    clock: &dyn Clock,
    dice: &dyn Dice,
    vault: &Vault,
    mut batch: Vec<ConfigChange>,
    secrets: &BTreeMap<SecretOwner, Secret>,
) -> Result<(), Refusal> {
    let known: Vec<Arc<Connection>> = store.all_connections().await?.into_iter().map(Arc::new).collect();
    check_addresses(&known, &batch)?;
    securing::seal_batch(vault, &mut batch, secrets)?;
    sourcing::seal_batch(vault, &mut batch, secrets)?;
    let former = former(store, &batch).await?;
    let (now, actor) = (clock.now(), Actor::system());
    let first = AuditId::new(now, dice.bits());
    let last = Cell::new(first.as_u128());
    let entries = entries(&former, &batch, &|project, action| {
        last.set(last.get().saturating_add(1));
        audit::blank(AuditId::from_u128(last.get()), now, &actor, project, action)
    });
    Ok(store.configure_by_hand(batch, entries).await?)
}

/// What is to be replaced, as it is.
#[derive(Default)]
struct Former {
    connections: BTreeMap<ConnectionId, Connection>,
    security: BTreeMap<SecurityId, SecurityDefinition>,
    push: BTreeMap<SubscriptionId, PushSubscription>,
    sources: BTreeMap<SourceId, Source>,
}

async fn former(store: &dyn Store, batch: &[ConfigChange]) -> Result<Former, StoreError> {
    let mut former = Former::default();
    for change in batch {
        if let ConfigChange::ReplaceConnection { connection, .. } = change {
            former.connections.extend(store.connection(connection.id).await?.map(|known| (known.id, known)));
        }
    }
    if batch.iter().any(|change| matches!(change, ConfigChange::ReplaceSecurity { .. })) {
        former.security = store.all_security().await?.into_iter().map(|known| (known.id, known)).collect();
    }
    if batch.iter().any(|change| matches!(change, ConfigChange::ReplacePush { .. })) {
        former.push = store.all_push_subscriptions().await?.into_iter().map(|known| (known.id, known)).collect();
    }
    if batch.iter().any(|change| matches!(change, ConfigChange::ReplaceSource { .. })) {
        former.sources = store.all_sources().await?.into_iter().map(|known| (known.source.id, known.source)).collect();
    }
    Ok(former)
}

/// One for the whole, and one for each object, as if it had been changed alone.
fn entries(
    former: &Former,
    batch: &[ConfigChange],
    made: &dyn Fn(Option<ProjectId>, &str) -> AuditEntry,
) -> Vec<AuditEntry> {
    let projects: BTreeSet<ProjectId> = batch.iter().map(project_of).collect();
    let only = projects.first().copied().filter(|_| projects.len() == 1);
    let mut entries = vec![made(only, "configuration.import").with_after(json!({"objects": batch.len()}))];
    for change in batch {
        let project = Some(project_of(change));
        entries.push(match change {
            ConfigChange::CreateProject(project) => {
                let entry = made(Some(project.id), "project.create").about(project.id, &project.name);
                entry.with_after(json!(project.settings))
            }
            ConfigChange::ReplaceProject { was, now } => {
                let entry = made(project, "project.replace").about(was.id, &was.name);
                entry.with_before(json!(was.settings)).with_after(json!(now.settings))
            }
            ConfigChange::CreateSecurity(definition) => {
                let entry = made(project, "security.create").about(definition.id, &definition.name);
                entry.with_after(securing::shown(definition, true))
            }
            ConfigChange::ReplaceSecurity { definition, .. } => {
                let entry = made(project, "security.replace").about(definition.id, &definition.name);
                let old = former.security.get(&definition.id);
                let is_new = old.is_none_or(|old| old.sealed != definition.sealed);
                let before = old.map(|old| securing::shown(old, false));
                AuditEntry { before, ..entry.with_after(securing::shown(definition, is_new)) }
            }
            ConfigChange::CreateConnection(connection) => {
                let entry = made(project, "connection.create").about(connection.id, &connection.name);
                entry.with_after(configuring::shown(connection))
            }
            ConfigChange::ReplaceConnection { connection, .. } => {
                let entry = made(project, "connection.replace").about(connection.id, &connection.name);
                let before = former.connections.get(&connection.id).map(configuring::shown);
                AuditEntry { before, ..entry.with_after(configuring::shown(connection)) }
            }
            ConfigChange::CreateTopic(topic) => {
                let entry = made(project, "topic.create").about(topic.id, topic.name.as_str());
                entry.with_after(topics::shown(topic))
            }
            ConfigChange::ReplaceTopic { was, now } => {
                let entry = made(project, "topic.replace").about(was.id, was.name.as_str());
                entry.with_before(topics::shown(was)).with_after(topics::shown(now))
            }
            ConfigChange::CreateSource(row) => {
                let entry = made(project, "source.create").about(row.source.id, &row.source.name);
                entry.with_after(sourcing::settings(&row.source))
            }
            ConfigChange::ReplaceSource { row, .. } => {
                let entry = made(project, "source.replace").about(row.source.id, &row.source.name);
                let before = former.sources.get(&row.source.id).map(sourcing::settings);
                AuditEntry { before, ..entry.with_after(sourcing::settings(&row.source)) }
            }
            ConfigChange::CreatePush(subscription) => {
                let entry = made(project, "subscription.create").about(subscription.id, &subscription.name);
                entry.with_after(subscribing::shown(subscription))
            }
            ConfigChange::ReplacePush { subscription, .. } => {
                let entry = made(project, "subscription.replace").about(subscription.id, &subscription.name);
                let before = former.push.get(&subscription.id).map(subscribing::shown);
                AuditEntry { before, ..entry.with_after(subscribing::shown(subscription)) }
            }
            ConfigChange::CreateSubscription(subscription) => {
                let entry = made(project, "subscription.create").about(subscription.id, &subscription.name);
                entry.with_after(subscription_shown(subscription))
            }
            ConfigChange::ReplaceSubscription { was, now } => {
                let entry = made(project, "subscription.replace").about(was.id, &was.name);
                entry.with_before(subscription_shown(was)).with_after(subscription_shown(now))
            }
        });
    }
    entries
}

fn project_of(change: &ConfigChange) -> ProjectId {
    match change {
        ConfigChange::CreateProject(project) | ConfigChange::ReplaceProject { was: project, .. } => project.id,
        ConfigChange::CreateSecurity(definition) | ConfigChange::ReplaceSecurity { definition, .. } => {
            definition.project_id
        }
        ConfigChange::CreateConnection(connection) | ConfigChange::ReplaceConnection { connection, .. } => {
            connection.project_id
        }
        ConfigChange::CreateTopic(topic) | ConfigChange::ReplaceTopic { was: topic, .. } => topic.project_id,
        ConfigChange::CreateSource(row) | ConfigChange::ReplaceSource { row, .. } => row.source.project_id,
        ConfigChange::CreatePush(subscription) | ConfigChange::ReplacePush { subscription, .. } => {
            subscription.project_id
        }
        ConfigChange::CreateSubscription(subscription)
        | ConfigChange::ReplaceSubscription { was: subscription, .. } => subscription.project_id,
    }
}

fn subscription_shown(subscription: &PullSubscription) -> Value {
    json!({
        "name": subscription.name,
        "topic_id": subscription.topic_id,
        "redeliver_after_seconds": subscription.redeliver_after.as_millis() / 1000,
    })
}
