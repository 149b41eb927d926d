//! Servers that demand to know who calls: mutual TLS against a peer whose TLS is not ours (Python's `ssl`, which is OpenSSL). Endpoints go the same
//! way; they trust public authorities alone, so the peer is called by connections.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::path::PathBuf;

use harness::{Hooks, Peer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

/// Authorities of a receiver and of its callers, and what they have signed, as files.
struct Papers {
    dir: tempfile::TempDir,
    callers: CertifiedIssuer<'static, KeyPair>,
    strangers: CertifiedIssuer<'static, KeyPair>,
}

impl Papers {
    fn new() -> Self {
        let papers = Papers {
            dir: tempfile::tempdir().unwrap(),
            callers: authority("Authority of the callers"),
            strangers: authority("Authority of nobody"),
        };
        let server = authority("Authority of the receiver");
        papers.write("server-ca.pem", &server.pem());
        papers.write("callers-ca.pem", &papers.callers.pem());
        papers.sign("server", "127.0.0.1", &server, 2096);
        papers.sign("known", "postrider", &papers.callers, 2096);
        papers.sign("stranger", "postrider", &papers.strangers, 2096);
        papers.sign("expired", "postrider", &papers.callers, 2002);
        papers
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sign(&self, file: &str, name: &str, by: &CertifiedIssuer<'static, KeyPair>, until_year: i32) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(until_year, 1, 1);
        let certificate = params.signed_by(&key, by).unwrap();
        self.write(&format!("{file}.pem"), &certificate.pem());
        self.write(&format!("{file}.key"), &key.serialize_pem());
    }

    async fn receiver(&self, tls: &str) -> Peer {
        let paths = ["server.pem", "server.key", "callers-ca.pem"].map(|name| self.path(name).display().to_string());
        let [cert, key, clients] = &paths;
        let command = ["https_demanding.py", "--cert", cert, "--key", key, "--client-ca", clients, "--tls", tls];
        Peer::start_with(&command).await
    }

    /// The keys of a connection that shows this one.
    fn keys(&self, shows: Option<&str>) -> Value {
        let mut keys = json!({"tls_ca_path": self.path("server-ca.pem")});
        if let Some(name) = shows {
            keys["tls_client_cert"] = json!(self.path(&format!("{name}.pem")));
            keys["tls_client_key"] = json!(self.path(&format!("{name}.key")));
        }
        keys
    }
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The one attempt of a call by a connection with these keys, and where the call ended.
async fn attempt(hooks: &Hooks, receiver: &Peer, keys: Value) -> Value {
    let host = receiver.address.replace("http://", "https://");
    let name = format!("c{}", hooks.get("/connections?limit=100").await["data"].as_array().unwrap().len());
    let mut connection = json!({"name": name, "type": "rest", "host": host, "url_path": "/in"});
    connection.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let (status, answer) = hooks.call("POST", "/connections", &connection).await;
    assert_eq!(status, 201, "{answer}");
    let (status, result) = hooks.call("POST", &format!("/connections/{name}/send"), &json!({"body": "x"})).await;
    assert_eq!(status, 200, "{result}");
    result
}

#[tokio::test(flavor = "multi_thread")]
async fn z01_a_server_that_demands_a_client_certificate_gets_it_or_says_what_it_did_not_like() {
    let papers = Papers::new();
    let hooks = Hooks::start().await;
    for tls in ["1.2", "1.3"] {
        let receiver = papers.receiver(tls).await;
        let known = attempt(&hooks, &receiver, papers.keys(Some("known"))).await;
        assert_eq!(known["is_ok"], true, "TLS {tls}: {known}");
        assert_eq!(known["response"]["data"], json!({"client": "postrider"}), "the receiver knows who called");
        for shows in [None, Some("stranger"), Some("expired")] {
            let refused = attempt(&hooks, &receiver, papers.keys(shows)).await;
            assert_eq!((&refused["is_ok"], &refused["response"]), (&json!(false), &Value::Null), "{refused}");
            let error = refused["error"].as_str().unwrap();
            assert!(
                error.starts_with("TLS with") && error.contains("client certificate"),
                "TLS {tls}, {shows:?}: {error}"
            );
        }
        let lost = attempt(&hooks, &receiver, json!({})).await;
        assert!(lost["error"].as_str().unwrap().contains("UnknownIssuer"), "an authority that is not trusted: {lost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d30_one_half_of_a_client_certificate_is_refused_by_the_names_of_the_api() {
    let papers = Papers::new();
    let hooks = Hooks::start().await;
    for (half, missing) in [("tlsClientCert", "tlsClientKey"), ("tlsClientKey", "tlsClientCert")] {
        let body = json!({"url": "https://127.0.0.1:9/in", half: papers.path("known.pem")});
        let (status, answer) = hooks.call("POST", "/endpoints", &body).await;
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!(missing)), "{answer}");
        let text = answer.to_string();
        assert!(text.contains(&format!("of `{half}`")) && !text.contains("tls_client"), "{answer}");
    }
    let receiver = papers.receiver("1.3").await;
    let mut unfit = papers.keys(Some("known"));
    unfit["tls_client_key"] = json!(papers.path("stranger.key"));
    let refused = attempt(&hooks, &receiver, unfit).await;
    assert!(refused["error"].as_str().unwrap().contains("the key cannot be used with the certificate"), "{refused}");
}
