//! Mail to a server that we did not write, which greylists, refuses, hangs and asks for TLS and a login (P09).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::Peer;
use postrider_core::Timestamp;
use postrider_wire::Egress;
use postrider_wire::mail::{Mail, Mailer, NotMailed, SmtpMailer, SmtpServer};
use serde_json::{Value, json};

fn mail(id: &str) -> Mail {
    Mail {
        id: id.to_owned(),
        at: Timestamp::from_millis(1_773_316_800_000),
        to: vec!["ada@example.org".to_owned(), "bob@example.org".to_owned()],
        subject: "Prüfung: a queue is blocked".to_owned(),
        text: "One line.\n.\nA line with a dot before, and ünïcode.\n".to_owned(),
    }
}

fn mailer(url: &str, ca: Option<String>) -> SmtpMailer {
    let server = SmtpServer::parse("POSTRIDER_SMTP_URL", url).unwrap();
    SmtpMailer::new(Arc::new(Egress::new(&[])), server, "postrider@clinic.example".to_owned(), ca)
}

async fn log(peer: &Peer, at_least: usize) -> Value {
    peer.call("GET", &format!("/__log?at_least={at_least}"), &Value::Null).await
}

async fn mode(peer: &Peer, mode: Value) -> Value {
    peer.call("PUT", "/__mode", &mode).await
}

// proves: P09
#[tokio::test(flavor = "multi_thread")]
async fn p09_a_mail_arrives_whole_and_trouble_is_told_apart() {
    let peer = Peer::start("smtp_server.py").await;
    let ports = peer.call("GET", "/__ports", &Value::Null).await;
    let mailer =
        mailer(&format!("smtp://127.0.0.1:{}?tls=off", ports["plain"]), None).with_timeout(Duration::from_secs(2));
    mode(&peer, json!({"greylist": 1})).await;
    let told = mailer.mail(&mail("m1")).await;
    assert!(matches!(&told, Err(NotMailed::Later(why)) if why.contains("greylisted")), "{told:?}");
    mailer.mail(&mail("m1")).await.unwrap();
    let taken = log(&peer, 1).await["mails"][0].clone();
    assert_eq!(
        (&taken["from"], &taken["to"]),
        (&json!("postrider@clinic.example"), &json!(["ada@example.org", "bob@example.org"]))
    );
    let data = taken["data"].as_str().unwrap();
    assert!(
        data.contains("Message-ID: <m1@clinic.example>") && data.contains("Auto-Submitted: auto-generated"),
        "{data}"
    );
    assert!(data.contains("Date: Thu, 12 Mar 2026 12:00:00"), "{data}");

    mode(&peer, json!({"refuse": true})).await;
    let told = mailer.mail(&mail("m2")).await;
    assert!(matches!(&told, Err(NotMailed::Never(why)) if why.contains("not wanted")), "{told:?}");
    mode(&peer, json!({"refuse": false, "hang": true})).await;
    let began = Instant::now();
    let told = mailer.mail(&mail("m3")).await;
    assert!(matches!(&told, Err(NotMailed::Later(why)) if why.contains("within 2 s")), "{told:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "a server that hangs holds nobody up for long");
    mode(&peer, json!({"hang": false})).await;
    let nobody = self::mailer("smtp://127.0.0.1:1?tls=off", None).mail(&mail("m4")).await;
    assert!(matches!(nobody, Err(NotMailed::Later(_))), "{nobody:?}");
}

// proves: R14
#[tokio::test(flavor = "multi_thread")]
async fn p09_tls_from_the_first_byte_or_by_starttls_with_a_login_and_never_without() {
    let peer = Peer::start("smtp_server.py").await;
    let dir = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(dir.path().join("cert.pem"), certified.cert.pem()).unwrap();
    std::fs::write(dir.path().join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let ports = peer.call("PUT", "/__tls", &json!({"folder": dir.path()})).await;
    let ca = || Some(dir.path().join("cert.pem").display().to_string());
    for (n, (scheme, port)) in [("smtp", &ports["starttls"]), ("smtps", &ports["tls"])].into_iter().enumerate() {
        let at = |login: &str, host: &str| format!("{scheme}://{login}{host}:{port}");
        mailer(&at("ada:sesame@", "localhost"), ca()).mail(&mail("m")).await.unwrap();
        assert_eq!(log(&peer, n + 1).await["mails"][n]["tls"], true);
        let told = mailer(&at("ada:wrong@", "localhost"), ca()).mail(&mail("m")).await;
        assert!(matches!(&told, Err(NotMailed::Later(why)) if !why.contains("wrong")), "{told:?}");
        for untrusted in [mailer(&at("ada:sesame@", "localhost"), None), mailer(&at("ada:sesame@", "127.0.0.1"), ca())]
        {
            let told = untrusted.mail(&mail("m")).await;
            assert!(matches!(&told, Err(NotMailed::Later(why)) if why.contains("certificate")), "{told:?}");
        }
    }
    // A server without STARTTLS gets neither the mail nor the password.
    let told = mailer(&format!("smtp://ada:sesame@127.0.0.1:{}", ports["plain"]), None).mail(&mail("m")).await;
    assert!(matches!(&told, Err(NotMailed::Later(why)) if why.contains("STARTTLS")), "{told:?}");
    let metadata = mailer("smtp://169.254.169.254:25?tls=off", None).mail(&mail("m")).await;
    assert!(matches!(metadata, Err(NotMailed::Never(_))), "{metadata:?}");
    assert_eq!(log(&peer, 2).await["mails"].as_array().unwrap().len(), 2);
}
