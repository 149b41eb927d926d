//! The secret of a source, read once: what a provider calls a secret, a token or a public key. It must not know where it is kept.

use std::fmt;

use postrider_core::source::Provider;
use postrider_core::{MASK, Secret};
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};

use super::parts::base64;
use crate::signature::Scheme;

/// Bytes of a secret, at most.
const SECRET_BYTES_MAX: usize = 1024;
/// Bytes of the key in a `whsec_`: what others made may be longer or shorter than what we make.
const SHARED_BYTES: std::ops::RangeInclusive<usize> = 16..=128;
/// What stands before the point of a P-256 key in its SubjectPublicKeyInfo (RFC 5480).
const P256_INFO: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P256_POINT_BYTES: usize = 65;

/// Why a text is no key for a provider; it shows nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no secret for this provider: allowed is {allowed}")]
pub struct BadKey {
    pub allowed: &'static str,
}

/// A key, ready to verify. It is in memory only, and shows nothing.
pub struct VerificationKey(Kind);

enum Kind {
    Shared(Box<[u8]>),
    /// Of a `whsec_`.
    Signing(Box<[u8]>),
    Ed25519(UnparsedPublicKey<Vec<u8>>),
    P256(UnparsedPublicKey<Vec<u8>>),
}

impl VerificationKey {
    /// Reads what its owner wrote.
    ///
    /// # Errors
    /// `BadKey`, with what is allowed.
    pub fn read(provider: Provider, secret: &Secret) -> Result<VerificationKey, BadKey> {
        let text = secret.expose();
        if text.is_empty() || text.len() > SECRET_BYTES_MAX {
            return Err(BadKey { allowed: "1 to 1024 bytes" });
        }
        match provider {
            Provider::Standard => standard(text),
            Provider::GitLab if text.starts_with("whsec_") => standard(text),
            Provider::SendGrid => sendgrid(text),
            _ => Ok(VerificationKey(Kind::Shared(text.as_bytes().into()))),
        }
    }

    /// What both sides know.
    pub(super) fn shared(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::Shared(bytes) | Kind::Signing(bytes) => Some(bytes),
            Kind::Ed25519(_) | Kind::P256(_) => None,
        }
    }

    /// Whether this signature of theirs fits; a shared key has none.
    pub(super) fn is_signature(&self, ed25519: bool, signed: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Kind::Ed25519(key) if ed25519 => key.verify(signed, signature).is_ok(),
            Kind::P256(key) if !ed25519 => key.verify(signed, signature).is_ok(),
            Kind::Shared(_) | Kind::Signing(_) | Kind::Ed25519(_) | Kind::P256(_) => false,
        }
    }

    /// Made to sign, and never to be shown.
    pub(super) const fn is_signing_token(&self) -> bool {
        matches!(self.0, Kind::Signing(_))
    }
}

/// `whsec_` with a shared key, or `whpk_` with a public one.
fn standard(text: &str) -> Result<VerificationKey, BadKey> {
    const ALLOWED: &str =
        "`whsec_` and 16 to 128 bytes in base64, or `whpk_` and an Ed25519 public key of 32 bytes in base64";
    let bad = BadKey { allowed: ALLOWED };
    if let Some(encoded) = text.strip_prefix("whpk_") {
        let key = base64(encoded).filter(|key| key.len() == 32).ok_or(bad)?;
        return Ok(VerificationKey(Kind::Ed25519(UnparsedPublicKey::new(&ED25519, key))));
    }
    let encoded = text.strip_prefix("whsec_").ok_or(bad)?;
    let key = base64(encoded).filter(|key| SHARED_BYTES.contains(&key.len())).ok_or(bad)?;
    Ok(VerificationKey(Kind::Signing(key.into())))
}

/// The public key as SendGrid shows it: base64 of the SubjectPublicKeyInfo, with or without PEM around it.
fn sendgrid(text: &str) -> Result<VerificationKey, BadKey> {
    const ALLOWED: &str = "the verification key that SendGrid shows: a P-256 public key in base64";
    let body =
        text.lines().filter(|line| !line.starts_with("-----")).flat_map(str::split_whitespace).collect::<String>();
    let key = base64(&body).ok_or(BadKey { allowed: ALLOWED })?;
    let point = key.strip_prefix(&P256_INFO[..]).filter(|point| point.len() == P256_POINT_BYTES && point[0] == 4);
    let point = point.ok_or(BadKey { allowed: ALLOWED })?;
    Ok(VerificationKey(Kind::P256(UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point.to_vec()))))
}

/// A new secret of these 32 random bytes, for a provider that takes one from us.
pub fn made_secret(provider: Provider, random: &[u8; 32]) -> Secret {
    match Scheme::Symmetric.secret_of(random) {
        Ok(secret) if provider == Provider::Standard => secret,
        // Plain letters, which every form takes.
        _ => Secret::new(random.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

impl fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerificationKey({MASK})")
    }
}
