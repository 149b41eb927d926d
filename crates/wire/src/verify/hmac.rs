//! Any other HMAC: hash, header, prefix, encoding and time as the source's settings say.

use postrider_core::source::{HmacAlgorithm, HmacEncoding, HmacForm, SourceSpec};

use super::parts::{Unit, base64, header, hex, is_mac, must, near};
use super::{Arrived, Proven, Rejected, VerificationKey, proven, stripe};

pub(super) fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let hmac = &spec.hmac;
    let algorithm = match hmac.algorithm {
        HmacAlgorithm::Sha1 => ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        HmacAlgorithm::Sha256 => ring::hmac::HMAC_SHA256,
        HmacAlgorithm::Sha384 => ring::hmac::HMAC_SHA384,
        HmacAlgorithm::Sha512 => ring::hmac::HMAC_SHA512,
    };
    if hmac.form == HmacForm::Timed {
        return stripe::timed(&hmac.header, algorithm, (spec, Unit::Either), keys, arrived);
    }
    let unreadable = || Rejected::Unreadable(hmac.header.clone());
    let text = header(arrived.headers, &hmac.header)?.strip_prefix(hmac.prefix.as_str()).ok_or_else(unreadable)?;
    let given = match hmac.encoding {
        HmacEncoding::Hex => hex(text),
        HmacEncoding::Base64 => base64(text),
    };
    let given = [given.ok_or_else(unreadable)?];
    let Some(name) = &hmac.timestamp_header else {
        must(is_mac(algorithm, keys, &[arrived.body], &given))?;
        return Ok(proven(&[arrived.body], false));
    };
    let time = header(arrived.headers, name)?;
    let signed: [&[u8]; 3] = [time.as_bytes(), b".", arrived.body];
    must(is_mac(algorithm, keys, &signed, &given))?;
    near(name, time, Unit::Either, arrived.at, spec.tolerance)?;
    Ok(proven(&signed, true))
}
