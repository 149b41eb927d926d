//! SendGrid's event webhook: an ECDSA signature (P-256, SHA-256) of the time and the body, verified with the public key that SendGrid shows.

use postrider_core::source::SourceSpec;

use super::parts::{Unit, base64, header, must, near};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const SIGNATURE: &str = "x-twilio-email-event-webhook-signature";
const TIMESTAMP: &str = "x-twilio-email-event-webhook-timestamp";

pub(super) fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let time = header(arrived.headers, TIMESTAMP)?;
    let given = base64(header(arrived.headers, SIGNATURE)?);
    let given = given.ok_or_else(|| Rejected::Unreadable(SIGNATURE.to_owned()))?;
    let signed = [time.as_bytes(), arrived.body].concat();
    must(keys.iter().any(|key| key.is_signature(false, &signed, &given)))?;
    near(TIMESTAMP, time, Unit::Seconds, arrived.at, spec.tolerance)?;
    Ok(proven(&[&signed], true))
}
