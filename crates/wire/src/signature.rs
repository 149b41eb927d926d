//! Standard Webhooks 1.0.0: the keys of an endpoint, and the signatures that they make.
//!
//! What is signed is `{id}.{timestamp}.{body}`, with HMAC-SHA256 (`v1`) or Ed25519 (`v1a`). A key in the clear is in memory only, and
//! nothing here shows it. This module must not know where keys are kept, nor which of them are in force.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postrider_core::{MASK, Secret};
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// Of a symmetric key, as Standard Webhooks has it.
pub const HMAC_KEY_BYTES_MIN: usize = 24;
pub const HMAC_KEY_BYTES_MAX: usize = 64;
/// Of a symmetric key that we make.
pub const HMAC_KEY_BYTES: usize = 32;
/// Of the seed of an Ed25519 key, RFC 8032.
pub const SEED_BYTES: usize = 32;
/// A private key is the seed and the public key behind it.
const PAIR_BYTES: usize = 64;

const SYMMETRIC: &str = "whsec_";
const PRIVATE: &str = "whsk_";
const PUBLIC: &str = "whpk_";

/// What is allowed, for refusals.
pub const KEYS: &str =
    "`whsec_` and 24 to 64 bytes in base64, or `whsk_` and an Ed25519 private key of 64 bytes in base64";

/// How an endpoint's requests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HMAC-SHA256, `v1`.
    Symmetric,
    /// Ed25519, `v1a`.
    Asymmetric,
}

/// Why a text is no key; it shows nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no signing key: allowed is {KEYS}")]
pub struct NotAKey;

/// A key, ready to sign.
pub struct SigningKey(Kind);

enum Kind {
    Symmetric(hmac::Key),
    Asymmetric(Box<Ed25519KeyPair>),
}

impl Scheme {
    pub const fn as_str(self) -> &'static str {
        match self {
            Scheme::Symmetric => "symmetric",
            Scheme::Asymmetric => "asymmetric",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Scheme::Symmetric, Scheme::Asymmetric].into_iter().find(|scheme| scheme.as_str() == text)
    }

    /// A new key of these random bytes, as it is shown to its owner once.
    ///
    /// # Errors
    /// `NotAKey` when the bytes are not `HMAC_KEY_BYTES` or `SEED_BYTES`, which are as many.
    pub fn secret_of(self, random: &[u8]) -> Result<Secret, NotAKey> {
        let text = match self {
            Scheme::Symmetric if random.len() == HMAC_KEY_BYTES => format!("{SYMMETRIC}{}", STANDARD.encode(random)),
            Scheme::Asymmetric => {
                let pair = Ed25519KeyPair::from_seed_unchecked(random).map_err(|_| NotAKey)?;
                let whole = [random, pair.public_key().as_ref()].concat();
                format!("{PRIVATE}{}", STANDARD.encode(whole))
            }
            Scheme::Symmetric => return Err(NotAKey),
        };
        Ok(Secret::new(text))
    }
}

impl SigningKey {
    /// Reads `whsec_…` or `whsk_…`.
    ///
    /// # Errors
    /// `NotAKey`, also when the public half of a private key is not its own.
    pub fn read(secret: &Secret) -> Result<SigningKey, NotAKey> {
        let text = secret.expose();
        let (encoded, is_private) = match text.strip_prefix(PRIVATE) {
            Some(encoded) => (encoded, true),
            None => (text.strip_prefix(SYMMETRIC).ok_or(NotAKey)?, false),
        };
        let bytes = STANDARD.decode(encoded).map_err(|_| NotAKey)?;
        if is_private {
            if bytes.len() != PAIR_BYTES {
                return Err(NotAKey);
            }
            let (seed, public) = bytes.split_at(SEED_BYTES);
            let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(|_| NotAKey)?;
            return Ok(SigningKey(Kind::Asymmetric(Box::new(pair))));
        }
        if !(HMAC_KEY_BYTES_MIN..=HMAC_KEY_BYTES_MAX).contains(&bytes.len()) {
            return Err(NotAKey);
        }
        Ok(SigningKey(Kind::Symmetric(hmac::Key::new(hmac::HMAC_SHA256, &bytes))))
    }

    pub const fn scheme(&self) -> Scheme {
        match &self.0 {
            Kind::Symmetric(_) => Scheme::Symmetric,
            Kind::Asymmetric(_) => Scheme::Asymmetric,
        }
    }

    /// `whpk_…`, for whoever verifies; a symmetric key has none.
    pub fn public(&self) -> Option<String> {
        match &self.0 {
            Kind::Symmetric(_) => None,
            Kind::Asymmetric(pair) => Some(format!("{PUBLIC}{}", STANDARD.encode(pair.public_key()))),
        }
    }

    /// One entry of `webhook-signature`. `id` has no dot; `timestamp` is in seconds since 1970.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let head = format!("{id}.{timestamp}.");
        match &self.0 {
            Kind::Symmetric(key) => {
                let mut signing = hmac::Context::with_key(key);
                signing.update(head.as_bytes());
                signing.update(body);
                format!("v1,{}", STANDARD.encode(signing.sign()))
            }
            Kind::Asymmetric(pair) => {
                let signed = pair.sign(&[head.as_bytes(), body].concat());
                format!("v1a,{}", STANDARD.encode(signed))
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({MASK})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ring::signature::{ED25519, UnparsedPublicKey};

    /// The example of the specification's reference libraries.
    #[test]
    fn v10_the_published_example_is_signed_alike() {
        let key = SigningKey::read(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).unwrap();
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!((key.public(), key.scheme()), (None, Scheme::Symmetric));
    }

    #[test]
    fn v10_an_ed25519_signature_verifies_with_the_public_key_that_is_shown() {
        let secret = Scheme::Asymmetric.secret_of(&[7; SEED_BYTES]).unwrap();
        let key = SigningKey::read(&secret).unwrap();
        let public = STANDARD.decode(key.public().unwrap().strip_prefix("whpk_").unwrap()).unwrap();
        let signature = key.sign("msg_1", 5, b"body");
        let signature = STANDARD.decode(signature.strip_prefix("v1a,").unwrap()).unwrap();
        assert!(UnparsedPublicKey::new(&ED25519, &public).verify(b"msg_1.5.body", &signature).is_ok());
        assert!(UnparsedPublicKey::new(&ED25519, public).verify(b"msg_1.6.body", &signature).is_err());
    }

    #[test]
    fn v10_what_is_no_key_is_refused_and_not_shown() {
        let foreign_half = format!("whsk_{}", STANDARD.encode([1u8; 64]));
        for text in ["", "hunter2", "whsec_", "whsec_aHVudGVyMg==", "whsec_§", "whsk_aHVudGVyMg==", &foreign_half] {
            let refused = SigningKey::read(&Secret::new(text)).unwrap_err();
            assert!(!refused.to_string().contains("hunter2"));
        }
        assert!(Scheme::Symmetric.secret_of(&[1; 5]).is_err() && Scheme::Asymmetric.secret_of(&[1; 5]).is_err());
        let key = SigningKey::read(&Scheme::Symmetric.secret_of(&[1; HMAC_KEY_BYTES]).unwrap()).unwrap();
        assert_eq!(format!("{key:?}"), "SigningKey(***)");
    }

    proptest! {
        #[test]
        fn v10_any_text_is_read_or_refused(text in "(whsec_|whsk_)?[A-Za-z0-9+/=]{0,100}") {
            if let Ok(key) = SigningKey::read(&Secret::new(text)) {
                prop_assert!(key.sign("id", 0, b"").starts_with("v1"));
            }
        }
    }
}
