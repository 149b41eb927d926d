//! Standard Webhooks 1.0.0: `webhook-id`, `webhook-timestamp` and `webhook-signature`, whose entries are `v1,…` (HMAC-SHA256) or `v1a,…`
//! (Ed25519) of `{id}.{timestamp}.{body}`.

use postrider_core::source::SourceSpec;

use super::parts::{Unit, base64, header, is_mac, must, near};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

pub(super) const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";
pub(super) const SIGNATURE: &str = "webhook-signature";
/// Entries that are looked at; a rotation makes two.
const SIGNATURES_MAX: usize = 16;

pub(super) fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let id = header(arrived.headers, ID)?;
    let time = header(arrived.headers, TIMESTAMP)?;
    let entries = header(arrived.headers, SIGNATURE)?;
    // With a dot in the id, two webhooks could be signed by the same bytes.
    if id.contains('.') {
        return Err(Rejected::Unreadable(ID.to_owned()));
    }
    let (mut shared, mut public) = (Vec::new(), Vec::new());
    for entry in entries.split_whitespace().take(SIGNATURES_MAX) {
        match entry.split_once(',') {
            Some(("v1", text)) => shared.extend(base64(text)),
            Some(("v1a", text)) => public.extend(base64(text)),
            _ => {}
        }
    }
    let head = format!("{id}.{time}.");
    let signed = [head.as_bytes(), arrived.body];
    let mut fits = is_mac(ring::hmac::HMAC_SHA256, keys, &signed, &shared);
    if !public.is_empty() {
        let signed = signed.concat();
        for key in keys {
            fits |= public.iter().any(|given| key.is_signature(true, &signed, given));
        }
    }
    must(fits)?;
    near(TIMESTAMP, time, Unit::Seconds, arrived.at, spec.tolerance)?;
    Ok(proven(&signed, true))
}
