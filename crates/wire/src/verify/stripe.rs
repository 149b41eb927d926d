//! Stripe: `Stripe-Signature: t=…,v1=…`, of which there may be several `v1`; HMAC-SHA256 of `{t}.{body}` in hexadecimal.

use postrider_core::source::SourceSpec;

use super::parts::{Unit, header, hex, is_mac, must, near};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const SIGNATURE: &str = "stripe-signature";
/// Signatures that are looked at; a rotation makes two.
const SIGNATURES_MAX: usize = 16;

pub(super) fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    timed(SIGNATURE, ring::hmac::HMAC_SHA256, (spec, Unit::Seconds), keys, arrived)
}

/// The same shape under another name and hash.
pub(super) fn timed(
    name: &str,
    algorithm: ring::hmac::Algorithm,
    (spec, unit): (&SourceSpec, Unit),
    keys: &[&VerificationKey],
    arrived: &Arrived<'_>,
) -> Result<Proven, Rejected> {
    let (mut time, mut given) = (None, Vec::new());
    for item in header(arrived.headers, name)?.split(',') {
        match item.trim().split_once('=') {
            Some(("t", text)) if time.is_none() => time = Some(text),
            // Two times: nobody could say which one was signed.
            Some(("t", _)) => return Err(Rejected::Unreadable(name.to_owned())),
            Some(("v1", text)) if given.len() < SIGNATURES_MAX => given.extend(hex(text)),
            _ => {}
        }
    }
    let time = time.filter(|_| !given.is_empty()).ok_or_else(|| Rejected::Unreadable(name.to_owned()))?;
    let signed: [&[u8]; 3] = [time.as_bytes(), b".", arrived.body];
    must(is_mac(algorithm, keys, &signed, &given))?;
    near(name, time, unit, arrived.at, spec.tolerance)?;
    Ok(proven(&signed, true))
}
