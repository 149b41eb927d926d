//! Twilio: `X-Twilio-Signature`, the HMAC-SHA1 in base64 of the address and, for a form, of its parameters by name. Any other body is signed
//! through its SHA-256 in the address (`bodySHA256`).

use std::borrow::Cow;

use percent_encoding::percent_decode;
use ring::digest;

use super::parts::{base64, header, hex, is_mac, must, same};
use super::{Arrived, Proven, Rejected, VerificationKey, proven};

const SIGNATURE: &str = "x-twilio-signature";
const FORM: &str = "application/x-www-form-urlencoded";
const BODY_HASH: &str = "bodySHA256";

pub(super) fn verify(keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    let url = arrived.url.ok_or(Rejected::NoUrl)?;
    let given = base64(header(arrived.headers, SIGNATURE)?);
    let given = [given.ok_or_else(|| Rejected::Unreadable(SIGNATURE.to_owned()))?];
    let parameters = match query_value(url, BODY_HASH) {
        Some(hash) => {
            let wanted = hex(hash).ok_or(Rejected::Mismatch)?;
            must(same(digest::digest(&digest::SHA256, arrived.body).as_ref(), &wanted))?;
            Vec::new()
        }
        None if is_form(arrived) => parameters(arrived.body),
        None if arrived.body.is_empty() => Vec::new(),
        None => return Err(Rejected::BodyUnsigned("it is no form, and the address has no bodySHA256")),
    };
    let mut fits = false;
    for url in spellings(url) {
        let signed: [&[u8]; 2] = [url.as_bytes(), &parameters];
        fits |= is_mac(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, keys, &signed, &given);
    }
    must(fits)?;
    Ok(proven(&[url.as_bytes(), &parameters], false))
}

fn is_form(arrived: &Arrived<'_>) -> bool {
    let value = arrived.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(FORM)
}

/// Names and values, sorted, each pair once, nothing between them. Bytes, since what is decoded need not be UTF-8.
fn parameters(form: &[u8]) -> Vec<u8> {
    let decoded = |part: &[u8]| {
        let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        percent_decode(&spaced).collect::<Vec<u8>>()
    };
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for pair in form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        pairs.push((decoded(&pair[..at]), decoded(pair.get(at + 1..).unwrap_or_default())));
    }
    pairs.sort();
    pairs.dedup();
    pairs.into_iter().flat_map(|(name, value)| [name, value]).flatten().collect()
}

fn query_value<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// With the port of its scheme and without: which one Twilio signs depends on the kind of call.
fn spellings(url: &str) -> Vec<Cow<'_, str>> {
    let mut all = vec![Cow::Borrowed(url)];
    let Some((scheme, rest)) = url.split_once("://") else { return all };
    let port = if scheme == "https" { ":443" } else { ":80" };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    match authority.strip_suffix(port) {
        Some(bare) => all.push(Cow::Owned(format!("{scheme}://{bare}{target}"))),
        None if !authority.contains(':') => all.push(Cow::Owned(format!("{scheme}://{authority}{port}{target}"))),
        None => {}
    }
    all
}
