//! The keys that secrets are sealed with: the first one seals, the others still open, so that a key can be changed.
//!
//! It must not know of files and of the environment; the binary hands the keys in.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use postrider_core::{MASK, SettingError};
use ring::digest;

use super::VaultError;

const KEY_BYTES: usize = 32;
/// `secrets_keys_max`: keys in one ring.
pub const KEYS_MAX: usize = 16;
const ALLOWED: &str = "keys of 32 random bytes, each as 64 hexadecimal digits or in base64, one a line or with commas between; the first one seals";

/// A key of 256 bits. Neither `Debug` nor an error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    id: Box<str>,
    bytes: [u8; KEY_BYTES],
}

impl MasterKey {
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        // The id tells keys apart and gives nothing of the key away.
        let mut hashed = digest::Context::new(&digest::SHA256);
        hashed.update(b"postrider key id v1");
        hashed.update(&bytes);
        let id = hashed.finish().as_ref().iter().take(5).map(|byte| format!("{byte:02x}")).collect::<String>();
        MasterKey { id: id.into(), bytes }
    }

    /// Ten hexadecimal digits, in every secret that this key has sealed.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// As it is written in a key file. It must go nowhere else.
    pub fn written(&self) -> String {
        self.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    fn parse(text: &str) -> Option<MasterKey> {
        if text.len() == 2 * KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let mut bytes = [0; KEY_BYTES];
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
            }
            return Some(MasterKey::from_bytes(bytes));
        }
        let text = text.trim_end_matches('=');
        let decoded = STANDARD_NO_PAD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()?;
        decoded.try_into().ok().map(MasterKey::from_bytes)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({}, {MASK})", self.id)
    }
}

/// Where a key that had to be made is kept for the next start.
pub trait KeyHome: Send + Sync {
    /// Returns once the key is safely on disk.
    ///
    /// # Errors
    /// Why not, in words for an operator.
    fn keep(&self, key: &MasterKey) -> Result<(), String>;
}

/// The configured keys. The default has none and no place to keep one: it refuses to seal.
#[derive(Clone, Default)]
pub struct Keyring {
    keys: Vec<MasterKey>,
    home: Option<Arc<dyn KeyHome>>,
}

impl Keyring {
    /// Reads what `setting` holds: keys with commas or line ends between; a line that begins with `#` is a remark.
    ///
    /// # Errors
    /// Names the setting, and never the value.
    pub fn parse(setting: &'static str, text: &str) -> Result<Keyring, SettingError> {
        let refused = |what: String| SettingError::new(setting, what, ALLOWED);
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let words = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let mut ring = Keyring::default();
        for (at, word) in words.enumerate() {
            let key = MasterKey::parse(word).ok_or_else(|| refused(format!("{MASK} (unreadable: key {})", at + 1)))?;
            ring.add(key);
        }
        match ring.keys.len() {
            0 => Err(refused("empty".to_owned())),
            1..=KEYS_MAX => Ok(ring),
            many => Err(refused(format!("{many} keys, of which at most {KEYS_MAX} are allowed (`secrets_keys_max`)"))),
        }
    }

    /// These keys still open what they have sealed, and seal nothing where there are others before them.
    #[must_use]
    pub fn then(mut self, others: Keyring) -> Keyring {
        for key in others.keys {
            self.add(key);
        }
        self
    }

    /// Where the first key is kept, should it have to be made.
    #[must_use]
    pub fn kept_in(mut self, home: Arc<dyn KeyHome>) -> Keyring {
        self.home = Some(home);
        self
    }

    /// The one that seals.
    pub fn first(&self) -> Option<&MasterKey> {
        self.keys.first()
    }

    pub fn key(&self, id: &str) -> Option<&MasterKey> {
        self.keys.iter().find(|key| key.id() == id)
    }

    pub(super) fn keep(&mut self, key: &MasterKey) -> Result<(), VaultError> {
        let home = self.home.as_ref().ok_or(VaultError::NoKey)?;
        home.keep(key).map_err(VaultError::CannotKeep)?;
        self.add(key.clone());
        Ok(())
    }

    fn add(&mut self, key: MasterKey) {
        if self.key(key.id()).is_none() {
            self.keys.push(key);
        }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.keys).finish()
    }
}

/// Two rings are the same when they hold the same keys in the same order.
impl PartialEq for Keyring {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

impl Eq for Keyring {}
