//! Secrets at rest (D46): sealed before they reach the store, opened where they are used, and never anywhere else in the clear.
//!
//! ChaCha20-Poly1305 (RFC 8439). Each sealing draws a salt of 256 bits, and HKDF-SHA256 (RFC 5869) makes a key and a nonce of its own from
//! the master key and that salt, so there is no number of secrets after which a nonce could repeat. The project and the purpose are bound in
//! as associated data: what was sealed for one place opens in no other. It must not know where the sealed text is kept.

mod keyring;
mod sealed;

pub use keyring::{KeyHome, Keyring, MasterKey};
pub use sealed::Sealed;

use std::sync::{Arc, PoisonError, RwLock};

use postrider_core::Secret;
use postrider_core::id::ProjectId;
use postrider_core::log;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;

use crate::dice::Dice;

/// Bytes of a secret, at most: a certificate chain with its key fits.
pub const SECRET_BYTES_MAX: usize = 64 << 10;
const SALT_BYTES: usize = 32;
/// What the derived bytes are for; a new format gets a new text.
const DERIVED_FOR: &[u8] = b"postrider vault v1";

/// Why a secret could not be sealed or opened. None of them shows any of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("no key for secrets is configured: set `POSTRIDER_SECRETS_KEY_FILE` or `POSTRIDER_SECRETS_KEY`")]
    NoKey,
    #[error("the key for secrets cannot be kept: {0}")]
    CannotKeep(String),
    #[error("the secret has {given} bytes: at most {SECRET_BYTES_MAX} are allowed (`secret_bytes_max`)")]
    TooLong { given: usize },
    /// The key that sealed it is not among the configured ones.
    #[error("the secret was sealed with the key `{key_id}`, which is not configured")]
    UnknownKey { key_id: String },
    /// It was changed, or sealed for another place.
    #[error("the sealed secret is damaged, or belongs somewhere else")]
    Refused,
    #[error("this is no sealed secret")]
    Unreadable,
}

/// Where a secret belongs. The same place must be named when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    pub project_id: ProjectId,
    /// What it is for, down to the row and the field, such as `security/sec_01…/password`. An id outlives a rename; a name does not.
    pub purpose: &'a str,
}

impl Place<'_> {
    /// The project's id has a fixed length, so no two places give the same bytes.
    fn bytes(&self) -> Vec<u8> {
        [&self.project_id.as_u128().to_be_bytes(), self.purpose.as_bytes()].concat()
    }
}

/// Seals with the first key of its ring and opens with any of them.
pub struct Vault {
    keyring: RwLock<Keyring>,
    dice: Arc<dyn Dice>,
}

impl Vault {
    pub fn new(keyring: Keyring, dice: Arc<dyn Dice>) -> Self {
        Vault { keyring: RwLock::new(keyring), dice }
    }

    /// # Errors
    /// `NoKey`, `CannotKeep` (the first key had to be made and could not be kept) and `TooLong`.
    pub fn seal(&self, secret: &Secret, place: Place<'_>) -> Result<Sealed, VaultError> {
        let mut bytes = secret.expose().as_bytes().to_vec();
        if bytes.len() > SECRET_BYTES_MAX {
            return Err(VaultError::TooLong { given: bytes.len() });
        }
        let master = self.sealing_key()?;
        let salt = self.random_bytes();
        let (key, nonce) = derived(&master, &salt)?;
        key.seal_in_place_append_tag(nonce, Aad::from(place.bytes()), &mut bytes).map_err(|_| VaultError::Refused)?;
        Ok(Sealed::new(master.id(), &salt, &bytes))
    }

    /// # Errors
    /// `UnknownKey`, `Refused` and `Unreadable`; a delivery that needs the secret then fails as `secret_unreadable` (V08, D30).
    pub fn open(&self, sealed: &Sealed, place: Place<'_>) -> Result<Secret, VaultError> {
        let (key_id, salt, mut bytes) = sealed.parts()?;
        let master = self.ring().key(key_id).cloned();
        let master = master.ok_or_else(|| VaultError::UnknownKey { key_id: key_id.to_owned() })?;
        let (key, nonce) = derived(&master, &salt)?;
        let opened = key.open_in_place(nonce, Aad::from(place.bytes()), &mut bytes).map_err(|_| VaultError::Refused)?;
        let text = std::str::from_utf8(opened).map_err(|_| VaultError::Unreadable)?;
        Ok(Secret::new(text))
    }

    /// After a change of keys: the same secret, sealed with the key that seals now. `None` when it was sealed with that one already.
    ///
    /// # Errors
    /// Those of `open` and `seal`; what cannot be opened is left as it is.
    pub fn reseal(&self, sealed: &Sealed, place: Place<'_>) -> Result<Option<Sealed>, VaultError> {
        if self.is_current(sealed) {
            return Ok(None);
        }
        let secret = self.open(sealed, place)?;
        self.seal(&secret, place).map(Some)
    }

    /// Whether it was sealed with the key that seals now.
    pub fn is_current(&self, sealed: &Sealed) -> bool {
        let ring = self.ring();
        ring.first().is_some_and(|key| sealed.key_id() == Some(key.id()))
    }

    /// With the key that had to be made meanwhile, if there was one.
    pub fn keyring(&self) -> Keyring {
        self.ring().clone()
    }

    fn ring(&self) -> std::sync::RwLockReadGuard<'_, Keyring> {
        self.keyring.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first key; where there is none it is made here, and kept before anything is sealed with it.
    fn sealing_key(&self) -> Result<MasterKey, VaultError> {
        if let Some(key) = self.ring().first() {
            return Ok(key.clone());
        }
        let mut ring = self.keyring.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = ring.first() {
            return Ok(key.clone());
        }
        let key = MasterKey::from_bytes(self.random_bytes());
        ring.keep(&key)?;
        tracing::warn!(
            event = log::SECRETS_KEY_MADE,
            key = key.id(),
            "a key for secrets was made and kept in the data directory; without it the secrets in the store are lost, so back it up apart from the store"
        );
        Ok(key)
    }

    fn random_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let (first, second) = bytes.split_at_mut(16);
        first.copy_from_slice(&self.dice.bits().to_be_bytes());
        second.copy_from_slice(&self.dice.bits().to_be_bytes());
        bytes
    }
}

/// The key and the nonce of one sealed secret.
fn derived(master: &MasterKey, salt: &[u8; SALT_BYTES]) -> Result<(LessSafeKey, Nonce), VaultError> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut bytes = [0; 32 + aead::NONCE_LEN];
    let pseudo_random = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(master.bytes());
    pseudo_random
        .expand(&[DERIVED_FOR], Length(bytes.len()))
        .and_then(|okm| okm.fill(&mut bytes))
        .map_err(|_| VaultError::Refused)?;
    let (key, nonce) = bytes.split_at(32);
    let key = UnboundKey::new(&aead::CHACHA20_POLY1305, key).map_err(|_| VaultError::Refused)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Refused)?;
    Ok((LessSafeKey::new(key), nonce))
}

#[cfg(test)]
mod tests;
