//! Webhook endpoints as their owners change them: the address judged, the signing key made and sealed, then ready for the next attempt.
//!
//! An endpoint is a connection of kind webhook with a row of its own beside it. It must not know how requests are signed.

use std::sync::Arc;

use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::endpoint::{EndpointState, Verification};
use postrider_core::health::EndpointHealth;
use postrider_core::id::{ConnectionId, EndpointId, ProjectId};
use postrider_core::log;
use postrider_core::settings::SettingError;
use postrider_core::{MASK, Secret, Wait};
use postrider_store::{Change, EndpointKeys, EndpointRow, FormerSigningKey, StoreError};
use postrider_wire::signature::{HMAC_KEY_BYTES, KEYS, Scheme, SigningKey};
use serde_json::{Map, Value, json};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::configuring;
use crate::endpoints::Endpoint;
use crate::engine::{ConnectionRef, Engine, NewConnection};
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::vault::{Place, SECRET_BYTES_MAX, Sealed, VaultError};

/// `endpoints_max`: of one project. All of them are in memory.
const ENDPOINTS_MAX: usize = 20_000;
/// How long the former key goes on signing after a rotation, at most: 30 days.
pub const ROTATION_OVERLAP_MAX: Wait = Wait::from_secs(30 * 86_400);

/// What somebody wrote about an endpoint, not yet validated. Its secret shows nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEndpoint {
    /// `None`: it goes by its id.
    pub name: Option<String>,
    /// The keys of `webhook_endpoint`.
    pub written: Map<String, Value>,
    pub key: KeyWish,
    /// It has to answer a challenge before it is sent anything.
    pub verify: bool,
}

/// Which signing key an endpoint is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyWish {
    Make(Scheme),
    /// One that its owner has already.
    Given(Secret),
}

impl Engine {
    /// The endpoints of one project, by id.
    pub fn endpoints(&self, project: ProjectId) -> Vec<Arc<Connection>> {
        let is_ours = |connection: &Arc<Connection>| {
            connection.project_id == project && connection.kind() == ConnectionKind::Webhook
        };
        self.shared.connections.all().into_iter().filter(is_ours).collect()
    }

    /// # Errors
    /// `NotFound`, also when it is another project's.
    pub fn endpoint(&self, project: ProjectId, id: EndpointId) -> Result<Arc<Connection>, Refusal> {
        find(&self.shared, project, id)
    }

    /// How it stands and what signs for it.
    pub fn endpoint_standing(&self, id: EndpointId) -> Option<Arc<Endpoint>> {
        self.shared.endpoints.get(id.connection())
    }

    /// With the secret, which nobody is shown again.
    pub async fn create_endpoint(
        &self,
        project: ProjectId,
        new: NewEndpoint,
    ) -> Result<(Arc<Connection>, Secret), Refusal> {
        if self.endpoints(project).len() >= ENDPOINTS_MAX {
            return Err(Refusal::Full { limit: "endpoints_max" });
        }
        create(&self.shared, &self.actor, project, new).await
    }

    /// All settings anew. The secret and how the endpoint stands stay as they are.
    pub async fn replace_endpoint(
        &self,
        project: ProjectId,
        id: EndpointId,
        name: Option<String>,
        written: Map<String, Value>,
    ) -> Result<Arc<Connection>, Refusal> {
        let known = find(&self.shared, project, id)?;
        let new =
            NewConnection { name: name.unwrap_or_else(|| known.name.clone()), kind: ConnectionKind::Webhook, written };
        configuring::replace(&self.shared, &self.actor, project, &named(&known), new).await
    }

    pub async fn delete_endpoint(&self, project: ProjectId, id: EndpointId, forced: bool) -> Result<(), Refusal> {
        let known = find(&self.shared, project, id)?;
        configuring::delete(&self.shared, &self.actor, project, &named(&known), forced).await
    }

    /// A new key. The former one goes on signing beside it for `overlap`; zero: it ends at once. It is the way out of
    /// `secret_unreadable` too, and then there is no overlap.
    pub async fn rotate_endpoint_key(
        &self,
        project: ProjectId,
        id: EndpointId,
        wish: KeyWish,
        overlap: Wait,
    ) -> Result<Secret, Refusal> {
        let known = find(&self.shared, project, id)?;
        rotate(&self.shared, &self.actor, &known, wish, overlap).await
    }
}

pub(crate) fn find(shared: &Shared, project: ProjectId, id: EndpointId) -> Result<Arc<Connection>, Refusal> {
    let found = shared.connections.get(id.connection()).filter(|known| known.project_id == project);
    let found = found.filter(|known| known.kind() == ConnectionKind::Webhook);
    found.ok_or_else(|| Refusal::NotFound { what: "endpoint", name: id.to_string() })
}

fn named(connection: &Connection) -> ConnectionRef {
    ConnectionRef { name: connection.name.clone(), kind: Some(ConnectionKind::Webhook) }
}

async fn create(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    new: NewEndpoint,
) -> Result<(Arc<Connection>, Secret), Refusal> {
    let (connection, row, secret) = draft(shared, project_id, new).await?;
    let entry = configuring::entry(shared, actor, "connection.create", &connection);
    let entry = entry.with_after(configuring::shown(&connection));
    let change = Change::CreateEndpoint { connection: Box::new((*connection).clone()), row: Box::new(row.clone()) };
    shared.store.change(change, entry).await.map_err(|error| configuring::named(error, &connection))?;
    shared.endpoints.put(Arc::new(opened(shared, row)));
    shared.connections.put(Arc::clone(&connection));
    Ok((connection, secret))
}

/// An endpoint that may be stored, and its row.
async fn draft(
    shared: &Shared,
    project_id: ProjectId,
    new: NewEndpoint,
) -> Result<(Arc<Connection>, EndpointRow, Secret), Refusal> {
    let id = ConnectionId::new(shared.now(), shared.dice.bits());
    let name = new.name.unwrap_or_else(|| EndpointId::of(id).to_string());
    let new_connection = NewConnection { name, kind: ConnectionKind::Webhook, written: new.written };
    let connection = configuring::made(shared, project_id, id, new_connection).await?;
    let verification = if new.verify { Verification::Pending } else { Verification::NotNeeded };
    let (row, secret) = first_row(shared, &connection, new.key, verification)?;
    Ok((connection, row, secret))
}

/// The same for an endpoint that signs nothing, so that nobody needs its secret.
pub(crate) async fn drafted(
    shared: &Shared,
    project_id: ProjectId,
    new: NewEndpoint,
) -> Result<(Arc<Connection>, EndpointRow), Refusal> {
    let (connection, row, _) = draft(shared, project_id, new).await?;
    Ok((connection, row))
}

/// The row of an endpoint that is being made.
pub(crate) fn first_row(
    shared: &Shared,
    connection: &Connection,
    wish: KeyWish,
    verification: Verification,
) -> Result<(EndpointRow, Secret), Refusal> {
    let secret = secret_of(shared, wish)?;
    let sealed = seal(shared, connection, &secret)?;
    let row = EndpointRow {
        id: connection.id,
        project_id: connection.project_id,
        keys: EndpointKeys { sealed, former: None },
        state: EndpointState { verification, ..EndpointState::default() },
        verified_url: None,
        tell_at: None,
        version: 1,
    };
    Ok((row, secret))
}

async fn rotate(
    shared: &Shared,
    actor: &Actor,
    connection: &Connection,
    wish: KeyWish,
    overlap: Wait,
) -> Result<Secret, Refusal> {
    let Some(known) = shared.endpoints.get(connection.id) else {
        return Err(Refusal::NotFound { what: "endpoint", name: connection.name.clone() });
    };
    let secret = secret_of(shared, wish)?;
    let now = shared.now();
    let goes_on = overlap > Wait::ZERO && known.key.is_ok();
    let former = goes_on.then(|| FormerSigningKey {
        sealed: known.row.keys.sealed.clone(),
        signs_until: now + overlap.min(ROTATION_OVERLAP_MAX),
    });
    let keys = EndpointKeys { sealed: seal(shared, connection, &secret)?, former };
    let entry = configuring::entry(shared, actor, "endpoint.rotate_secret", connection);
    let signs_until = keys.former.as_ref().map(|former| former.signs_until);
    let entry = entry.with_after(json!({"secret": MASK, "formerSecretSignsUntil": signs_until}));
    let change = Change::ReplaceEndpointKeys { id: connection.id, keys: keys.clone(), version: known.row.version };
    shared.store.change(change, entry).await.map_err(|error| configuring::named(error, connection))?;
    let row = EndpointRow { keys, version: known.row.version.saturating_add(1), ..known.row.clone() };
    shared.endpoints.put_keys(opened(shared, row));
    Ok(secret)
}

/// As they are now, whoever changed them.
pub(crate) async fn read_anew(shared: &Shared) -> Result<(), StoreError> {
    for row in shared.store.all_endpoints().await? {
        let is_ours = shared.queues.get(row.id).is_some();
        shared.endpoints.put_read(opened(shared, row), is_ours);
    }
    Ok(())
}

/// One of them as it is in the store, which holds.
pub(crate) async fn read_one_anew(shared: &Shared, id: ConnectionId) -> Result<(), StoreError> {
    if let Some(row) = shared.store.endpoint(id).await? {
        shared.endpoints.put_read(opened(shared, row), false);
    }
    Ok(())
}

/// As it has just been written.
pub(crate) fn row_changed(shared: &Shared, id: ConnectionId, change: configuring::RowChange) {
    shared.endpoints.foresee(id, |row| {
        if let Some(verification) = change.verification {
            (row.state.verification, row.verified_url) = (verification, None);
        }
        if let Some(epoch) = change.switches_on {
            row.state = EndpointState { off: None, health: EndpointHealth::default(), epoch, ..row.state };
            row.tell_at = None;
        }
        Some(())
    });
}

/// Brings all endpoints into memory, and makes the row of each that has none, such as one that an import has made.
pub(crate) async fn load(shared: &Shared) -> Result<(), StoreError> {
    for row in shared.store.all_endpoints().await? {
        let row = sealed_anew(shared, row).await;
        let endpoint = opened(shared, row);
        if let Some(why) = endpoint.unreadable() {
            tracing::error!(
                event = log::SECRET_UNREADABLE,
                endpoint = %EndpointId::of(endpoint.row.id),
                why,
                "a signing key cannot be read"
            );
        }
        shared.endpoints.put(Arc::new(endpoint));
    }
    for connection in shared.connections.all() {
        complete(shared, &connection).await?;
    }
    Ok(())
}

/// Its owner sees the secret when it is rotated. One that cannot be made now is made at the next start, and attempts fail until then.
pub(crate) async fn complete(shared: &Shared, connection: &Connection) -> Result<(), StoreError> {
    if connection.kind() != ConnectionKind::Webhook || shared.endpoints.get(connection.id).is_some() {
        return Ok(());
    }
    match first_row(shared, connection, KeyWish::Make(Scheme::Symmetric), Verification::NotNeeded) {
        Ok((row, _)) => {
            shared.store.create_endpoint(&row).await?;
            shared.endpoints.put(Arc::new(opened(shared, row)));
        }
        Err(refusal) => {
            tracing::error!(
                event = log::ENDPOINT_KEY_NOT_MADE,
                %refusal,
                endpoint = %EndpointId::of(connection.id),
                "a signing key cannot be made"
            );
        }
    }
    Ok(())
}

fn secret_of(shared: &Shared, wish: KeyWish) -> Result<Secret, Refusal> {
    let refused = |_| Refusal::Invalid(vec![SettingError::new("secret", MASK, KEYS)]);
    let secret = match wish {
        KeyWish::Make(scheme) => {
            let mut random = [0; HMAC_KEY_BYTES];
            for half in random.chunks_mut(16) {
                half.copy_from_slice(&shared.dice.bits().to_be_bytes());
            }
            scheme.secret_of(&random).map_err(refused)?
        }
        KeyWish::Given(secret) => secret,
    };
    SigningKey::read(&secret).map_err(refused)?;
    Ok(secret)
}

/// The purpose outlives a rename.
fn purpose(id: ConnectionId) -> String {
    format!("endpoint/{id}/signing")
}

fn seal(shared: &Shared, connection: &Connection, secret: &Secret) -> Result<String, Refusal> {
    let purpose = purpose(connection.id);
    let place = Place { project_id: connection.project_id, purpose: &purpose };
    shared.vault.seal(secret, place).map(|sealed| sealed.as_str().to_owned()).map_err(|error| match error {
        VaultError::TooLong { .. } => {
            let allowed = format!("at most {SECRET_BYTES_MAX} bytes (`secret_bytes_max`)");
            Refusal::Invalid(vec![SettingError::new("secret", MASK, allowed)])
        }
        other => Refusal::Conflict(format!("the secret cannot be stored: {other}")),
    })
}

fn open(shared: &Shared, row: &EndpointRow, sealed: &str) -> Result<Arc<SigningKey>, String> {
    let purpose = purpose(row.id);
    let place = Place { project_id: row.project_id, purpose: &purpose };
    let secret = shared.vault.open(&Sealed::from_stored(sealed), place).map_err(|error| error.to_string())?;
    SigningKey::read(&secret).map(Arc::new).map_err(|error| error.to_string())
}

/// With its keys ready, as far as they can be read.
pub(crate) fn opened(shared: &Shared, row: EndpointRow) -> Endpoint {
    let key = open(shared, &row, &row.keys.sealed)
        .map_err(|error| format!("the signing key of {} cannot be read: {error}", EndpointId::of(row.id)));
    let former = row.keys.former.as_ref().and_then(|former| open(shared, &row, &former.sealed).ok());
    Endpoint { row, key, former }
}

/// After a rotation of the server's own keys: under the one that seals now, so that the old one can go. What cannot be written stays.
async fn sealed_anew(shared: &Shared, row: EndpointRow) -> EndpointRow {
    let purpose = purpose(row.id);
    let place = Place { project_id: row.project_id, purpose: &purpose };
    let anew = |sealed: &str| match shared.vault.reseal(&Sealed::from_stored(sealed), place) {
        Ok(Some(again)) => Some(again.as_str().to_owned()),
        Ok(None) | Err(_) => None,
    };
    let former = row.keys.former.as_ref().and_then(|former| {
        let sealed = anew(&former.sealed)?;
        Some(FormerSigningKey { sealed, ..former.clone() })
    });
    let current = anew(&row.keys.sealed);
    if current.is_none() && former.is_none() {
        return row;
    }
    let keys = EndpointKeys {
        sealed: current.unwrap_or_else(|| row.keys.sealed.clone()),
        former: former.or_else(|| row.keys.former.clone()),
    };
    match shared.store.replace_endpoint_keys(row.id, &keys, row.version).await {
        Ok(()) => EndpointRow { keys, version: row.version.saturating_add(1), ..row },
        Err(error) => {
            tracing::warn!(
                event = log::SECRET_NOT_RESEALED,
                %error,
                endpoint = %EndpointId::of(row.id),
                "a signing key could not be sealed under the new key"
            );
            row
        }
    }
}
