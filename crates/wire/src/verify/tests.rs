//! Each provider's webhooks: valid, forged, stale, without what they need. The vectors were signed by the providers' own libraries
//! (`tests/peers/webhook_signer.py`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use postrider_core::source::{Provider, SourceSpec};
use postrider_core::{Secret, Timestamp};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::*;

#[derive(Deserialize)]
struct Vector {
    name: String,
    provider: Provider,
    version: Option<String>,
    secret: String,
    url: String,
    content_type: String,
    at: i64,
    body_base64: String,
    headers: Map<String, Value>,
}

/// What arrived, to be changed before it is judged.
struct Case {
    spec: SourceSpec,
    keys: Vec<VerificationKey>,
    url: String,
    headers: HeaderMap,
    body: Vec<u8>,
    at: Timestamp,
}

impl Case {
    fn of(vector: &Vector) -> Case {
        let mut keys = json!({"provider": vector.provider, "public_url": "https://hooks.example.org"});
        if let Some(version) = &vector.version {
            keys["hubspot_version"] = version.as_str().into();
        }
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_str(&vector.content_type).unwrap());
        for (name, value) in &vector.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.insert(name, HeaderValue::from_str(value.as_str().unwrap()).unwrap());
        }
        Case {
            spec: SourceSpec::parse("a", keys.as_object().unwrap()).unwrap(),
            keys: vec![VerificationKey::read(vector.provider, &Secret::new(vector.secret.as_str())).unwrap()],
            url: vector.url.clone(),
            headers,
            body: STANDARD.decode(&vector.body_base64).unwrap(),
            at: Timestamp::from_millis(vector.at * 1000),
        }
    }

    fn judge(&self) -> Result<Proven, Rejected> {
        let (headers, body) = (&self.headers, &self.body[..]);
        let arrived = Arrived { method: "POST", url: Some(&self.url), headers, body, at: self.at };
        verify(&self.spec, &self.keys.iter().collect::<Vec<_>>(), &arrived)
    }

    /// The headers that prove it.
    fn proofs(&self) -> Vec<HeaderName> {
        self.headers.keys().filter(|name| *name != "content-type").cloned().collect()
    }
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn signs(vector: &Vector) -> bool {
    !vector.headers.contains_key("X-Gitlab-Token")
}

#[test]
fn r12_what_a_provider_signed_is_let_in_bytes_that_are_no_text_included() {
    let all = vectors();
    assert!(all.iter().filter(|vector| vector.name.contains("not UTF-8")).count() >= 10);
    for vector in &all {
        let proven = Case::of(vector).judge();
        assert!(proven.is_ok(), "{}: {proven:?}", vector.name);
        assert_eq!(proven.unwrap().signed.is_some(), signs(vector), "{}", vector.name);
    }
}

#[test]
fn r12_a_forged_one_is_not() {
    for vector in &vectors() {
        let mut other_key = Case::of(vector);
        other_key.keys = vec![another_key(vector.provider, &vector.secret)];
        assert_eq!(other_key.judge(), Err(Rejected::Mismatch), "{}: another key", vector.name);
        let mut no_key = Case::of(vector);
        no_key.keys.clear();
        assert!(no_key.judge().is_err(), "{}: no key", vector.name);
        if signs(vector) {
            let mut other_body = Case::of(vector);
            other_body.body.push(b' ');
            assert!(other_body.judge().is_err(), "{}: another body", vector.name);
        }
        for name in Case::of(vector).proofs() {
            if name == "x-hubspot-signature-version" {
                continue;
            }
            let mut without = Case::of(vector);
            without.headers.remove(&name);
            assert_eq!(without.judge(), Err(Rejected::Missing(name.to_string())), "{}", vector.name);
            let mut twice = Case::of(vector);
            let value = twice.headers[&name].clone();
            twice.headers.append(&name, value);
            assert_eq!(twice.judge(), Err(Rejected::Unreadable(name.to_string())), "{}", vector.name);
            let mut changed = Case::of(vector);
            let text = changed.headers[&name].to_str().unwrap().replace("v1=", "v1=00");
            changed.headers.insert(&name, HeaderValue::from_str(&format!("{text}00")).unwrap());
            assert!(changed.judge().is_err(), "{}: {name} changed", vector.name);
        }
    }
}

fn another_key(provider: Provider, secret: &str) -> VerificationKey {
    let other = match provider {
        // The generator of the curve: a key of somebody else's.
        Provider::SendGrid => "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==".to_owned(),
        _ if secret.starts_with("whsec_") => format!("whsec_{}", STANDARD.encode([9; 32])),
        _ => "another".to_owned(),
    };
    VerificationKey::read(provider, &Secret::new(other)).unwrap()
}

#[test]
fn r12_during_a_rotation_either_key_lets_in() {
    for vector in &vectors() {
        for at in [0, 1] {
            let mut case = Case::of(vector);
            case.keys.insert(at, another_key(vector.provider, &vector.secret));
            assert!(case.judge().is_ok(), "{}: the other at {at}", vector.name);
        }
    }
}

#[test]
fn r12_a_stale_one_is_not_let_in_whichever_way_its_time_is_off() {
    let mut timed = 0;
    for vector in &vectors() {
        let fresh = Case::of(vector).judge().unwrap();
        for (off_ms, is_near) in [(300_000, true), (-300_000, true), (301_000, false), (-301_000, false)] {
            let mut case = Case::of(vector);
            case.at = Timestamp::from_millis(vector.at * 1000 + off_ms);
            match case.judge() {
                Ok(_) => assert!(is_near || !fresh.has_time, "{}: {off_ms}", vector.name),
                Err(rejected) => {
                    assert_eq!(rejected.as_str(), "stale", "{}", vector.name);
                    assert!(fresh.has_time && !is_near, "{}: {off_ms}", vector.name);
                }
            }
        }
        timed += u32::from(fresh.has_time);
    }
    assert!(timed >= 10);
}

#[test]
fn r12_the_same_thing_looks_the_same_however_its_signature_is_written() {
    let stripe = vectors().into_iter().find(|vector| vector.provider == Provider::Stripe).unwrap();
    let mut case = Case::of(&stripe);
    let before = case.judge().unwrap();
    let text = case.headers["stripe-signature"].to_str().unwrap().replace("v1=", "v1=00,v1=").to_uppercase();
    let text = text.replace("T=", "t=").replace("V1=", "v1=");
    case.headers.insert("stripe-signature", HeaderValue::from_str(&text).unwrap());
    assert_eq!(case.judge().unwrap(), before);
}

#[test]
fn r12_the_address_is_signed_by_those_who_sign_it() {
    for vector in vectors().iter().filter(|vector| vector.headers.keys().all(|name| name != "X-HubSpot-Signature")) {
        let signs_it = matches!(vector.provider, Provider::Twilio | Provider::Square | Provider::HubSpot);
        let mut case = Case::of(vector);
        case.url = case.url.replace("in_token", "in_other");
        assert_eq!(case.judge().is_err(), signs_it, "{}", vector.name);
        let arrived = Arrived { method: "POST", url: None, headers: &case.headers, body: &case.body, at: case.at };
        let judged = verify(&case.spec, &case.keys.iter().collect::<Vec<_>>(), &arrived);
        assert_eq!(judged == Err(Rejected::NoUrl), signs_it, "{}", vector.name);
    }
}

#[test]
fn r12_twilio_signs_with_and_without_the_port_and_no_body_that_is_not_in_the_address() {
    let form = vectors().into_iter().find(|vector| vector.name == "twilio, form").unwrap();
    let mut case = Case::of(&form);
    case.url = case.url.replace("example.org/", "example.org:443/");
    assert!(case.judge().is_ok());
    let mut json = Case::of(&form);
    json.headers.insert("content-type", HeaderValue::from_static("application/json"));
    assert_eq!(json.judge().unwrap_err().as_str(), "body_unsigned");
}

#[test]
fn r12_a_signing_token_of_gitlab_is_never_asked_for_as_the_plain_one() {
    let secret = format!("whsec_{}", STANDARD.encode([7; 32]));
    let spec = SourceSpec::parse("a", json!({"provider": "gitlab"}).as_object().unwrap()).unwrap();
    let key = VerificationKey::read(Provider::GitLab, &Secret::new(secret.as_str())).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-gitlab-token", HeaderValue::from_str(&secret).unwrap());
    let arrived = Arrived { method: "POST", url: None, headers: &headers, body: b"{}", at: Timestamp::from_millis(0) };
    assert_eq!(verify(&spec, &[&key], &arrived), Err(Rejected::Missing("webhook-signature".to_owned())));
    assert_eq!(secret_header(&spec), Some("x-gitlab-token"));
}

fn hmac_case(keys: Value, headers: &[(&'static str, String)]) -> Result<Proven, Rejected> {
    let spec = SourceSpec::parse("a", keys.as_object().unwrap()).unwrap();
    let key = VerificationKey::read(Provider::Hmac, &Secret::new("key")).unwrap();
    let headers =
        headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    let headers = HeaderMap::from_iter(headers);
    let body = b"The quick brown fox jumps over the lazy dog";
    verify(
        &spec,
        &[&key],
        &Arrived { method: "POST", url: None, headers: &headers, body, at: Timestamp::from_millis(1_000_000) },
    )
}

/// The well-known HMACs of that sentence under the key `key`.
#[test]
fn r12_any_other_hmac_goes_by_its_settings() {
    let sha256 = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
    let sha1 = "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9";
    assert!(hmac_case(json!({"provider": "hmac"}), &[("x-signature", sha256.to_owned())]).is_ok());
    let keys = json!({"provider": "hmac", "hmac_algorithm": "sha1", "hmac_header": "X-Sig", "hmac_prefix": "sha1="});
    assert!(hmac_case(keys.clone(), &[("x-sig", format!("sha1={sha1}"))]).is_ok());
    assert_eq!(hmac_case(keys.clone(), &[("x-sig", sha1.to_owned())]).unwrap_err().as_str(), "signature_unreadable");
    assert_eq!(hmac_case(keys, &[("x-sig", format!("sha1={sha256}"))]), Err(Rejected::Mismatch));
    let keys = json!({"provider": "hmac", "hmac_encoding": "base64"});
    let encoded = "97yD9DBThCSxMpjmqm+xQ+9NWaFJRhdZl0edvC0aPNg=";
    assert!(hmac_case(keys.clone(), &[("x-signature", encoded.to_owned())]).is_ok());
    assert!(hmac_case(keys, &[("x-signature", encoded.trim_end_matches('=').to_owned())]).is_ok());
    let keys = json!({"provider": "hmac", "hmac_timestamp_header": "X-Time"});
    let refused = hmac_case(keys.clone(), &[("x-signature", sha256.to_owned()), ("x-time", "1000".to_owned())]);
    assert_eq!(refused, Err(Rejected::Mismatch), "the time is signed too");
    let signed = b"1000.The quick brown fox jumps over the lazy dog";
    let made = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"key"), signed);
    let hex = made.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(hmac_case(keys, &[("x-signature", hex.clone()), ("x-time", "1000".to_owned())]).unwrap().has_time);
    let keys = json!({"provider": "hmac", "hmac_format": "t_v1"});
    assert!(hmac_case(keys.clone(), &[("x-signature", format!("t=1000,v1={hex}"))]).is_ok());
    for text in [format!("t=NaN,v1={hex}"), format!("v1={hex}"), "t=1000".to_owned(), format!("t=1000,t=1000,v1={hex}")]
    {
        assert!(hmac_case(keys.clone(), &[("x-signature", text.clone())]).is_err(), "{text}");
    }
}

#[test]
fn r12_the_published_example_of_an_asymmetric_signature_is_let_in() {
    let secret = crate::signature::Scheme::Asymmetric.secret_of(&[7; 32]).unwrap();
    let signing = crate::signature::SigningKey::read(&secret).unwrap();
    let key = VerificationKey::read(Provider::Standard, &Secret::new(signing.public().unwrap())).unwrap();
    let spec = SourceSpec::parse("a", json!({"provider": "standard"}).as_object().unwrap()).unwrap();
    let entries = format!("v1,AAAA {}", signing.sign("msg_1", 1000, b"\xff"));
    let headers = [("webhook-id", "msg_1"), ("webhook-timestamp", "1000"), ("webhook-signature", entries.as_str())];
    let headers = headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    let headers = HeaderMap::from_iter(headers);
    let mut arrived =
        Arrived { method: "POST", url: None, headers: &headers, body: b"\xff", at: Timestamp::from_millis(1_000_000) };
    assert!(verify(&spec, &[&key], &arrived).is_ok());
    arrived.body = b"\xfe";
    assert_eq!(verify(&spec, &[&key], &arrived), Err(Rejected::Mismatch));
}

#[test]
fn r12_what_is_no_key_is_refused_and_not_shown() {
    let read = |provider, text: &str| VerificationKey::read(provider, &Secret::new(text));
    for (provider, text) in [
        (Provider::GitHub, ""),
        (Provider::Standard, "hunter2"),
        (Provider::Standard, "whsec_aHVudGVyMg=="),
        (Provider::Standard, "whpk_aHVudGVyMg=="),
        (Provider::SendGrid, "hunter2"),
        (Provider::SendGrid, "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE"),
    ] {
        assert!(!read(provider, text).unwrap_err().to_string().contains("hunter2"));
    }
    assert_eq!(format!("{:?}", read(Provider::GitHub, "hunter2").unwrap()), "VerificationKey(***)");
    for provider in [Provider::GitHub, Provider::Standard, Provider::Hmac, Provider::GitLab] {
        assert!(VerificationKey::read(provider, &made_secret(provider, &[7; 32])).is_ok());
    }
}

#[test]
fn r12_a_provider_knows_a_webhook_by_its_id() {
    let id = |provider: Provider, headers: &[(&'static str, &'static str)], body: &[u8]| {
        let keys = json!({"provider": provider, "public_url": "https://a.example"});
        let spec = SourceSpec::parse("a", keys.as_object().unwrap()).unwrap();
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        provider_id(&spec, &HeaderMap::from_iter(pairs), body)
    };
    assert_eq!(id(Provider::GitHub, &[("x-github-delivery", "72d3162e")], b"{}").as_deref(), Some("72d3162e"));
    assert_eq!(id(Provider::Stripe, &[], br#"{"id":"evt_1","event_id":"x"}"#).as_deref(), Some("evt_1"));
    assert_eq!(id(Provider::Slack, &[], br#"{"event_id":"Ev1"}"#).as_deref(), Some("Ev1"));
    assert_eq!(id(Provider::GitLab, &[("idempotency-key", "k")], b"").as_deref(), Some("k"));
    assert_eq!(id(Provider::Stripe, &[], br#"{"id":7}"#), None);
    assert_eq!(id(Provider::Square, &[], b"\xff"), None);
    assert_eq!(id(Provider::SendGrid, &[], br#"[{"sg_event_id":"a"}]"#), None);
    assert_eq!(id(Provider::GitHub, &[("x-github-delivery", "")], b""), None);
}

#[test]
fn r12_handshakes_are_told_apart_from_webhooks() {
    let of = |provider: Provider, headers: &[(&'static str, &'static str)], body: &[u8]| {
        let spec = SourceSpec::parse("a", json!({"provider": provider}).as_object().unwrap()).unwrap();
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        handshake(&spec, &HeaderMap::from_iter(pairs), body)
    };
    let asked = br#"{"token":"x","challenge":"3eZbrw1a","type":"url_verification"}"#;
    assert_eq!(of(Provider::Slack, &[], asked), Some(Handshake::Challenge("3eZbrw1a".to_owned())));
    assert_eq!(of(Provider::Slack, &[], br#"{"type":"event_callback","challenge":"a"}"#), None);
    assert_eq!(of(Provider::GitHub, &[("x-github-event", "ping")], b"{}"), Some(Handshake::Ping));
    assert_eq!(of(Provider::GitHub, &[("x-github-event", "push")], b"{}"), None);
    assert_eq!(of(Provider::Stripe, &[], asked), None);
}

proptest! {
    /// Whatever arrives is let in or not; nothing panics, and nothing that was not signed is let in.
    #[test]
    fn r12_nothing_unsigned_is_let_in(
        provider in prop::sample::select(Provider::ALL.to_vec()),
        header in "[ -~]{0,80}",
        body in prop::collection::vec(any::<u8>(), 0..64),
        url in "https?://[a-z:0-9]{0,12}[/?][a-zA-Z0-9%&=]{0,40}",
    ) {
        let keys = json!({"provider": provider, "public_url": "https://a.example"});
        let spec = SourceSpec::parse("a", keys.as_object().unwrap()).unwrap();
        let vectors = vectors();
        let names = vectors.iter().flat_map(|vector| vector.headers.keys()).map(|name| name.to_ascii_lowercase());
        let pairs = names.chain(["x-signature".to_owned()])
            .map(|name| (HeaderName::try_from(name).unwrap(), HeaderValue::from_str(&header).unwrap()));
        let headers = HeaderMap::from_iter(pairs);
        let secret = vectors.iter().find(|vector| vector.provider == provider).map_or("secret", |vector| &vector.secret);
        let key = VerificationKey::read(provider, &Secret::new(secret)).unwrap();
        let arrived = Arrived { method: "POST", url: Some(&url), headers: &headers, body: &body, at: Timestamp::from_millis(0) };
        let judged = verify(&spec, &[&key], &arrived);
        prop_assert_eq!(judged.is_ok(), provider == Provider::None);
        let _ = (provider_id(&spec, &headers, &body), handshake(&spec, &headers, &body));
    }
}
