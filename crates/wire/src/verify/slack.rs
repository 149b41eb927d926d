//! Slack: `X-Slack-Signature: v0=` and the HMAC-SHA256 of `v0:{time}:{body}` in hexadecimal; the time is in `X-Slack-Request-Timestamp`.

use postrider_core::source::SourceSpec;

use super::parts::{Unit, header, hex, is_mac, must, near};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";

pub(super) fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let unreadable = || Rejected::Unreadable(SIGNATURE.to_owned());
    let time = header(arrived.headers, TIMESTAMP)?;
    let text = header(arrived.headers, SIGNATURE)?.strip_prefix("v0=").ok_or_else(unreadable)?;
    let given = hex(text).ok_or_else(unreadable)?;
    let signed: [&[u8]; 4] = [b"v0:", time.as_bytes(), b":", arrived.body];
    must(is_mac(ring::hmac::HMAC_SHA256, keys, &signed, &[given]))?;
    near(TIMESTAMP, time, Unit::Seconds, arrived.at, spec.tolerance)?;
    Ok(proven(&signed, true))
}
