//! A sealed secret as it is stored: `v1.KEY-ID.` and base64 of salt, ciphertext and tag. It must not know how it was sealed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{SALT_BYTES, VaultError};

const VERSION: &str = "v1";

/// May be stored and copied; shows nothing without its key. It is masked all the same where people look.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Box<str>);

impl Sealed {
    pub(super) fn new(key_id: &str, salt: &[u8; SALT_BYTES], sealed: &[u8]) -> Self {
        let encoded = URL_SAFE_NO_PAD.encode([salt, sealed].concat());
        Sealed(format!("{VERSION}.{key_id}.{encoded}").into())
    }

    /// Takes back what `as_str` gave to the store; whether it opens shows only then.
    pub fn from_stored(text: impl Into<Box<str>>) -> Self {
        Sealed(text.into())
    }

    /// For the store.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key that sealed it, if this is a sealed secret at all.
    pub fn key_id(&self) -> Option<&str> {
        let (version, rest) = self.0.split_once('.')?;
        let (key_id, _) = rest.split_once('.')?;
        (version == VERSION).then_some(key_id)
    }

    pub(super) fn parts(&self) -> Result<(&str, [u8; SALT_BYTES], Vec<u8>), VaultError> {
        let key_id = self.key_id().ok_or(VaultError::Unreadable)?;
        let (_, encoded) = self.0.rsplit_once('.').ok_or(VaultError::Unreadable)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| VaultError::Unreadable)?;
        let (salt, sealed) = bytes.split_first_chunk::<SALT_BYTES>().ok_or(VaultError::Unreadable)?;
        Ok((key_id, *salt, sealed.to_vec()))
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({})", self.key_id().unwrap_or("unreadable"))
    }
}
