//! Square: `x-square-hmacsha256-signature`, the HMAC-SHA256 of the address and the body in base64.

use super::parts::{base64, header, is_mac, must};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const SIGNATURE: &str = "x-square-hmacsha256-signature";

pub(super) fn verify(keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let url = arrived.url.ok_or(Rejected::NoUrl)?;
    let given = base64(header(arrived.headers, SIGNATURE)?);
    let given = given.ok_or_else(|| Rejected::Unreadable(SIGNATURE.to_owned()))?;
    let signed = [url.as_bytes(), arrived.body];
    must(is_mac(ring::hmac::HMAC_SHA256, keys, &signed, &[given]))?;
    Ok(proven(&signed, false))
}
