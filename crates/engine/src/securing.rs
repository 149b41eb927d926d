//! Security definitions as operators change them: the secret sealed, written to the store, then ready for the next attempt.
//!
//! It must not know how credentials are sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use postrider_core::connection::{ConnectionKind, Family, check_name};
use postrider_core::id::{ProjectId, SecurityId};
use postrider_core::log;
use postrider_core::masking::masked_settings;
use postrider_core::security::{SecurityDefinition, SecurityKind, SecuritySpec};
use postrider_core::settings::security::{self, ReadSecurity};
use postrider_core::settings::{SettingError, security_keys};
use postrider_core::{MASK, Secret};
use postrider_store::{AuditEntry, Change, ConfigChange, SecretOwner, SourceRow, StoreError};
use postrider_wire::Credentials;
use serde_json::{Map, Value};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::refusal::Refusal;
use crate::securities::Security;
use crate::shared::Shared;
use crate::sourcing;
use crate::vault::{Place, SECRET_BYTES_MAX, Sealed, Vault, VaultError};

/// `security_definitions_max`: of one project. All of them are in memory.
pub(crate) const DEFINITIONS_MAX: usize = 1000;

/// What an operator wrote about a definition, not yet validated. Its secret is among the keys, so it shows none of them.
#[derive(Clone, PartialEq)]
pub struct NewSecurity {
    pub name: String,
    pub kind: SecurityKind,
    pub written: Map<String, Value>,
}

impl std::fmt::Debug for NewSecurity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSecurity").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Brings all definitions into memory. A secret that cannot be read is no reason not to start: what does not need it is delivered.
pub(crate) async fn load(shared: &Shared) -> Result<(), StoreError> {
    for mut definition in shared.store.all_security().await? {
        match open(&shared.vault, &definition) {
            Ok(secret) => {
                definition = sealed_anew(shared, definition, &secret).await;
                put(shared, definition, Ok(secret));
            }
            Err(why) => {
                tracing::error!(
                    event = log::SECRET_UNREADABLE,
                    definition = definition.name,
                    why,
                    "a secret cannot be read"
                );
                put(shared, definition, Err(why));
            }
        }
    }
    Ok(())
}

/// What another server has changed or removed. Definitions that it could not have changed keep what is known of them.
pub(crate) async fn read_anew(shared: &Shared) -> Result<(), StoreError> {
    let stored = shared.store.all_security().await?;
    for definition in &stored {
        let known = shared.securities.get(definition.project_id, &definition.name);
        let is_known = known.as_ref().is_some_and(|known| {
            known.definition.id == definition.id && known.definition.version >= definition.version
        });
        if !is_known {
            let secret = open(&shared.vault, definition);
            put(shared, definition.clone(), secret);
        }
    }
    let mut gone = shared.securities.all();
    gone.retain(|known| !stored.iter().any(|definition| definition.id == known.definition.id));
    if gone.is_empty() {
        return Ok(());
    }
    // One that this process has made meanwhile was not read.
    let now = shared.store.all_security().await?;
    for Security { definition, .. } in gone.iter().map(|known| &**known) {
        if !now.iter().any(|stored| stored.id == definition.id) {
            shared.securities.remove(definition.project_id, &definition.name);
        }
    }
    Ok(())
}

pub(crate) async fn create(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    new: NewSecurity,
) -> Result<Arc<Security>, Refusal> {
    let read = validated(&new)?;
    let secret = read.secret.clone().ok_or_else(|| missing(new.kind))?;
    check_credentials(&read.spec, &secret)?;
    if shared.securities.of(project_id).len() >= DEFINITIONS_MAX {
        return Err(Refusal::Full { limit: "security_definitions_max" });
    }
    let now = shared.now();
    let id = SecurityId::new(now, shared.dice.bits());
    let definition = SecurityDefinition {
        id,
        project_id,
        name: new.name,
        sealed: seal(&shared.vault, project_id, id, new.kind, &secret)?,
        written: read.written,
        spec: read.spec,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let entry = entry(shared, actor, "security.create", &definition).with_after(shown(&definition, true));
    shared.store.change(Change::CreateSecurity(Box::new(definition.clone())), entry).await?;
    Ok(put(shared, definition, Ok(secret)))
}

/// Replaces all keys. The secret stays when it is left out, since nobody can read it back to write it again; with another type it has to
/// be given.
pub(crate) async fn replace(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    name: &str,
    new: NewSecurity,
) -> Result<Arc<Security>, Refusal> {
    let known = shared.securities.find(project_id, name)?;
    let old = &known.definition;
    if new.name != old.name {
        return Err(Refusal::Invalid(vec![SettingError::new(
            "name",
            &new.name,
            format!("`{}`: a definition keeps its name, since connections refer to it", old.name),
        )]));
    }
    let read = validated(&new)?;
    let (sealed, secret) = match &read.secret {
        Some(secret) => (seal(&shared.vault, project_id, old.id, new.kind, secret)?, Ok(secret.clone())),
        None if new.kind == old.kind() => (old.sealed.clone(), open(&shared.vault, old)),
        None => return Err(missing(new.kind)),
    };
    if let Ok(secret) = &secret {
        check_credentials(&read.spec, secret)?;
    }
    let definition = SecurityDefinition {
        written: read.written,
        spec: read.spec,
        sealed,
        version: old.version.saturating_add(1),
        updated_at: shared.now(),
        ..old.clone()
    };
    let entry = entry(shared, actor, "security.replace", old).with_before(shown(old, false));
    let entry = entry.with_after(shown(&definition, definition.sealed != old.sealed));
    let change = Change::ReplaceSecurity { definition: Box::new(definition.clone()), version: old.version };
    shared.store.change(change, entry).await?;
    Ok(put(shared, definition, secret))
}

pub(crate) async fn delete(shared: &Shared, actor: &Actor, project_id: ProjectId, name: &str) -> Result<(), Refusal> {
    let known = shared.securities.find(project_id, name)?;
    let old = &known.definition;
    let entry = entry(shared, actor, "security.delete", old).with_before(shown(old, false));
    shared.store.change(Change::DeleteSecurity(old.id), entry).await?;
    shared.securities.remove(project_id, name);
    Ok(())
}

fn entry(shared: &Shared, actor: &Actor, action: &str, definition: &SecurityDefinition) -> AuditEntry {
    shared.audit_entry(actor, Some(definition.project_id), action).about(definition.id, &definition.name)
}

/// As the audit log keeps it: of the secret only whether it was set anew.
pub(crate) fn shown(definition: &SecurityDefinition, secret_is_new: bool) -> Value {
    let mut shown = masked_settings(&definition.written);
    shown.insert("name".to_owned(), definition.name.clone().into());
    shown.insert("type".to_owned(), definition.kind().as_str().into());
    if secret_is_new {
        shown.insert(definition.kind().secret_key().to_owned(), MASK.into());
    }
    Value::Object(shown)
}

/// Whether a connection's `security` names a definition of its project that this kind of connection can carry.
pub(crate) fn check_named(
    shared: &Shared,
    project_id: ProjectId,
    kind: ConnectionKind,
    name: Option<&str>,
) -> Result<(), SettingError> {
    const NAMED_MAX: usize = 20;
    let Some(name) = name else { return Ok(()) };
    if let Some(known) = shared.securities.get(project_id, name) {
        let unfit = match (known.definition.kind(), kind.family()) {
            (SecurityKind::OAuth2 | SecurityKind::Smart | SecurityKind::Wss, Family::Channel) => Some(
                "a definition of type apikey, basic_auth, bearer or webhook_signature: those are what a request to a channel can show",
            ),
            (SecurityKind::WebhookSignature, Family::Connection | Family::Service) => {
                Some("a definition of another type: one of type webhook_signature is what requests to a channel show")
            }
            (SecurityKind::Wss, _) if kind != ConnectionKind::Soap => Some(
                "a definition of another type: one of type wss goes into envelopes, which only connections of type soap have",
            ),
            _ => None,
        };
        return match unfit {
            None => Ok(()),
            Some(allowed) => Err(SettingError::new("security", name.to_owned(), allowed)),
        };
    }
    let known = shared.securities.of(project_id);
    let named: Vec<&str> = known.iter().take(NAMED_MAX).map(|known| known.definition.name.as_str()).collect();
    let allowed = match known.len() {
        0 => "the name of a security definition of the project, which has none yet".to_owned(),
        1..=NAMED_MAX => format!("one of the project's security definitions: {}", named.join(", ")),
        _ => format!("one of the project's security definitions: {}, …", named.join(", ")),
    };
    Err(SettingError::new("security", name.to_owned(), allowed))
}

fn validated(new: &NewSecurity) -> Result<ReadSecurity, Refusal> {
    let mut errors: Vec<SettingError> = check_name(&new.name).err().into_iter().collect();
    match security::parse(new.kind, &new.written) {
        Ok(read) if errors.is_empty() => Ok(read),
        Ok(_) => Err(Refusal::Invalid(errors)),
        Err(more) => {
            errors.extend(more);
            Err(Refusal::Invalid(errors))
        }
    }
}

fn missing(kind: SecurityKind) -> Refusal {
    let key = kind.secret_key();
    let doc = security_keys(kind).iter().find(|doc| doc.name == key);
    Refusal::Invalid(vec![SettingError::new(key, "missing", doc.map_or("a secret", |doc| doc.allowed))])
}

fn check_credentials(spec: &SecuritySpec, secret: &Secret) -> Result<(), Refusal> {
    let key = spec.kind().secret_key();
    let refused = |error: postrider_wire::auth::CredentialsError| {
        Refusal::Invalid(vec![SettingError::new(key, MASK, format!("what can be sent: {error}"))])
    };
    Credentials::new(spec, secret).map(drop).map_err(refused)
}

/// The purpose outlives a rename and tells one type's secret from another's.
fn purpose(id: SecurityId, kind: SecurityKind) -> String {
    format!("security/{id}/{}", kind.secret_key())
}

fn seal(
    vault: &Vault,
    project_id: ProjectId,
    id: SecurityId,
    kind: SecurityKind,
    secret: &Secret,
) -> Result<String, Refusal> {
    let purpose = purpose(id, kind);
    let sealed = vault.seal(secret, Place { project_id, purpose: &purpose });
    sealed.map(|sealed| sealed.as_str().to_owned()).map_err(|error| match error {
        VaultError::TooLong { .. } => {
            let allowed = format!("at most {SECRET_BYTES_MAX} bytes (`secret_bytes_max`)");
            Refusal::Invalid(vec![SettingError::new(kind.secret_key(), MASK, allowed)])
        }
        other => Refusal::Conflict(format!("the secret cannot be stored: {other}")),
    })
}

pub(crate) fn open(vault: &Vault, definition: &SecurityDefinition) -> Result<Secret, String> {
    let purpose = purpose(definition.id, definition.kind());
    let place = Place { project_id: definition.project_id, purpose: &purpose };
    let opened = vault.open(&Sealed::from_stored(definition.sealed.as_str()), place);
    opened.map_err(|error| format!("the secret of `{}` cannot be read: {error}", definition.name))
}

/// After a rotation of keys: under the key that seals now, so that the old one can go. What cannot be written stays as it was.
async fn sealed_anew(shared: &Shared, definition: SecurityDefinition, secret: &Secret) -> SecurityDefinition {
    if shared.vault.is_current(&Sealed::from_stored(definition.sealed.as_str())) {
        return definition;
    }
    let Ok(sealed) = seal(&shared.vault, definition.project_id, definition.id, definition.kind(), secret) else {
        return definition;
    };
    let again = SecurityDefinition { sealed, version: definition.version.saturating_add(1), ..definition.clone() };
    let entry = entry(shared, &Actor::system(), "security.reseal", &again);
    let change = Change::ReplaceSecurity { definition: Box::new(again.clone()), version: definition.version };
    match shared.store.change(change, entry).await {
        Ok(()) => again,
        Err(error) => {
            tracing::warn!(event = log::SECRET_NOT_RESEALED, %error, definition = definition.name, "a secret could not be sealed under the new key");
            definition
        }
    }
}

/// `security_definitions_max` holds for the definitions of a batch as well.
pub(crate) fn check_room(shared: &Shared, batch: &[ConfigChange]) -> Result<(), Refusal> {
    let mut made: BTreeMap<ProjectId, usize> = BTreeMap::new();
    for change in batch {
        if let ConfigChange::CreateSecurity(definition) = change {
            *made.entry(definition.project_id).or_default() += 1;
        }
    }
    let is_full = |(project, made): (&ProjectId, &usize)| shared.securities.of(*project).len() + made > DEFINITIONS_MAX;
    match made.iter().any(is_full) {
        true => Err(Refusal::Full { limit: "security_definitions_max" }),
        false => Ok(()),
    }
}

/// Seals the new secrets of a batch, each into its definition. Those that are replaced without one keep what they have.
pub(crate) fn seal_batch(
    vault: &Vault,
    batch: &mut [ConfigChange],
    secrets: &BTreeMap<SecretOwner, Secret>,
) -> Result<(), Refusal> {
    for change in batch {
        let (ConfigChange::CreateSecurity(definition) | ConfigChange::ReplaceSecurity { definition, .. }) = change
        else {
            continue;
        };
        match secrets.get(&SecretOwner::Security(definition.id)) {
            Some(secret) => {
                check_credentials(&definition.spec, secret)?;
                definition.sealed = seal(vault, definition.project_id, definition.id, definition.kind(), secret)?;
            }
            None if definition.sealed.is_empty() => return Err(missing(definition.kind())),
            None => {}
        }
    }
    Ok(())
}

/// From the next attempt on.
pub(crate) fn use_imported(shared: &Shared, definition: SecurityDefinition) {
    let secret = open(&shared.vault, &definition);
    put(shared, definition, secret);
}

/// The secrets that can be read, in the clear: for a plan that compares them with those of a file, and for nothing else.
pub fn opened_secrets(
    vault: &Vault,
    definitions: &[SecurityDefinition],
    sources: &[SourceRow],
) -> BTreeMap<SecretOwner, Secret> {
    let of_definitions =
        definitions.iter().filter_map(|known| Some((SecretOwner::Security(known.id), open(vault, known).ok()?)));
    let of_sources = sources.iter().filter_map(|row| {
        let sealed = row.keys.sealed.as_deref()?;
        Some((SecretOwner::Source(row.source.id), sourcing::secret_of(vault, &row.source, sealed).ok()?))
    });
    of_definitions.chain(of_sources).collect()
}

fn put(shared: &Shared, definition: SecurityDefinition, secret: Result<Secret, String>) -> Arc<Security> {
    let credentials = secret.and_then(|secret| {
        let made = Credentials::new(&definition.spec, &secret);
        made.map(Arc::new).map_err(|error| format!("the secret of `{}` cannot be used: {error}", definition.name))
    });
    let security = Arc::new(Security { definition, credentials });
    shared.securities.put(Arc::clone(&security));
    security
}
