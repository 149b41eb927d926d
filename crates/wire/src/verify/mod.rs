//! Whether a webhook that came in is from who it says it is: one file a provider, pure, over the bytes as they arrived (R12).
//!
//! A signature is compared in constant time, against every key in force and always against all of them. What comes out says what was signed, so that the
//! same thing can be refused a second time. It must not know where secrets are kept, what was seen before, nor what becomes of the webhook.

mod github;
mod gitlab;
mod handshake;
mod hmac;
mod hubspot;
mod identity;
mod key;
mod parts;
mod sendgrid;
mod shopify;
mod slack;
mod square;
mod standard;
mod stripe;
mod twilio;

#[cfg(test)]
mod tests;

pub use http::HeaderMap;
use postrider_core::Timestamp;
use postrider_core::source::{Provider, SourceSpec};
use ring::digest;

pub use handshake::{Handshake, handshake};
pub use identity::provider_id;
pub use key::{BadKey, VerificationKey, made_secret};

/// A webhook as it arrived. The body is bytes, and stays bytes: what is parsed and written again is no longer what was signed.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    pub method: &'a str,
    /// The address as the provider knows it, query included; without a source's `public_url` there is none.
    pub url: Option<&'a str>,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    pub at: Timestamp,
}

/// A webhook that proved itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The SHA-256 of what was signed, whatever the signature looks like: one webhook can have several valid signatures. `None`: nothing was signed,
    /// a secret was shown.
    pub signed: Option<[u8; 32]>,
    /// A time is among what was signed: two webhooks with the same words in them do not look alike.
    pub has_time: bool,
}

/// Why a webhook is not let in. None of them repeats what was sent beyond a header's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the header `{0}` is missing")]
    Missing(String),
    #[error("the header `{0}` cannot be read")]
    Unreadable(String),
    #[error("the signature does not fit")]
    Mismatch,
    #[error(
        "the signed time is {seconds} s away from this server's: at most {allowed} are allowed (`tolerance_seconds`)"
    )]
    Stale { seconds: u64, allowed: u64 },
    #[error("the body is not signed: {0}")]
    BodyUnsigned(&'static str),
    #[error("the source has no `public_url`, which this provider signs")]
    NoUrl,
}

impl Rejected {
    /// A word for counting.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Rejected::Missing(_) => "signature_missing",
            Rejected::Unreadable(_) => "signature_unreadable",
            Rejected::Mismatch => "signature_wrong",
            Rejected::Stale { .. } => "stale",
            Rejected::BodyUnsigned(_) => "body_unsigned",
            Rejected::NoUrl => "no_public_url",
        }
    }
}

/// Judges it by the source's settings and the keys in force, of which one has to fit.
///
/// # Errors
/// Why it is not let in.
pub fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    match spec.provider {
        Provider::GitHub => github::verify(keys, arrived),
        Provider::GitLab => gitlab::verify(spec, keys, arrived),
        Provider::HubSpot => hubspot::verify(spec, keys, arrived),
        Provider::SendGrid => sendgrid::verify(spec, keys, arrived),
        Provider::Shopify => shopify::verify(keys, arrived),
        Provider::Slack => slack::verify(spec, keys, arrived),
        Provider::Square => square::verify(keys, arrived),
        Provider::Stripe => stripe::verify(spec, keys, arrived),
        Provider::Twilio => twilio::verify(keys, arrived),
        Provider::Standard => standard::verify(spec, keys, arrived),
        Provider::Hmac => hmac::verify(spec, keys, arrived),
        Provider::None => Ok(Proven { signed: None, has_time: false }),
    }
}

/// A header in which a secret of ours came, so that it is neither stored nor passed on (D14).
pub fn secret_header(spec: &SourceSpec) -> Option<&'static str> {
    (spec.provider == Provider::GitLab).then_some(gitlab::TOKEN)
}

/// What was signed, as `Proven` keeps it.
fn hashed(signed: &[&[u8]]) -> Option<[u8; 32]> {
    let mut hash = digest::Context::new(&digest::SHA256);
    signed.iter().for_each(|part| hash.update(part));
    hash.finish().as_ref().try_into().ok()
}

/// Proven by a signature of just this.
fn proven(signed: &[&[u8]], has_time: bool) -> Proven {
    Proven { signed: hashed(signed), has_time }
}
