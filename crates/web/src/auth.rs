//! The key that the installation was set up with, which opens everything. Of it only the SHA-256 hash is kept, compared in constant time.
//!
//! Keys with scopes are the engine's (`key_holder`). It must not know what the request is about. The key itself is never stored, logged or handed on (D14).

use http::HeaderMap;
use http::header::AUTHORIZATION;
use postrider_core::log;
use postrider_engine::Dice;
use postrider_store::{Store, StoreError, StoreRead};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The named value of the store that holds the key's hash, in hexadecimal.
pub const ADMIN_KEY_HASH: &str = "admin_key_hash";

/// The header of a key, beside `Authorization: Bearer`.
pub const API_KEY_HEADER: &str = "x-api-key";

/// Shorter keys are taken with a warning.
const KEY_CHARS_ADVISED: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the admin key has characters that a header cannot carry: allowed are 1 to 512 visible ASCII characters")]
    Unusable,
    #[error("no admin key has been set up")]
    Missing,
    #[error("the stored hash of the admin key is unreadable")]
    Unreadable,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The hash of the key that opens everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminKey([u8; 32]);

impl AdminKey {
    /// Reads the hash that `ensure_admin_key` stored.
    pub async fn load(store: &dyn StoreRead) -> Result<AdminKey, KeyError> {
        let text = store.value(ADMIN_KEY_HASH).await?.ok_or(KeyError::Missing)?;
        from_hex(&text).map(AdminKey).ok_or(KeyError::Unreadable)
    }

    pub fn of(key: &str) -> AdminKey {
        AdminKey(Sha256::digest(key.as_bytes()).into())
    }

    /// Hashes first, so that neither the length nor the first wrong character shows in the time it takes.
    pub fn opens(&self, key: &[u8]) -> bool {
        let hash: [u8; 32] = Sha256::digest(key).into();
        self.0.ct_eq(&hash).into()
    }
}

/// Makes sure that there is an admin key: the one from the environment if given, else the one known, else a new one, which is returned to be
/// shown once and is nowhere afterwards.
pub async fn ensure_admin_key(
    store: &dyn Store,
    from_env: Option<&str>,
    dice: &dyn Dice,
) -> Result<Option<String>, KeyError> {
    if let Some(key) = from_env {
        if key.is_empty() || key.len() > 512 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Unusable);
        }
        if key.len() < KEY_CHARS_ADVISED {
            tracing::warn!(
                event = log::KEY_SHORT,
                "the admin key is short: {KEY_CHARS_ADVISED} characters or more are advised"
            );
        }
        set(store, key).await?;
        return Ok(None);
    }
    if store.value(ADMIN_KEY_HASH).await?.is_some() {
        return Ok(None);
    }
    let key = format!("prk_{:032x}{:032x}", dice.bits(), dice.bits());
    set(store, &key).await?;
    Ok(Some(key))
}

async fn set(store: &dyn Store, key: &str) -> Result<(), KeyError> {
    let hash = to_hex(&AdminKey::of(key).0);
    if store.value(ADMIN_KEY_HASH).await?.as_deref() != Some(&hash) {
        store.set_value(ADMIN_KEY_HASH, Some(hash)).await?;
    }
    Ok(())
}

/// What a request presents as a key: in either header, and on the raw path only in the one that is ours alone.
pub(crate) fn presented_keys<'a>(path: &str, headers: &'a HeaderMap) -> Vec<&'a [u8]> {
    if is_raw(path) {
        return plain_keys(headers).collect();
    }
    let bearer = headers.get_all(AUTHORIZATION).iter().filter_map(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
    });
    bearer.chain(plain_keys(headers)).collect()
}

fn plain_keys(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers.get_all(API_KEY_HEADER).iter().map(|value| value.as_bytes().trim_ascii())
}

/// On the raw path `Authorization` is the caller's word to the remote system, and opens nothing here (D14).
fn is_raw(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    let mut is = |wanted: &str| segments.next() == Some(wanted);
    let begins = is("api") && is("v1") && is("projects");
    begins && segments.nth(1) == Some("connections") && segments.nth(1) == Some("raw")
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_the_key_opens() {
        let admin = AdminKey::of("prk_right");
        assert!(admin.opens(b"prk_right"));
        for wrong in [&b""[..], b"prk_righ", b"prk_right ", b"PRK_RIGHT"] {
            assert!(!admin.opens(wrong));
        }
    }

    #[test]
    fn a_hash_reads_back_and_nothing_else_does() {
        let AdminKey(hash) = AdminKey::of("k");
        assert_eq!(from_hex(&to_hex(&hash)), Some(hash));
        for text in ["", "zz", &"é".repeat(32), &"+1".repeat(32)] {
            assert_ne!(from_hex(text), Some(hash));
        }
    }

    #[test]
    fn d14_the_raw_path_is_known_by_its_place() {
        let raw = "/api/v1/projects/p/connections/c/raw";
        for path in [raw.to_owned(), format!("{raw}/"), format!("{raw}/x/y"), raw.replace("/c/", "/raw/")] {
            assert!(is_raw(&path), "{path}");
        }
        for path in
            ["/", "/raw", "/api/v1/projects/p/connections/raw", "/api/v1/projects/p/topics/c/raw", "/x/api/v1/raw"]
        {
            assert!(!is_raw(path), "{path}");
        }
        for path in [raw.replace("/raw", "/rawer"), raw.replace("/raw", "/send/raw"), format!("/x{raw}")] {
            assert!(!is_raw(&path), "{path}");
        }
    }

    #[test]
    fn keys_come_in_either_header() {
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, HeaderValue::from_static("Basic abc"));
        assert!(presented_keys("/", &headers).is_empty());
        headers.append(AUTHORIZATION, HeaderValue::from_static("bearer  one "));
        headers.append("X-API-Key", HeaderValue::from_static("two"));
        assert_eq!(presented_keys("/", &headers), [&b"one"[..], b"two"]);
        assert_eq!(presented_keys("/api/v1/projects/p/connections/c/raw/x", &headers), [&b"two"[..]]);
        let mut short = HeaderMap::new();
        short.append(AUTHORIZATION, HeaderValue::from_static("Bear"));
        assert!(presented_keys("/", &short).is_empty());
    }
}
