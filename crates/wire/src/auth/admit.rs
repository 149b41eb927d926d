//! Whether a request that reached us shows what a security definition asks for (Z46). Compared in constant time, and nothing of it is kept.
//!
//! It must not know what is done with a request that is let in.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use postrider_core::Timestamp;
use ring::hmac;

use super::{Authorization, Credentials, Kind};
use crate::signature::SigningKey;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// How far a signature's time may be from ours, either way.
const SIGNATURE_AGE_MAX_S: u64 = 300;
/// Signatures of one request that are looked at.
const SIGNATURES_MAX: usize = 16;

/// Whether a request may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Granted,
    /// With what the caller is told to show, where HTTP has words for it.
    Refused(Option<&'static str>),
    /// Nobody can be let in: what they should show cannot be read here.
    Unreadable,
}

/// What is asked of callers at one address; by default nothing.
#[derive(Default)]
pub struct Doorkeeper(Option<Result<Arc<Credentials>, String>>);

impl Doorkeeper {
    /// `Err`: the definition cannot be used, and nobody is let in.
    pub fn new(credentials: Result<Option<Arc<Credentials>>, String>) -> Doorkeeper {
        Doorkeeper(credentials.transpose())
    }

    /// Whether the body has to be read before anybody can be let in.
    pub fn needs_the_body(&self) -> bool {
        matches!(&self.0, Some(Ok(credentials)) if credentials.signs_the_body())
    }

    pub fn admits(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Admission {
        match &self.0 {
            None => Admission::Granted,
            Some(Err(_)) => Admission::Unreadable,
            Some(Ok(credentials)) if credentials.admit(headers, body, now) => Admission::Granted,
            Some(Ok(credentials)) => Admission::Refused(credentials.challenge()),
        }
    }

    /// What the sender signed as the request's own id, of a request that was let in: whoever repeats the request cannot change it.
    pub fn signed_id<'h>(&self, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let signs = self.needs_the_body();
        headers.get(WEBHOOK_ID).filter(|_| signs).map(|id| id.as_bytes())
    }

    /// The header that the proof came in: it is neither stored nor handed on (D14).
    pub fn proof_in(&self) -> Option<&HeaderName> {
        self.0.as_ref()?.as_ref().ok()?.shown_in()
    }
}

impl Credentials {
    /// Whether the body has to be there before anybody can be let in.
    fn signs_the_body(&self) -> bool {
        matches!(self.0, Kind::Signature(_))
    }

    /// Whether the request shows what this definition asks for. `body` is looked at by signatures alone.
    fn admit(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> bool {
        match &self.0 {
            Kind::Fixed(wanted) => shows(headers, wanted),
            Kind::Signature(key) => is_signed(headers, body, key, now),
            Kind::OAuth2(_) | Kind::Wss(_) => false,
        }
    }

    /// The header that the proof came in: it is neither stored nor handed on (D14). A signature proves nothing to anybody later, and stays.
    fn shown_in(&self) -> Option<&HeaderName> {
        match &self.0 {
            Kind::Fixed(wanted) => Some(&wanted.name),
            Kind::Signature(_) | Kind::OAuth2(_) | Kind::Wss(_) => None,
        }
    }

    /// What a refused caller is told to show (RFC 9110, section 11.6.1).
    fn challenge(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::Fixed(wanted) if wanted.name != AUTHORIZATION => None,
            Kind::Fixed(wanted) if wanted.value.as_bytes().starts_with(b"Basic ") => {
                Some(r#"Basic realm="postrider", charset="UTF-8""#)
            }
            Kind::Fixed(_) => Some(r#"Bearer realm="postrider""#),
            Kind::Signature(_) | Kind::OAuth2(_) | Kind::Wss(_) => None,
        }
    }
}

/// One header of this name with this value; the scheme in front is compared without regard to case, and base64 as what it stands for.
fn shows(headers: &HeaderMap, wanted: &Authorization) -> bool {
    let mut given = headers.get_all(&wanted.name).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return false };
    let (given, expected) = (value.as_bytes(), wanted.value.as_bytes());
    if wanted.name != AUTHORIZATION {
        return same(given, expected);
    }
    let (Some((scheme, given)), Some((known, expected))) = (in_two(given), in_two(expected)) else { return false };
    if !scheme.eq_ignore_ascii_case(known) {
        return false;
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return same(given, expected);
    }
    match (STANDARD.decode(given), STANDARD.decode(expected)) {
        (Ok(given), Ok(expected)) => same(&given, &expected),
        _ => false,
    }
}

fn in_two(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = value.iter().position(|byte| *byte == b' ')?;
    Some((&value[..at], value[at..].trim_ascii()))
}

/// Takes as long wherever the two differ.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"compared");
    hmac::verify(&key, given, hmac::sign(&key, expected).as_ref()).is_ok()
}

/// Standard Webhooks 1.0.0: one of the signatures is ours, and its time is near.
fn is_signed(headers: &HeaderMap, body: &[u8], key: &SigningKey, now: Timestamp) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(id), Some(at), Some(signatures)) =
        (text(&WEBHOOK_ID), text(&WEBHOOK_TIMESTAMP), text(&WEBHOOK_SIGNATURE))
    else {
        return false;
    };
    let Ok(seconds) = at.parse::<i64>() else { return false };
    let is_near = now.as_millis().div_euclid(1000).abs_diff(seconds) <= SIGNATURE_AGE_MAX_S;
    let wanted = key.sign(id, seconds, body);
    let ours = |given: &str| same(given.as_bytes(), wanted.as_bytes());
    is_near && !id.is_empty() && signatures.split_whitespace().take(SIGNATURES_MAX).any(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use postrider_core::Secret;
    use postrider_core::security::SecuritySpec;

    fn of(spec: &SecuritySpec, secret: &str) -> Credentials {
        Credentials::new(spec, &Secret::new(secret)).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn admits(credentials: &Credentials, pairs: &[(&'static str, &str)]) -> bool {
        credentials.admit(&headers(pairs), b"", Timestamp::from_millis(0))
    }

    #[test]
    fn z46_basic_bearer_and_api_keys_let_in_who_shows_them() {
        let basic = of(&SecuritySpec::BasicAuth { username: "Aladdin".to_owned() }, "open sesame");
        assert!(admits(&basic, &[("authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")]));
        assert!(admits(&basic, &[("authorization", "basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ==")]));
        for wrong in [
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ",
            "Basic QWxhZGRpbjpvcGVu",
            "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
            "Basic",
            "",
        ] {
            assert!(!admits(&basic, &[("authorization", wrong)]), "{wrong}");
        }
        assert!(!admits(&basic, &[]));
        let right = ("authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(!admits(&basic, &[right, right]), "two are none");
        let bearer = of(&SecuritySpec::Bearer, "abc");
        assert!(admits(&bearer, &[("authorization", "bearer abc")]) && !admits(&bearer, &[("authorization", "abc")]));
        let key = of(&SecuritySpec::ApiKey { header: "X-Shop".to_owned() }, "k1");
        assert!(admits(&key, &[("x-shop", "k1")]) && !admits(&key, &[("x-shop", "K1")]));
        assert_eq!(key.shown_in().unwrap(), "x-shop");
    }

    #[test]
    fn z46_a_webhook_signature_is_of_these_bytes_and_of_now() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let credentials = of(&SecuritySpec::WebhookSignature, secret);
        let key = SigningKey::read(&Secret::new(secret)).unwrap();
        let signature = key.sign("msg_1", 1_614_265_330, b"{}");
        let at = |seconds: i64, body: &[u8], signatures: &str| {
            let pairs =
                [("webhook-id", "msg_1"), ("webhook-timestamp", "1614265330"), ("webhook-signature", signatures)];
            credentials.admit(&headers(&pairs), body, Timestamp::from_millis(seconds * 1000))
        };
        assert!(credentials.signs_the_body());
        assert!(at(1_614_265_330, b"{}", &signature));
        assert!(at(1_614_265_630, b"{}", &format!("v1,b3RoZXI= {signature}")), "one of several, five minutes on");
        assert!(!at(1_614_265_631, b"{}", &signature), "too old");
        assert!(!at(1_614_265_029, b"{}", &signature), "too far ahead");
        assert!(!at(1_614_265_330, b"{} ", &signature), "other bytes");
        assert!(!at(1_614_265_330, b"{}", "v1,b3RoZXI="), "forged");
        assert!(!at(1_614_265_330, b"{}", ""));
    }
}
