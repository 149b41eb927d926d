//! HubSpot's three signatures. v1: SHA-256 of secret and body; v2: of secret, method, address and body; v3: HMAC-SHA256 of method, address,
//! body and time in base64. A request carries an older one beside the newest, so exactly the one that is configured counts.

use percent_encoding::percent_decode_str;
use postrider_core::source::{HubSpotVersion, SourceSpec};
use ring::digest;

use super::parts::{Unit, base64, header, hex, is_mac, must, near, same};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const OLDER: &str = "x-hubspot-signature";
const OLDER_VERSION: &str = "x-hubspot-signature-version";
const V3: &str = "x-hubspot-signature-v3";
const TIMESTAMP: &str = "x-hubspot-request-timestamp";

pub(super) fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    match spec.hubspot_version {
        HubSpotVersion::V1 => older("v1", keys, arrived, &[arrived.body]),
        HubSpotVersion::V2 => {
            let url = arrived.url.ok_or(Rejected::NoUrl)?;
            older("v2", keys, arrived, &[arrived.method.as_bytes(), url.as_bytes(), arrived.body])
        }
        HubSpotVersion::V3 => v3(spec, keys, arrived),
    }
}

fn older(
    version: &str,
    keys: &[&VerificationKey],
    arrived: &Arrived<'_>,
    signed: &[&[u8]],
) -> Result<Proven, Rejected> {
    // The version is not signed: it only says which of two to expect.
    if header(arrived.headers, OLDER_VERSION).is_ok_and(|said| !said.eq_ignore_ascii_case(version)) {
        return Err(Rejected::Unreadable(OLDER_VERSION.to_owned()));
    }
    let given = hex(header(arrived.headers, OLDER)?).ok_or_else(|| Rejected::Unreadable(OLDER.to_owned()))?;
    let mut fits = false;
    for key in keys.iter().filter_map(|key| key.shared()) {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(key);
        signed.iter().for_each(|part| hash.update(part));
        fits |= same(hash.finish().as_ref(), &given);
    }
    must(fits)?;
    Ok(proven(signed, false))
}

fn v3(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let url = arrived.url.ok_or(Rejected::NoUrl)?;
    let time = header(arrived.headers, TIMESTAMP)?;
    let given = base64(header(arrived.headers, V3)?).ok_or_else(|| Rejected::Unreadable(V3.to_owned()))?;
    let method = arrived.method.as_bytes();
    let (as_sent, decoded) = (url.as_bytes(), with_reserved_decoded(url));
    let mut fits = false;
    for url in [as_sent, &decoded] {
        let signed: [&[u8]; 4] = [method, url, arrived.body, time.as_bytes()];
        fits |= is_mac(ring::hmac::HMAC_SHA256, keys, &signed, std::slice::from_ref(&given));
    }
    must(fits)?;
    near(TIMESTAMP, time, Unit::Millis, arrived.at, spec.tolerance)?;
    Ok(proven(&[method, as_sent, arrived.body, time.as_bytes()], true))
}

/// HubSpot signs the address with these characters decoded, the `?` of the query apart.
fn with_reserved_decoded(url: &str) -> Vec<u8> {
    const DECODED: &[u8] = b":/?#[]@!$&'()*+,;=";
    let mut out = Vec::with_capacity(url.len());
    let mut rest = url;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before.as_bytes());
        let escape = from.get(..3).unwrap_or(from);
        let byte = percent_decode_str(escape).collect::<Vec<u8>>();
        match byte[..] {
            [one] if escape.len() == 3 && DECODED.contains(&one) && one != b'?' => out.push(one),
            _ => out.extend_from_slice(escape.as_bytes()),
        }
        rest = &from[escape.len()..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}
