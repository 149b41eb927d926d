//! GitHub: `X-Hub-Signature-256: sha256=` and the HMAC-SHA256 of the body in hexadecimal. The older SHA-1 header counts for nothing.

use super::parts::{header, hex, is_mac, must};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const SIGNATURE: &str = "x-hub-signature-256";

pub(super) fn verify(keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let unreadable = || Rejected::Unreadable(SIGNATURE.to_owned());
    let text = header(arrived.headers, SIGNATURE)?.strip_prefix("sha256=").ok_or_else(unreadable)?;
    let given = hex(text).ok_or_else(unreadable)?;
    must(is_mac(ring::hmac::HMAC_SHA256, keys, &[arrived.body], &[given]))?;
    Ok(proven(&[arrived.body], false))
}
