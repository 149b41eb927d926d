//! TLS: whom a connection trusts.

use std::net::SocketAddr;
use std::sync::Arc;

use postrider_core::NoAnswerKind::{Unreachable, Unsendable};
use postrider_core::Reply;
use postrider_core::reach::{ReachStage, Reached};
use postrider_wire::{HttpSender, Reach, ReachMethod, Sender};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::cases::{Fixed, answered, connection_with, outgoing, sender_with, unanswered};
use crate::raw_peer::read_request;

/// The name that certificates here are made out to; it resolves to loopback.
const NAME: &str = "claims.example.org";

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: std::path::PathBuf,
}

impl Authority {
    fn new(test: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Test authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}.pem", std::process::id()));
        std::fs::write(&file, issuer.pem()).unwrap();
        Authority { issuer, file }
    }

    fn path(&self) -> &str {
        self.file.to_str().unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

/// A server that answers every request over TLS; its certificate is signed by `authority`, or by itself.
async fn serve(params: CertificateParams, authority: Option<&Authority>) -> SocketAddr {
    serve_telling(params, authority).await.0
}

/// The same; and the receiver gets something for each socket that has ended. A request for `/once` ends its socket.
async fn serve_telling(
    params: CertificateParams,
    authority: Option<&Authority>,
) -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let (ended, has_ended) = mpsc::unbounded_channel();
    let key = KeyPair::generate().unwrap();
    let certificate = match authority {
        Some(authority) => params.signed_by(&key, &authority.issuer).unwrap(),
        None => params.self_signed(&key).unwrap(),
    };
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, peer)) = listener.accept().await {
            let (acceptor, ended) = (acceptor.clone(), ended.clone());
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor.accept(tcp).await else { return };
                while let Some(request) = read_request(&mut tls).await {
                    // The port tells sockets apart.
                    let port = peer.port().to_string();
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{port}", port.len());
                    tls.write_all(answer.as_bytes()).await.unwrap();
                    tls.flush().await.unwrap();
                    if request.line().contains("/once") {
                        tls.shutdown().await.unwrap();
                        break;
                    }
                }
                drop(tls);
                let _ = ended.send(());
            });
        }
    });
    (address, has_ended)
}

fn loopback_sender() -> HttpSender {
    sender_with(Fixed(vec!["127.0.0.1".parse().unwrap()]))
}

async fn send(address: SocketAddr, keys: Value) -> Reply {
    let connection = connection_with(&format!("https://{NAME}:{}", address.port()), keys);
    loopback_sender().send(outgoing(&connection)).await
}

#[tokio::test]
async fn a_certificate_of_the_named_authority_is_trusted_and_the_socket_kept() {
    let authority = Authority::new("trusted");
    let address = serve(params(NAME), Some(&authority)).await;
    let keys = json!({"tls_ca_path": authority.path()});
    let connection = connection_with(&format!("https://{NAME}:{}", address.port()), keys);
    let sender = loopback_sender();
    let first = answered(sender.send(outgoing(&connection)).await);
    let second = answered(sender.send(outgoing(&connection)).await);
    assert_eq!((first.status, &first.body), (Some(200), &second.body), "another socket was opened");
}

#[tokio::test]
async fn z01_an_idle_tls_socket_that_the_peer_closed_is_replaced_within_the_attempt() {
    let (address, mut has_ended) = serve_telling(params(NAME), None).await;
    let keys = json!({"tls_verify": false, "url_path": "/once"});
    let connection = connection_with(&format!("https://{NAME}:{}", address.port()), keys);
    let sender = loopback_sender();
    let first = answered(sender.send(outgoing(&connection)).await);
    has_ended.recv().await.unwrap();
    let second = answered(sender.send(outgoing(&connection)).await);
    assert_eq!((first.status, second.status), (Some(200), Some(200)));
    assert_ne!(first.body, second.body);
}

#[tokio::test]
async fn z01_a_self_signed_certificate_is_unreachable() {
    let address = serve(params(NAME), None).await;
    let detail = unanswered(send(address, json!({})).await, Unreachable);
    assert!(detail.starts_with(&format!("TLS with {NAME}:{} failed: ", address.port())), "{detail}");
    assert!(detail.contains("UnknownIssuer"), "{detail}");
}

#[tokio::test]
async fn z01_an_authority_file_replaces_the_public_ones_and_others_are_unreachable() {
    let (named, other) = (Authority::new("named"), Authority::new("other"));
    let address = serve(params(NAME), Some(&other)).await;
    unanswered(send(address, json!({"tls_ca_path": named.path()})).await, Unreachable);
}

#[tokio::test]
async fn z01_a_certificate_for_another_name_is_unreachable() {
    let authority = Authority::new("name");
    let address = serve(params("other.example.org"), Some(&authority)).await;
    let detail = unanswered(send(address, json!({"tls_ca_path": authority.path()})).await, Unreachable);
    assert!(detail.contains("not valid for"), "{detail}");
}

#[tokio::test]
async fn z01_an_expired_certificate_is_unreachable() {
    let authority = Authority::new("expired");
    let mut expired = params(NAME);
    expired.not_before = rcgen::date_time_ymd(2001, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let address = serve(expired, Some(&authority)).await;
    let detail = unanswered(send(address, json!({"tls_ca_path": authority.path()})).await, Unreachable);
    assert!(detail.contains("expired"), "{detail}");
}

#[tokio::test]
async fn without_verification_every_certificate_is_taken() {
    let authority = Authority::new("unverified");
    let mut expired = params("other.example.org");
    expired.not_after = rcgen::date_time_ymd(2002, 1, 1);
    for address in [serve(params(NAME), None).await, serve(expired, Some(&authority)).await] {
        assert_eq!(answered(send(address, json!({"tls_verify": false})).await).status, Some(200));
    }
}

#[tokio::test]
async fn an_authority_file_that_cannot_be_read_is_unsendable_until_it_can() {
    let authority = Authority::new("mended");
    let address = serve(params(NAME), Some(&authority)).await;
    let pem = std::fs::read(&authority.file).unwrap();
    std::fs::remove_file(&authority.file).unwrap();
    let keys = json!({"tls_ca_path": authority.path()});
    let connection = connection_with(&format!("https://{NAME}:{}", address.port()), keys);
    let sender = loopback_sender();
    let detail = unanswered(sender.send(outgoing(&connection)).await, Unsendable);
    assert!(detail.contains("tls_ca_path") && detail.contains(authority.path()), "{detail}");
    std::fs::write(&authority.file, pem).unwrap();
    assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
}

async fn reached(address: SocketAddr, keys: Value) -> Reached {
    let connection = connection_with(&format!("https://{NAME}:{}", address.port()), keys);
    let reach = Reach {
        connection,
        credentials: None,
        stamp: None,
        method: ReachMethod::Head,
        timeout: postrider_core::Wait::from_secs(20),
    };
    loopback_sender().reach(reach).await
}

// proves: R14
#[tokio::test]
async fn r14_a_try_tells_when_the_certificate_ends_and_at_which_stage_it_failed() {
    let authority = Authority::new("reach");
    let mut named = params(NAME);
    named.not_after = rcgen::date_time_ymd(2031, 3, 12);
    let address = serve(named, Some(&authority)).await;
    let trusted = reached(address, json!({"tls_ca_path": authority.path()})).await;
    assert_eq!((trusted.failed, trusted.status), (None, Some(200)));
    assert_eq!(trusted.certificate_ends_at, postrider_core::Timestamp::parse_rfc3339("2031-03-12T00:00:00Z"));
    let stages: Vec<&str> = trusted.stages.iter().map(|(stage, _)| stage.as_str()).collect();
    assert_eq!(stages, ["resolve", "connect", "tls", "first_byte"]);
    let stranger = reached(address, json!({})).await;
    let failed = stranger.failed.unwrap();
    assert_eq!((failed.stage, failed.kind, stranger.status), (ReachStage::Tls, Unreachable, None));
    assert!(failed.error.contains("TLS with"), "{}", failed.error);
}

/// A server that asks for a client certificate of `clients`, and answers with the name in it.
async fn serve_demanding(authority: &Authority, clients: &Authority) -> SocketAddr {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(clients.issuer.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params(NAME).signed_by(&key, &authority.issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut tls) = acceptor.accept(tcp).await else { continue };
            let shown = tls.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            if read_request(&mut tls).await.is_some() {
                let name = if shown.windows(8).any(|part| part == b"client-2") { "client-2" } else { "client-1" };
                let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 8\r\n\r\n{name}");
                tls.write_all(answer.as_bytes()).await.unwrap();
                let _ = tls.shutdown().await;
            }
        }
    });
    address
}

struct ClientFiles {
    cert: std::path::PathBuf,
    key: std::path::PathBuf,
}

impl ClientFiles {
    fn new(test: &str) -> Self {
        let at = |what: &str| {
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}.{what}", std::process::id()))
        };
        ClientFiles { cert: at("client.pem"), key: at("client.key") }
    }

    fn write(&self, name: &str, authority: &Authority) {
        let key = KeyPair::generate().unwrap();
        let certificate = params(&format!("{name}.example.org")).signed_by(&key, &authority.issuer).unwrap();
        std::fs::write(&self.cert, certificate.pem()).unwrap();
        std::fs::write(&self.key, key.serialize_pem()).unwrap();
    }

    fn keys(&self, authority: &Authority) -> Value {
        json!({"tls_ca_path": authority.path(), "tls_client_cert": self.cert, "tls_client_key": self.key})
    }
}

impl Drop for ClientFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.cert);
        let _ = std::fs::remove_file(&self.key);
    }
}

#[tokio::test]
async fn a_server_that_demands_a_client_certificate_gets_ours_and_a_renewed_one_from_the_next_socket_on() {
    let (authority, clients) = (Authority::new("mutual"), Authority::new("mutual-clients"));
    let address = serve_demanding(&authority, &clients).await;
    let files = ClientFiles::new("mutual");
    files.write("client-1", &clients);
    let connection = connection_with(&format!("https://{NAME}:{}", address.port()), files.keys(&authority));
    let sender = loopback_sender();
    assert_eq!(answered(sender.send(outgoing(&connection)).await).body, "client-1");
    files.write("client-2", &clients);
    // Another length or another time shows the change; a file system with coarse times may show neither within a moment.
    let later = std::time::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000);
    std::fs::File::options().write(true).open(&files.cert).unwrap().set_modified(later).unwrap();
    assert_eq!(answered(sender.send(outgoing(&connection)).await).body, "client-2");
}

#[tokio::test]
async fn without_the_right_client_certificate_the_server_is_unreachable() {
    let (authority, clients) = (Authority::new("demanding"), Authority::new("demanding-clients"));
    let address = serve_demanding(&authority, &clients).await;
    unanswered(send(address, json!({"tls_ca_path": authority.path()})).await, Unreachable);
    let files = ClientFiles::new("demanding");
    files.write("client-1", &authority);
    unanswered(send(address, files.keys(&authority)).await, Unreachable);
}

#[tokio::test]
async fn a_client_key_that_does_not_fit_is_unsendable_and_named() {
    let (authority, clients) = (Authority::new("unfit"), Authority::new("unfit-clients"));
    let address = serve_demanding(&authority, &clients).await;
    let files = ClientFiles::new("unfit");
    files.write("client-1", &clients);
    std::fs::write(&files.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let detail = unanswered(send(address, files.keys(&authority)).await, Unsendable);
    assert!(detail.contains("tls_client_key"), "{detail}");
    std::fs::write(&files.key, "no key").unwrap();
    let detail = unanswered(send(address, files.keys(&authority)).await, Unsendable);
    assert!(detail.contains("no private key"), "{detail}");
}
