//! Subscriptions that push, as operators change them: written to the store first, then in force for the next message (P02, D40).
//!
//! It must not know how a message is fanned out.

use std::sync::Arc;

use postrider_core::connection::{Connection, check_name};
use postrider_core::id::{ConnectionId, ProjectId, SubscriptionId};
use postrider_core::masking::masked_settings;
use postrider_core::message::{Message, RequestHead};
use postrider_core::settings::SettingError;
use postrider_core::subscription::{PushSpec, PushSubscription};
use postrider_store::{AuditEntry, Change, StoreError};
use serde_json::{Map, Value, json};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::transforming;

/// `push_subscriptions_max`: of one project. All of them are in memory, and each message is held against them.
const SUBSCRIPTIONS_MAX: usize = 10_000;

/// What somebody wrote about a subscription, not yet validated.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSubscription {
    /// `None`: it goes by its id, or keeps its name.
    pub name: Option<String>,
    /// Of an endpoint or of any other connection.
    pub connection: ConnectionId,
    /// The keys of `webhook_subscription`.
    pub written: Map<String, Value>,
}

impl Engine {
    /// Of one project, by id.
    pub fn push_subscriptions(&self, project: ProjectId) -> Vec<Arc<PushSubscription>> {
        self.shared.subscriptions.of(project)
    }

    /// Of all projects.
    pub fn all_push_subscriptions(&self) -> Vec<PushSubscription> {
        self.shared.subscriptions.all()
    }

    /// # Errors
    /// `NotFound`, also when it is another project's.
    pub fn push_subscription(&self, project: ProjectId, id: SubscriptionId) -> Result<Arc<PushSubscription>, Refusal> {
        let found = self.shared.subscriptions.get(project, id);
        found.ok_or_else(|| Refusal::NotFound { what: "subscription", name: id.to_string() })
    }

    pub async fn subscribe_push(
        &self,
        project: ProjectId,
        new: NewSubscription,
    ) -> Result<Arc<PushSubscription>, Refusal> {
        if self.shared.subscriptions.of(project).len() >= SUBSCRIPTIONS_MAX {
            return Err(Refusal::Full { limit: "push_subscriptions_max" });
        }
        create(&self.shared, &self.actor, project, new).await
    }

    /// All keys anew. Deliveries that are there already keep their ladder and headers (D21).
    pub async fn replace_push_subscription(
        &self,
        project: ProjectId,
        id: SubscriptionId,
        new: NewSubscription,
    ) -> Result<Arc<PushSubscription>, Refusal> {
        let known = self.push_subscription(project, id)?;
        replace(&self.shared, &self.actor, &known, new).await
    }

    /// Deliveries that are there already go on, with the transformation it had.
    pub async fn unsubscribe_push(&self, project: ProjectId, id: SubscriptionId) -> Result<(), Refusal> {
        let known = self.push_subscription(project, id)?;
        let entry = entry(&self.shared, &self.actor, "subscription.delete", &known).with_before(shown(&known));
        let change = Change::DeletePushSubscription { id, now: self.shared.now() };
        self.shared.store.change(change, entry).await?;
        self.shared.subscriptions.remove(project, id);
        Ok(())
    }
}

/// Brings all of them into memory.
pub(crate) async fn load(shared: &Shared) -> Result<(), StoreError> {
    for subscription in shared.store.all_push_subscriptions().await? {
        shared.subscriptions.put(Arc::new(subscription));
    }
    Ok(())
}

/// As they are now, whoever changed them. What this process changes meanwhile is read again soon: its own changes raise the version too.
pub(crate) async fn read_anew(shared: &Shared) -> Result<(), StoreError> {
    shared.subscriptions.replace_all(shared.store.all_push_subscriptions().await?);
    Ok(())
}

async fn create(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    new: NewSubscription,
) -> Result<Arc<PushSubscription>, Refusal> {
    let subscription = drafted(shared, project_id, new, None).await?;
    let entry = entry(shared, actor, "subscription.create", &subscription).with_after(shown(&subscription));
    shared.store.change(Change::CreatePushSubscription(Box::new((*subscription).clone())), entry).await?;
    shared.subscriptions.put(Arc::clone(&subscription));
    Ok(subscription)
}

/// A subscription that may be stored. `target`: its connection, where that is not stored yet.
pub(crate) async fn drafted(
    shared: &Shared,
    project_id: ProjectId,
    new: NewSubscription,
    target: Option<&Connection>,
) -> Result<Arc<PushSubscription>, Refusal> {
    let now = shared.now();
    let id = SubscriptionId::new(now, shared.dice.bits());
    let name = new.name.clone().unwrap_or_else(|| id.to_string());
    let spec = validated(shared, project_id, &name, &new, target)?;
    transforming::check(shared, &spec).await?;
    Ok(Arc::new(PushSubscription {
        id,
        project_id,
        name,
        connection_id: new.connection,
        written: new.written,
        spec,
        version: 1,
        created_at: now,
        updated_at: now,
    }))
}

async fn replace(
    shared: &Shared,
    actor: &Actor,
    known: &PushSubscription,
    new: NewSubscription,
) -> Result<Arc<PushSubscription>, Refusal> {
    let name = new.name.clone().unwrap_or_else(|| known.name.clone());
    let spec = validated(shared, known.project_id, &name, &new, None)?;
    transforming::check(shared, &spec).await?;
    let subscription = Arc::new(PushSubscription {
        name,
        connection_id: new.connection,
        written: new.written,
        spec,
        version: known.version.saturating_add(1),
        updated_at: shared.now(),
        ..known.clone()
    });
    let entry = entry(shared, actor, "subscription.replace", known);
    let entry = entry.with_before(shown(known)).with_after(shown(&subscription));
    let change =
        Change::ReplacePushSubscription { subscription: Box::new((*subscription).clone()), version: known.version };
    shared.store.change(change, entry).await?;
    shared.subscriptions.put(Arc::clone(&subscription));
    Ok(subscription)
}

fn validated(
    shared: &Shared,
    project_id: ProjectId,
    name: &str,
    new: &NewSubscription,
    target: Option<&Connection>,
) -> Result<PushSpec, Refusal> {
    let mut errors: Vec<SettingError> = check_name(name).err().into_iter().collect();
    let known = shared.connections.get(new.connection).filter(|known| known.project_id == project_id);
    match target.or(known.as_deref()) {
        Some(target) => errors.extend(takes_messages(target).err()),
        None => {
            return Err(Refusal::NotFound { what: "connection", name: new.connection.to_string() });
        }
    }
    match PushSpec::parse(&new.written) {
        Ok(spec) if errors.is_empty() => Ok(spec),
        Ok(_) => Err(Refusal::Invalid(errors)),
        Err(more) => {
            errors.extend(more);
            Err(Refusal::Invalid(errors))
        }
    }
}

/// A message fills no placeholders, so a path that has some could never be built.
fn takes_messages(target: &Connection) -> Result<(), SettingError> {
    let message = Message { head: RequestHead::default(), body: bytes::Bytes::new() };
    postrider_wire::check(target, &message).map_err(|error| {
        let allowed = format!("a connection that a message can be sent to as it is: {}", error.allowed);
        SettingError::new("connection", &target.name, allowed)
    })
}

fn entry(shared: &Shared, actor: &Actor, action: &str, subscription: &PushSubscription) -> AuditEntry {
    shared.audit_entry(actor, Some(subscription.project_id), action).about(subscription.id, &subscription.name)
}

/// As the audit log keeps it.
pub(crate) fn shown(subscription: &PushSubscription) -> Value {
    let mut shown = masked_settings(&subscription.written);
    shown.insert("name".to_owned(), subscription.name.clone().into());
    shown.insert("connection_id".to_owned(), json!(subscription.connection_id));
    Value::Object(shown)
}
