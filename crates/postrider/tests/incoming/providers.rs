//! Each provider against the real binary: signed by its own library it is let in, and nothing else is.

use serde_json::{Value, json};

use crate::harness::{Hooks, Remote};
use crate::sender::{address, destination, headers, now, send, signed, source};

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct Provider {
    name: &'static str,
    secret: String,
    content_type: &'static str,
    body: &'static [u8],
    query: String,
    /// What is sent beside the signature: the provider's own id.
    id: Option<&'static str>,
    /// Old ones are refused.
    is_timed: bool,
    accepted: u16,
}

fn providers() -> Vec<Provider> {
    const JSON: &[u8] = br#"{"id":"evt_1","event_id":"ev-7","amount":1.50}"#;
    const FORM: &[u8] = b"CallSid=CA12&From=%2B14158675309&Digits=1+2&Empty=&Digits=3";
    const BYTES: &[u8] = b"\xff\x00{not utf-8}\xfe";
    let of = |name, body, id, is_timed| Provider {
        name,
        secret: SECRET.to_owned(),
        content_type: "application/json",
        body,
        query: String::new(),
        id,
        is_timed,
        accepted: 202,
    };
    vec![
        of("github", JSON, Some("x-github-delivery"), false),
        of("gitlab", JSON, Some("idempotency-key"), false),
        Provider { secret: format!("whsec_{SECRET}"), ..of("gitlab", JSON, None, true) },
        of("hubspot", JSON, None, true),
        of("sendgrid", BYTES, None, true),
        of("shopify", BYTES, Some("x-shopify-webhook-id"), false),
        of("slack", JSON, None, true),
        of("square", JSON, None, false),
        Provider { secret: format!("whsec_{SECRET}"), ..of("standard", BYTES, None, true) },
        of("stripe", JSON, None, true),
        Provider {
            content_type: "application/x-www-form-urlencoded; charset=utf-8",
            accepted: 204,
            ..of("twilio", FORM, Some("i-twilio-idempotency-token"), false)
        },
    ]
}

// proves: R12
#[tokio::test(flavor = "multi_thread")]
async fn r12_what_each_provider_signs_is_let_in_once_and_forwarded_byte_for_byte() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    for (number, provider) in providers().into_iter().enumerate() {
        let name = format!("{} {number}", provider.name);
        // The signer says which secret verifies: SendGrid's is a public key.
        let (_, secret) = signed(
            provider.name,
            &provider.secret,
            "https://example.org/",
            provider.content_type,
            provider.body,
            now(),
        )
        .await;
        let made = source(&hooks, &name, provider.name, json!({"secret": secret, "publicUrl": hooks.api.base()})).await;
        let url = format!("{}{}", made["ingressUrl"].as_str().unwrap(), provider.query);
        destination(&hooks, &made, &format!("{}/to-{number}", remote.address), json!({})).await;
        let sign = |body: &'static [u8], at| {
            let (name, secret, url, content_type) =
                (provider.name, provider.secret.clone(), url.clone(), provider.content_type);
            async move { signed(name, &secret, &url, content_type, body, at).await.0 }
        };
        let mut fresh = sign(provider.body, now()).await;
        if let Some(id) = provider.id {
            fresh.insert(id.to_owned(), "delivery-1".into());
        }
        let (status, first) = send(&url, provider.content_type, &fresh, provider.body).await.unwrap();
        assert_eq!(status, provider.accepted, "{name}: {first}");
        let (status, again) = send(&url, provider.content_type, &fresh, provider.body).await.unwrap();
        let is_known = provider.id.is_some() || provider.is_timed || provider.name == "square";
        assert!(is_known && (status == 200 || status == 204), "{name}: its own resend: {status} {again}");
        let mut forged = provider.body.to_vec();
        forged.push(b' ');
        let (status, _) = send(&url, provider.content_type, &fresh, &forged).await.unwrap();
        let signs = provider.name != "gitlab" || provider.secret.starts_with("whsec_");
        assert_eq!(status == 401, signs, "{name}: another body: {status}");
        let (status, _) = send(&url, provider.content_type, &headers(&[]), provider.body).await.unwrap();
        assert_eq!(status, 401, "{name}: unsigned");
        if provider.is_timed {
            let stale = sign(provider.body, now() - 400).await;
            assert_eq!(send(&url, provider.content_type, &stale, provider.body).await.unwrap().0, 401, "{name}: stale");
        }
        let shown = hooks.get(&format!("/sources/{}", made["id"].as_str().unwrap())).await;
        let figures = &shown["figures"];
        assert_eq!(
            (&figures["accepted"], &figures["duplicates"]),
            (&json!(1), &json!(if signs { 1 } else { 2 })),
            "{shown}"
        );
        assert!(!shown.to_string().contains(SECRET) && shown.get("token").is_none(), "{name}: shown once");
    }
    // All of them arrived, byte for byte and with what proves them.
    let count = providers().len();
    let receipts = remote.until_received(count).await;
    for (number, provider) in providers().iter().enumerate() {
        let ours: Vec<_> = receipts.iter().filter(|receipt| receipt.path == format!("/to-{number}")).collect();
        assert_eq!(ours.len(), 1, "{}", provider.name);
        assert_eq!(&ours[0].body[..], provider.body, "{}", provider.name);
        assert_eq!(ours[0].header("content-type"), provider.content_type);
        assert_eq!(ours[0].header("x-postrider-verified"), "true");
        let has_token = ours[0].headers.contains_key("x-gitlab-token");
        assert!(!has_token, "a secret that was shown goes nowhere (D14)");
        let is_signed_by_us = ours[0].headers.contains_key("webhook-signature");
        assert_eq!(is_signed_by_us, provider.secret.starts_with("whsec_"), "{}: only its own signature", provider.name);
    }
}

// proves: R12
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_captured_webhook_is_not_let_in_under_another_id() {
    let hooks = Hooks::start().await;
    let made = source(&hooks, "hub", "github", json!({"secret": SECRET})).await;
    let url = address(&hooks, &made);
    let body = br#"{"action":"opened"}"#;
    let (mut signed, _) = signed("github", SECRET, &url, "application/json", body, now()).await;
    signed.insert("x-github-delivery".to_owned(), "a".into());
    assert_eq!(send(&url, "application/json", &signed, body).await.unwrap().0, 202);
    signed.insert("x-github-delivery".to_owned(), "b".into());
    let (status, refused) = send(&url, "application/json", &signed, body).await.unwrap();
    assert_eq!(status, 401, "{refused}");
    let shown = hooks.get(&format!("/sources/{}", made["id"].as_str().unwrap())).await;
    assert_eq!(shown["figures"]["rejected"], json!({"replayed": 1}));
    assert_eq!(shown["figures"]["lastRejections"][0]["reason"], "replayed");
    assert_eq!(shown["figures"]["lastRejections"][0]["address"], "127.0.0.1");
    let events = hooks.get("/events?type=incoming.hub").await;
    assert_eq!(events["data"].as_array().unwrap().len(), 1, "nothing of it is stored");
    // Ids are remembered over a kill -9.
    let hooks = hooks.kill_and_restart().await;
    let url = format!("{}{}", hooks.api.base(), made["ingressPath"].as_str().unwrap());
    signed.insert("x-github-delivery".to_owned(), "a".into());
    let (status, known) = send(&url, "application/json", &signed, body).await.unwrap();
    assert_eq!((status, &known["status"]), (200, &json!("duplicate")), "{known}");
}

// proves: R12
#[tokio::test(flavor = "multi_thread")]
async fn r12_handshakes_are_answered_and_neither_stored_nor_forwarded() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    for (provider, more, body, wanted) in [
        ("slack", vec![], &br#"{"type":"url_verification","challenge":"3eZbrw1a","token":"x"}"#[..], json!("3eZbrw1a")),
        (
            "github",
            vec![("x-github-event", "ping")],
            &br#"{"zen":"Design for failure."}"#[..],
            json!({"status": "pong"}),
        ),
    ] {
        let made = source(&hooks, provider, provider, json!({"secret": SECRET})).await;
        destination(&hooks, &made, &format!("{}/in", remote.address), json!({})).await;
        let url = address(&hooks, &made);
        let (mut signed, _) = signed(provider, SECRET, &url, "application/json", body, now()).await;
        assert_eq!(send(&url, "application/json", &headers(&more), body).await.unwrap().0, 401, "unsigned");
        signed.extend(headers(&more));
        let (status, answer) = send(&url, "application/json", &signed, body).await.unwrap();
        assert_eq!((status, answer), (200, wanted), "{provider}");
        let shown = hooks.get(&format!("/sources/{}", made["id"].as_str().unwrap())).await;
        assert_eq!((&shown["figures"]["handshakes"], &shown["figures"]["accepted"]), (&json!(1), &json!(0)));
        let events = hooks.get(&format!("/events?type=incoming.{provider}")).await;
        assert_eq!(events["data"], json!([]));
    }
    assert_eq!(remote.receipts().len(), 0);
}

// proves: R12
#[tokio::test(flavor = "multi_thread")]
async fn r12_tokens_and_secrets_rotate_with_an_overlap_and_survive_a_kill() {
    let hooks = Hooks::start().await;
    let made = source(&hooks, "hub", "github", json!({})).await;
    let (id, former) = (made["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned());
    assert!(made["token"].as_str().unwrap().len() >= 43, "unguessable");
    let path = |act: &str| format!("/sources/{id}/{act}");
    let (_, rotated) = hooks.call("POST", &path("rotate-secret"), &json!({"overlapSeconds": 3600})).await;
    let current = rotated["secret"].as_str().unwrap().to_owned();
    assert!(former != current && rotated["formerSecretVerifiesUntil"].is_string());
    let (_, moved) = hooks.call("POST", &path("rotate-token"), &json!({"overlapSeconds": 3600})).await;
    assert_ne!(moved["token"], made["token"]);
    let hooks = hooks.kill_and_restart().await;
    let mut number = 0;
    let mut outcome = async |secret: &str, source: &Value| {
        number += 1;
        let body = format!("{{\"n\":{number}}}");
        let (signed, _) = signed("github", secret, "", "application/json", body.as_bytes(), now()).await;
        let url = format!("{}{}", hooks.api.base(), source["ingressPath"].as_str().unwrap());
        send(&url, "application/json", &signed, body.as_bytes()).await.unwrap().0
    };
    for source in [&made, &moved] {
        assert_eq!((outcome(&former, source).await, outcome(&current, source).await), (202, 202));
        assert_eq!(outcome("another", source).await, 401);
    }
    let (status, ended) = hooks.call("POST", &path("rotate-secret"), &json!({"overlapSeconds": 0})).await;
    assert_eq!((status, &ended["formerSecretVerifiesUntil"]), (200, &Value::Null));
    let (_, again) = hooks.call("POST", &path("rotate-token"), &json!({"overlapSeconds": 0})).await;
    assert_eq!(outcome(ended["secret"].as_str().unwrap(), &again).await, 202);
    assert_eq!(outcome(&current, &again).await, 401, "it has ended");
    assert_eq!(outcome(ended["secret"].as_str().unwrap(), &moved).await, 404, "so has its address");
}
