//! Sources as operators change them: a token and a secret made or taken, hashed and sealed, then in force for the next webhook (R12).
//!
//! A token opens the address and is a credential: only its hash is stored, and it is shown once. It must not know how a webhook is verified.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postrider_core::id::{ProjectId, SourceId};
use postrider_core::log;
use postrider_core::settings::SettingError;
use postrider_core::source::{SOURCES_MAX, SecretOrigin, Source, SourceSpec};
use postrider_core::{MASK, Secret, Wait};
use postrider_store::{AuditEntry, Change, ConfigChange, SecretOwner, SourceKeys, SourceRow, StoreError};
use postrider_wire::verify::{VerificationKey, made_secret};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::endpointing::ROTATION_OVERLAP_MAX;
use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::sources::{OpenSource, SourceFigures};
use crate::vault::{Place, Sealed, Vault};

/// Before a token, so that people see what it is.
const TOKEN_PREFIX: &str = "in_";

/// What somebody wrote about a source, not yet validated.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSource {
    pub name: String,
    /// The keys of `webhook_source`, without `secret`.
    pub written: Map<String, Value>,
    /// `None`: one is made, where the provider takes one from us.
    pub secret: Option<Secret>,
}

/// What is shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub token: Option<Secret>,
    pub secret: Option<Secret>,
}

impl Engine {
    /// Of one project, by id.
    pub fn sources(&self, project: ProjectId) -> Vec<Arc<OpenSource>> {
        self.shared.sources.of(project)
    }

    /// # Errors
    /// `NotFound`, also when it is another project's.
    pub fn source(&self, project: ProjectId, id: SourceId) -> Result<Arc<OpenSource>, Refusal> {
        let found = self.shared.sources.get(id).filter(|known| known.row.source.project_id == project);
        found.ok_or_else(|| Refusal::NotFound { what: "source", name: id.to_string() })
    }

    /// What came of what it brought, in this process.
    pub fn source_figures(&self, id: SourceId) -> SourceFigures {
        self.shared.sources.figures(id)
    }

    /// Webhooks that came in, by the word for what came of them, in this process.
    pub fn incoming_figures(&self) -> std::collections::BTreeMap<&'static str, u64> {
        self.shared.sources.totals()
    }

    /// With its token, and its secret when one was made: nobody is shown them again.
    pub async fn create_source(&self, project: ProjectId, new: NewSource) -> Result<(Arc<OpenSource>, Shown), Refusal> {
        if self.sources(project).len() >= SOURCES_MAX {
            return Err(Refusal::Full { limit: "sources_max" });
        }
        let (row, shown) = first_row(&self.shared, project, new)?;
        let entry = entry(&self.shared, &self.actor, "source.create", &row.source).with_after(settings(&row.source));
        let change = Change::CreateSource(Box::new(row.clone()));
        self.shared.store.change(change, entry).await?;
        let opened = Arc::new(opened(&self.shared, row));
        self.shared.sources.put(Arc::clone(&opened));
        Ok((opened, shown))
    }

    /// All keys anew; token and secret stay. The provider and the topic stay too: other webhooks want another source.
    pub async fn replace_source(
        &self,
        project: ProjectId,
        id: SourceId,
        name: Option<String>,
        mut written: Map<String, Value>,
    ) -> Result<Arc<OpenSource>, Refusal> {
        let known = self.source(project, id)?;
        let source = &known.row.source;
        let name = name.unwrap_or_else(|| source.name.clone());
        for key in ["provider", "topic"] {
            let kept = source.written.get(key).cloned().unwrap_or_default();
            written.entry(key).or_insert(kept);
        }
        let spec = SourceSpec::parse(&name, &written).map_err(Refusal::Invalid)?;
        let changed = [
            ("provider", spec.provider != source.spec.provider, source.spec.provider.as_str()),
            ("topic", spec.topic != source.spec.topic, source.spec.topic.as_str()),
        ];
        let errors: Vec<SettingError> = changed
            .into_iter()
            .filter(|(_, is_other, _)| *is_other)
            .map(|(field, _, kept)| SettingError::new(field, "another", format!("`{kept}`, which stays")))
            .collect();
        if !errors.is_empty() {
            return Err(Refusal::Invalid(errors));
        }
        let anew = Source { name, written, spec, ..source.clone() };
        store(&self.shared, &self.actor, "source.replace", &known, anew, known.row.keys.clone()).await
    }

    /// Whoever still sends here is told that there is nothing. Its destinations stay, as subscriptions to its topic.
    pub async fn delete_source(&self, project: ProjectId, id: SourceId) -> Result<(), Refusal> {
        let known = self.source(project, id)?;
        let source = &known.row.source;
        let entry = entry(&self.shared, &self.actor, "source.delete", source).with_before(settings(source));
        self.shared.store.change(Change::DeleteSource(id), entry).await?;
        self.shared.sources.remove(id);
        Ok(())
    }

    /// A new address. The former one goes on for `overlap`; zero: it ends at once.
    pub async fn rotate_source_token(
        &self,
        project: ProjectId,
        id: SourceId,
        overlap: Wait,
    ) -> Result<(Arc<OpenSource>, Shown), Refusal> {
        let known = self.source(project, id)?;
        let token = made_token(&self.shared);
        let until = self.shared.now() + overlap.min(ROTATION_OVERLAP_MAX);
        let former_token = (overlap > Wait::ZERO).then_some((known.row.keys.token_hash, until));
        let keys = SourceKeys { token_hash: token_hash(token.expose()), former_token, ..known.row.keys.clone() };
        let source = known.row.source.clone();
        let stored = store(&self.shared, &self.actor, "source.rotate_token", &known, source, keys).await?;
        Ok((stored, Shown { token: Some(token), secret: None }))
    }

    /// Another secret. The former one verifies too for `overlap`; a secret that cannot be read any more has no overlap.
    pub async fn rotate_source_secret(
        &self,
        project: ProjectId,
        id: SourceId,
        secret: Option<Secret>,
        overlap: Wait,
    ) -> Result<(Arc<OpenSource>, Shown), Refusal> {
        let known = self.source(project, id)?;
        let source = known.row.source.clone();
        let (sealed, made) = sealed_secret(&self.shared, &source, secret)?;
        let until = self.shared.now() + overlap.min(ROTATION_OVERLAP_MAX);
        let goes_on = overlap > Wait::ZERO && known.key.is_ok();
        let former_sealed = known.row.keys.sealed.clone().filter(|_| goes_on).map(|sealed| (sealed, until));
        let keys = SourceKeys { sealed, former_sealed, ..known.row.keys.clone() };
        let stored = store(&self.shared, &self.actor, "source.rotate_secret", &known, source, keys).await?;
        Ok((stored, Shown { token: None, secret: made }))
    }
}

/// The row of a source that is being made, and what is shown of it.
pub(crate) fn first_row(shared: &Shared, project_id: ProjectId, new: NewSource) -> Result<(SourceRow, Shown), Refusal> {
    let spec = SourceSpec::parse(&new.name, &new.written).map_err(Refusal::Invalid)?;
    let now = shared.now();
    let mut written = new.written;
    // As it is now: a later name must not make it another one.
    written.insert("topic".to_owned(), spec.topic.as_str().into());
    let source = Source {
        id: SourceId::new(now, shared.dice.bits()),
        project_id,
        name: new.name,
        written,
        spec,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let (sealed, secret) = sealed_secret(shared, &source, new.secret)?;
    let token = made_token(shared);
    let keys = SourceKeys { token_hash: token_hash(token.expose()), former_token: None, sealed, former_sealed: None };
    Ok((SourceRow { source, keys }, Shown { token: Some(token), secret }))
}

/// Sealed, and in the clear when we made it.
fn sealed_secret(
    shared: &Shared,
    source: &Source,
    given: Option<Secret>,
) -> Result<(Option<String>, Option<Secret>), Refusal> {
    let provider = source.spec.provider;
    let refused = |given: &str, allowed: String| Refusal::Invalid(vec![SettingError::new("secret", given, allowed)]);
    let (secret, made) = match (provider.secret_origin(), given) {
        (SecretOrigin::Nobody, None) => return Ok((None, None)),
        (SecretOrigin::Nobody, Some(_)) => {
            return Err(refused(MASK, "nothing for the provider none, which verifies nothing".to_owned()));
        }
        (SecretOrigin::Provider, None) => {
            return Err(refused("missing", format!("the secret that {} shows", provider.as_str())));
        }
        (SecretOrigin::Either, None) => {
            let secret = made_secret(provider, &random_bytes(shared));
            (secret.clone(), Some(secret))
        }
        (_, Some(secret)) => (secret, None),
    };
    Ok((Some(checked_and_sealed(&shared.vault, source, &secret)?), made))
}

fn checked_and_sealed(vault: &Vault, source: &Source, secret: &Secret) -> Result<String, Refusal> {
    VerificationKey::read(source.spec.provider, secret)
        .map_err(|bad| Refusal::Invalid(vec![SettingError::new("secret", MASK, bad.allowed.to_owned())]))?;
    let purpose = purpose(source.id);
    let sealed = vault.seal(secret, Place { project_id: source.project_id, purpose: &purpose });
    let sealed = sealed.map_err(|error| Refusal::Conflict(format!("the secret cannot be stored: {error}")))?;
    Ok(sealed.as_str().to_owned())
}

fn random_bytes(shared: &Shared) -> [u8; 32] {
    let mut random = [0; 32];
    for half in random.chunks_mut(16) {
        half.copy_from_slice(&shared.dice.bits().to_be_bytes());
    }
    random
}

/// 256 random bits in letters that an address carries as they are.
fn made_token(shared: &Shared) -> Secret {
    Secret::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(random_bytes(shared))))
}

pub(crate) fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// `sources_max` holds for the sources of a batch as well.
pub(crate) fn check_room(shared: &Shared, batch: &[ConfigChange]) -> Result<(), Refusal> {
    let mut made: BTreeMap<ProjectId, usize> = BTreeMap::new();
    for change in batch {
        if let ConfigChange::CreateSource(row) = change {
            *made.entry(row.source.project_id).or_default() += 1;
        }
    }
    let is_full = |(project, made): (&ProjectId, &usize)| shared.sources.of(*project).len() + made > SOURCES_MAX;
    if made.iter().any(is_full) { Err(Refusal::Full { limit: "sources_max" }) } else { Ok(()) }
}

/// Seals the new secrets of a batch, each into its source. Those that are replaced without one keep what they have.
pub(crate) fn seal_batch(
    vault: &Vault,
    batch: &mut [ConfigChange],
    secrets: &BTreeMap<SecretOwner, Secret>,
) -> Result<(), Refusal> {
    for change in batch {
        let (ConfigChange::CreateSource(row) | ConfigChange::ReplaceSource { row, .. }) = change else { continue };
        if let Some(secret) = secrets.get(&SecretOwner::Source(row.source.id)) {
            row.keys.sealed = Some(checked_and_sealed(vault, &row.source, secret)?);
        }
        let is_verified = row.source.spec.provider.secret_origin() != SecretOrigin::Nobody;
        if is_verified && row.keys.sealed.is_none() {
            let allowed = format!("the secret of the source `{}`", row.source.name);
            return Err(Refusal::Invalid(vec![SettingError::new("secret", "missing", allowed)]));
        }
    }
    Ok(())
}

/// From the next webhook on.
pub(crate) fn use_imported(shared: &Shared, row: SourceRow) {
    shared.sources.put(Arc::new(opened(shared, row)));
}

/// The purpose outlives a rename.
fn purpose(id: SourceId) -> String {
    format!("source/{id}/secret")
}

async fn store(
    shared: &Shared,
    actor: &Actor,
    action: &str,
    known: &OpenSource,
    source: Source,
    keys: SourceKeys,
) -> Result<Arc<OpenSource>, Refusal> {
    let before = &known.row.source;
    let version = before.version;
    let source = Source { version: version.saturating_add(1), updated_at: shared.now(), ..source };
    let entry = entry(shared, actor, action, before).with_before(settings(before)).with_after(settings(&source));
    let row = SourceRow { source, keys };
    shared.store.change(Change::ReplaceSource { row: Box::new(row.clone()), version }, entry).await?;
    let opened = Arc::new(opened(shared, row));
    shared.sources.put(Arc::clone(&opened));
    Ok(opened)
}

fn entry(shared: &Shared, actor: &Actor, action: &str, source: &Source) -> AuditEntry {
    shared.audit_entry(actor, Some(source.project_id), action).about(source.id, &source.name)
}

/// As the audit log keeps it: neither the token nor the secret is among the settings.
pub(crate) fn settings(source: &Source) -> Value {
    let mut shown = source.written.clone();
    shown.insert("name".to_owned(), source.name.clone().into());
    shown.insert("version".to_owned(), json!(source.version));
    Value::Object(shown)
}

/// Brings all of them into memory.
pub(crate) async fn load(shared: &Shared) -> Result<(), StoreError> {
    for row in shared.store.all_sources().await? {
        let row = sealed_anew(shared, row).await;
        let source = opened(shared, row);
        if let Some(why) = source.unreadable() {
            tracing::error!(
                event = log::SECRET_UNREADABLE,
                source = %source.row.source.id,
                why,
                "the secret of a source cannot be read"
            );
        }
        shared.sources.put(Arc::new(source));
    }
    Ok(())
}

/// As they are now, whoever changed them.
pub(crate) async fn read_anew(shared: &Shared) -> Result<(), StoreError> {
    let rows = shared.store.all_sources().await?;
    shared.sources.replace_all(rows.into_iter().map(|row| Arc::new(opened(shared, row))).collect());
    Ok(())
}

/// With its secrets ready, as far as they can be read.
fn opened(shared: &Shared, row: SourceRow) -> OpenSource {
    let key = row.keys.sealed.as_deref().map(|sealed| open(shared, &row.source, sealed)).transpose();
    let key = key.map_err(|error| format!("the secret of {} cannot be read: {error}", row.source.id));
    let former = row.keys.former_sealed.as_ref().and_then(|(sealed, _)| open(shared, &row.source, sealed).ok());
    OpenSource { row, key, former }
}

fn open(shared: &Shared, source: &Source, sealed: &str) -> Result<Arc<VerificationKey>, String> {
    let secret = secret_of(&shared.vault, source, sealed)?;
    VerificationKey::read(source.spec.provider, &secret).map(Arc::new).map_err(|error| error.to_string())
}

pub(crate) fn secret_of(vault: &Vault, source: &Source, sealed: &str) -> Result<Secret, String> {
    let purpose = purpose(source.id);
    let place = Place { project_id: source.project_id, purpose: &purpose };
    vault.open(&Sealed::from_stored(sealed), place).map_err(|error| error.to_string())
}

/// After a rotation of the server's own keys: under the one that seals now, so that the old one can go. What cannot be written stays.
async fn sealed_anew(shared: &Shared, row: SourceRow) -> SourceRow {
    let purpose = purpose(row.source.id);
    let place = Place { project_id: row.source.project_id, purpose: &purpose };
    let anew = |sealed: &str| match shared.vault.reseal(&Sealed::from_stored(sealed), place) {
        Ok(Some(again)) => again.as_str().to_owned(),
        Ok(None) | Err(_) => sealed.to_owned(),
    };
    let keys = SourceKeys {
        sealed: row.keys.sealed.as_deref().map(anew),
        former_sealed: row.keys.former_sealed.as_ref().map(|(sealed, until)| (anew(sealed), *until)),
        ..row.keys.clone()
    };
    if keys == row.keys {
        return row;
    }
    match shared.store.reseal_source(row.source.id, &keys, row.source.version).await {
        Ok(()) => SourceRow { keys, ..row },
        Err(error) => {
            tracing::warn!(
                event = log::SECRET_NOT_RESEALED,
                %error,
                source = %row.source.id,
                "the secret of a source could not be sealed under the new key"
            );
            row
        }
    }
}
