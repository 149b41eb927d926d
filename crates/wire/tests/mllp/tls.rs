//! TLS and mutual TLS (M43).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use postrider_core::NoAnswerKind::{Unreachable, Unsendable};
use postrider_wire::Egress;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::cases::{Case, adt};
use crate::receiver::{ack, framed};

/// Resolves to loopback.
const NAME: &str = "localhost";

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Test authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let client = CertificateParams::new(vec!["postrider".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        std::fs::write(folder.path().join("cert.pem"), client.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        Authority { issuer, folder }
    }

    fn path(&self, file: &str) -> String {
        self.folder.path().join(file).to_str().unwrap().to_owned()
    }
}

/// Acknowledges over TLS; `asks`: only those who show a certificate of the authority.
async fn receiver(authority: &Authority, name: &str, asks: bool) -> SocketAddr {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = if asks {
        let mut roots = RootCertStore::empty();
        roots.add(authority.issuer.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor.accept(tcp).await else { return };
                assert_eq!(tls.get_ref().1.alpn_protocol(), None);
                let mut bytes = vec![0; 4096];
                while let Ok(1..) = tls.read(&mut bytes).await {
                    tls.write_all(&framed(&ack("AA", "M1"))).await.unwrap();
                }
            });
        }
    });
    address
}

fn case(address: SocketAddr, keys: serde_json::Value) -> Case {
    let opened = [IpAddr::from([127, 0, 0, 1]).into()];
    Case::by(Egress::new(&opened), &format!("{NAME}:{}", address.port()), keys)
}

#[tokio::test]
async fn m43_a_receiver_is_trusted_by_the_authority_that_the_connection_names() {
    let authority = Authority::new();
    let address = receiver(&authority, NAME, false).await;
    let trusting = case(address, json!({"tls_ca_path": authority.path("ca.pem")}));
    assert_eq!((trusting.code(adt("M1")).await, trusting.code(adt("M1")).await), ("AA".into(), "AA".into()));
    let public = case(address, json!({"tls": true}));
    let told = public.unanswered(Unreachable).await;
    assert!(told.contains("TLS with localhost"), "{told}");
    let other = receiver(&authority, "other.example.org", false).await;
    case(other, json!({"tls_ca_path": authority.path("ca.pem")})).unanswered(Unreachable).await;
}

#[tokio::test]
async fn m43_mutual_tls_shows_our_certificate_and_without_one_nothing_is_delivered() {
    let authority = Authority::new();
    let address = receiver(&authority, NAME, true).await;
    let mut keys = json!({
        "tls_ca_path": authority.path("ca.pem"), "tls_cert_path": authority.path("cert.pem"), "tls_key_path": authority.path("key.pem"),
    });
    assert_eq!(case(address, keys.clone()).code(adt("M1")).await, "AA");
    let nobody = case(address, json!({"tls_ca_path": authority.path("ca.pem")}));
    nobody.unanswered(Unreachable).await;
    keys["tls_key_path"] = authority.path("missing.pem").into();
    let told = case(address, keys).unanswered(Unsendable).await;
    assert!(told.contains("`tls_key_path`"), "{told}");
}
