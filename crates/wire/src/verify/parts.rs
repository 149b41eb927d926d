//! What the schemes have in common: headers, hexadecimal and base64, times near ours, and HMACs under every key in force.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use postrider_core::{Timestamp, Wait};
use ring::hmac;

use super::{Rejected, VerificationKey};

/// Longer headers are no signatures of anybody's.
const HEADER_BYTES_MAX: usize = 8192;
/// With padding or without: some write it, some don't.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The one value of a header; two of them would let each reader choose another.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Rejected> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or_else(|| Rejected::Missing(name.to_owned()))?;
    let text = value.to_str().ok().filter(|text| text.len() <= HEADER_BYTES_MAX).map(str::trim);
    match text {
        Some("") => Err(Rejected::Missing(name.to_owned())),
        Some(text) if values.next().is_none() => Ok(text),
        _ => Err(Rejected::Unreadable(name.to_owned())),
    }
}

pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Either alphabet.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    let engine = if text.contains(['-', '_']) { &BASE64_URL } else { &BASE64 };
    engine.decode(text).ok()
}

/// Which unit a time is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    /// Seconds until the year 5138, milliseconds from 1973 on.
    Either,
}

/// A signed time, which must be near ours. Digits only: what is no number is not near anything.
pub(super) fn near(name: &str, text: &str, unit: Unit, at: Timestamp, tolerance: Wait) -> Result<(), Rejected> {
    let digits = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<i64>().ok().filter(|_| digits).ok_or_else(|| Rejected::Unreadable(name.to_owned()))?;
    let is_millis = unit == Unit::Millis || (unit == Unit::Either && number >= 100_000_000_000);
    let signed_ms = if is_millis { number } else { number.saturating_mul(1000) };
    // In whole seconds, as it is said: somebody's clock may not have finer ones.
    let seconds = (at.as_millis().saturating_sub(signed_ms)).unsigned_abs() / 1000;
    let allowed = tolerance.as_millis() / 1000;
    if seconds > allowed { Err(Rejected::Stale { seconds, allowed }) } else { Ok(()) }
}

/// Whether one of these is the HMAC of the parts under one of the keys. All are compared with all, in constant time each.
pub(super) fn is_mac(
    algorithm: hmac::Algorithm,
    keys: &[&VerificationKey],
    signed: &[&[u8]],
    given: &[Vec<u8>],
) -> bool {
    let mut fits = false;
    for key in keys.iter().filter_map(|key| key.shared()) {
        let key = hmac::Key::new(algorithm, key);
        let mut signing = hmac::Context::with_key(&key);
        signed.iter().for_each(|part| signing.update(part));
        let made = signing.sign();
        for one in given {
            fits |= same(made.as_ref(), one);
        }
    }
    fits
}

pub(super) fn must(fits: bool) -> Result<(), Rejected> {
    if fits { Ok(()) } else { Err(Rejected::Mismatch) }
}

/// Equality in a time that tells nothing about where two differ: by the HMACs of both, whose comparison is `ring`'s.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"the same in constant time");
    hmac::verify(&key, a, hmac::sign(&key, b).as_ref()).is_ok()
}
