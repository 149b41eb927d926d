//! Projects, keys and the audit log, as operators see them (P07, D44, D45). Every change is written together with its audit entry.
//!
//! It must not know how somebody proved who they are.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::access::ScopeSet;
use postrider_core::alert::Alert;
use postrider_core::connection::{Connection, check_name};
use postrider_core::delivery::Delivery;
use postrider_core::envelope;
use postrider_core::flow::FlowRange;
use postrider_core::id::{ConnectionId, KeyId, ProjectId};
use postrider_core::settings::objects::ProjectSpec;
use postrider_core::{Secret, SettingError, Timestamp, Wait};
use postrider_store::{
    ApiKey, AuditEntry, AuditFilter, Change, FormerKey, Page, PageRequest, Project, ProjectSettings,
};
use serde_json::{Map, Value, json};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::engine::Engine;
use crate::flows::{Flow, LastError, Pulse};
use crate::keys::{KeyHolder, KeyRefused, RefusedUse, hash_of};
use crate::refusal::Refusal;
use crate::shared::Shared;

/// What every key begins with, so that it is recognised where it should not be.
const KEY_PREFIX: &str = "prk_";
/// Letters of a key that stay visible.
const HINT_CHARS: usize = 12;

/// A key to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    pub name: String,
    pub scopes: ScopeSet,
    pub expires_at: Option<Timestamp>,
}

/// A key and, this once, its text.
#[derive(Clone, Debug)]
pub struct ShownKey {
    pub key: ApiKey,
    pub text: Secret,
}

impl Engine {
    // Projects.

    /// # Errors
    /// A name that is taken or no name.
    pub async fn create_project(&self, name: String, settings: ProjectSettings) -> Result<Project, Refusal> {
        ProjectSpec::parse(&name, &Map::new()).map_err(Refusal::Invalid)?;
        let shared = &self.shared;
        let now = shared.now();
        let project = Project { id: ProjectId::new(now, shared.dice.bits()), name, settings, created_at: now };
        let entry = shared.audit_entry(&self.actor, Some(project.id), "project.create");
        let entry = entry.about(project.id, &project.name).with_after(json!(project.settings));
        shared.store.change(Change::CreateProject(project.clone()), entry).await?;
        shared.projects.put(&project);
        Ok(project)
    }

    /// The name stays, since paths and keys go by it.
    pub async fn configure_project(&self, known: &Project, settings: ProjectSettings) -> Result<Project, Refusal> {
        let shared = &self.shared;
        let project = Project { settings, ..known.clone() };
        let entry = shared.audit_entry(&self.actor, Some(project.id), "project.replace");
        let entry = entry.about(project.id, &project.name);
        let entry = entry.with_before(json!(known.settings)).with_after(json!(project.settings));
        shared.store.change(Change::ReplaceProject(project.clone()), entry).await?;
        shared.projects.put(&project);
        Ok(project)
    }

    // The recent past.

    /// What a project's attempts came to, oldest first, each bucket with the time at which it begins. Of this process, since its start.
    pub fn flow(&self, project: ProjectId, range: FlowRange) -> Vec<(Timestamp, Flow)> {
        self.shared.flows.of_project(project, range, self.shared.now())
    }

    /// The last hour of a connection by the minute; `None` when nothing was attempted in it.
    pub fn pulse(&self, connection: ConnectionId) -> Option<Vec<Pulse>> {
        self.shared.flows.of_connection(connection, self.shared.now())
    }

    /// How the last attempt of a connection that failed did so, since the start of this process.
    pub fn last_error(&self, connection: ConnectionId) -> Option<LastError> {
        self.shared.flows.last_error(connection)
    }

    // Keys.

    /// What a presented key stands for. Answered from memory.
    pub fn key_holder(&self, presented: &[u8]) -> Option<Arc<KeyHolder>> {
        let known = self.shared.keys.holder(presented, self.shared.now());
        known.or_else(|| self.shared.services.lent_key(presented))
    }

    /// The same of a key that was recognised before, as long as it is valid.
    pub fn key_holder_of(&self, id: KeyId) -> Option<Arc<KeyHolder>> {
        let holder = self.shared.keys.get(id)?;
        let has_ended = holder.key.expires_at.is_some_and(|end| end <= self.shared.now());
        (!has_ended).then_some(holder)
    }

    /// A use that was not let through; counted, and written within a minute.
    pub fn note_refused(&self, why: KeyRefused, actor: &Actor, project_id: Option<ProjectId>) {
        let Actor { id, name, address } = actor.clone();
        self.shared.keys.note_refused(RefusedUse { why, project_id, actor_id: id, actor_name: name, address });
    }

    /// `None`: the installation's.
    pub fn keys(&self, project: Option<ProjectId>) -> Vec<Arc<KeyHolder>> {
        self.shared.keys.of_project(project)
    }

    pub fn key(&self, project: Option<ProjectId>, id: KeyId) -> Result<Arc<KeyHolder>, Refusal> {
        let found = self.shared.keys.get(id).filter(|holder| holder.key.project_id == project);
        found.ok_or_else(|| Refusal::NotFound { what: "key", name: id.to_string() })
    }

    /// # Errors
    /// A name that is taken, an expiry that is past, too many keys.
    pub async fn create_key(&self, project: Option<ProjectId>, new: NewKey) -> Result<ShownKey, Refusal> {
        let shared = &self.shared;
        let now = shared.now();
        check_name(&new.name).map_err(|error| Refusal::Invalid(vec![error]))?;
        if new.expires_at.is_some_and(|end| end <= now) {
            let given = new.expires_at.map(|end| end.to_string()).unwrap_or_default();
            return Err(Refusal::Invalid(vec![SettingError::new("expiresAt", given, "a time in the future")]));
        }
        let project_name = self.project_name(project).await?;
        let text = new_text(shared);
        let key = ApiKey {
            id: KeyId::new(now, shared.dice.bits()),
            project_id: project,
            name: new.name,
            scopes: new.scopes,
            hash: hash_of(text.expose().as_bytes()),
            hint: hint(&text),
            former: None,
            version: 1,
            created_at: now,
            rotated_at: None,
            expires_at: new.expires_at,
            last_used_at: None,
        };
        let entry = shared.audit_entry(&self.actor, project, "key.create").about(key.id, &key.name);
        let change = Change::CreateKey(Box::new(key.clone()));
        shared.store.change(change, entry.with_after(key_shown(&key))).await?;
        shared.keys.put(key.clone(), project_name);
        Ok(ShownKey { key, text })
    }

    /// A new text under the same id. The former one works on for `overlap`; one from a rotation before that ends at once.
    pub async fn rotate_key(&self, project: Option<ProjectId>, id: KeyId, overlap: Wait) -> Result<ShownKey, Refusal> {
        let shared = &self.shared;
        let known = self.key(project, id)?.key.clone();
        let now = shared.now();
        if known.expires_at.is_some_and(|end| end <= now) {
            return Err(Refusal::Conflict(format!("the key `{}` has expired: create a new one", known.name)));
        }
        let project_name = self.project_name(project).await?;
        let text = new_text(shared);
        let former = (overlap > Wait::ZERO).then(|| FormerKey { hash: known.hash, works_until: now + overlap });
        let key = ApiKey {
            hash: hash_of(text.expose().as_bytes()),
            hint: hint(&text),
            former,
            version: known.version.saturating_add(1),
            rotated_at: Some(now),
            ..known.clone()
        };
        let entry = shared.audit_entry(&self.actor, project, "key.rotate").about(id, &key.name);
        let entry = entry.with_before(key_shown(&known)).with_after(key_shown(&key));
        let change = Change::ReplaceKey { key: Box::new(key.clone()), version: known.version };
        shared.store.change(change, entry).await?;
        shared.keys.put(key.clone(), project_name);
        Ok(ShownKey { key, text })
    }

    /// The key ends now, and so does the one before its last rotation.
    pub async fn revoke_key(&self, project: Option<ProjectId>, id: KeyId) -> Result<(), Refusal> {
        let known = self.key(project, id)?.key.clone();
        let entry = self.shared.audit_entry(&self.actor, project, "key.revoke").about(id, &known.name);
        self.shared.store.change(Change::DeleteKey(id), entry.with_before(key_shown(&known))).await?;
        self.shared.keys.remove(id);
        Ok(())
    }

    /// Asked for before anything changes: a key that was stored must not be lost to a read that fails afterwards.
    async fn project_name(&self, project: Option<ProjectId>) -> Result<Option<String>, Refusal> {
        let Some(id) = project else { return Ok(None) };
        Ok(self.shared.store.project(&id.to_string()).await?.map(|project| project.name))
    }

    // The audit log.

    pub async fn audit_entries(&self, filter: &AuditFilter, page: PageRequest) -> Result<Page<AuditEntry>, Refusal> {
        Ok(self.shared.store.audit_entries(filter, page).await?)
    }

    /// Open or past alerts, or both, of a project or of the installation, newest first.
    pub async fn alerts(
        &self,
        project_id: Option<ProjectId>,
        open: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Alert>, Refusal> {
        Ok(self.shared.store.alerts(project_id, open, page).await?)
    }

    /// As it is now, if it is still there.
    pub fn connection_by_id(&self, id: ConnectionId) -> Option<Arc<Connection>> {
        self.shared.connections.get(id)
    }

    /// The body of a delivery for a person to see: that they saw it is on disk before they do (D44).
    pub async fn view_body(&self, delivery: &Delivery, original: bool) -> Result<Option<Bytes>, Refusal> {
        let id = if original { delivery.original_body_id.unwrap_or(delivery.body_id) } else { delivery.body_id };
        let Some(bytes) = self.shared.store.body(id).await? else { return Ok(None) };
        // What is shown is what is sent.
        let bytes = delivery.event.as_ref().map_or_else(|| bytes.clone(), |event| envelope::body(event, &bytes));
        let seen = json!({"original": original, "body_bytes": bytes.len()});
        self.note_view(delivery.project_id, "delivery.body.view", &delivery.id.to_string(), seen).await?;
        Ok(Some(bytes))
    }

    /// Somebody is about to see what bodies hold. Durable when this returns.
    pub async fn note_view(&self, project: ProjectId, action: &str, object: &str, seen: Value) -> Result<(), Refusal> {
        let mut entry = self.shared.audit_entry(&self.actor, Some(project), action).with_after(seen);
        entry.object = Some(object.to_owned());
        Ok(self.shared.store.note(vec![entry]).await?)
    }
}

/// 256 random bits behind the prefix.
fn new_text(shared: &Shared) -> Secret {
    Secret::new(format!("{KEY_PREFIX}{:032x}{:032x}", shared.dice.bits(), shared.dice.bits()))
}

fn hint(text: &Secret) -> String {
    text.expose().chars().take(HINT_CHARS).collect()
}

/// Neither the key nor its hash.
fn key_shown(key: &ApiKey) -> Value {
    json!({
        "name": key.name, "scopes": key.scopes.to_json(), "hint": key.hint, "expiresAt": key.expires_at,
        "formerWorksUntil": key.former.map(|former| former.works_until),
    })
}
