//! Shopify: `X-Shopify-Hmac-Sha256`, the HMAC-SHA256 of the body in base64.

use super::parts::{base64, header, is_mac, must};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const SIGNATURE: &str = "x-shopify-hmac-sha256";

pub(super) fn verify(keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let given = base64(header(arrived.headers, SIGNATURE)?);
    let given = given.ok_or_else(|| Rejected::Unreadable(SIGNATURE.to_owned()))?;
    must(is_mac(ring::hmac::HMAC_SHA256, keys, &[arrived.body], &[given]))?;
    Ok(proven(&[arrived.body], false))
}
