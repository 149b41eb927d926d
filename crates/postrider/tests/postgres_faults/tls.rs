//! TLS between a server and its database, with a PostgreSQL that has it and certificates made here.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::harness::OwnPostgres;
use crate::harness::cluster::command;
use crate::plant::Plant;

/// An authority, and a server's certificate for `localhost` from it.
struct Certificates {
    authority: PathBuf,
    another_authority: PathBuf,
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A PostgreSQL that speaks TLS under a certificate for `localhost`.
fn with_tls() -> (OwnPostgres, Certificates) {
    let database = OwnPostgres::make();
    let (ours, another) = (authority("ours"), authority("another"));
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
    database.write("data/server.crt", &certificate.pem());
    database.write("data/server.key", &key.serialize_pem());
    database.configure(&["ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"]);
    database.start_again();
    let authority = database.write("ours.pem", &ours.pem());
    let another_authority = database.write("another.pem", &another.pem());
    (database, Certificates { authority, another_authority })
}

fn url(database: &OwnPostgres, host: &str, query: &str) -> String {
    format!("{}?{query}", database.url().replace("127.0.0.1", host))
}

async fn works(database: &OwnPostgres, url: &str, is_encrypted: bool) {
    let plant = Plant::start(url).await;
    let sql =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'postrider'";
    assert_eq!(database.ask(sql), if is_encrypted { "t" } else { "f" }, "{url}");
    assert_eq!(plant.call("GET", "/deliveries", &serde_json::Value::Null).await.0, 200);
    plant.server.stop().await;
}

async fn refused(url: &str, told: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = command("serve", url, &dir.path().join("data"));
    command.args(["--listen", "127.0.0.1:0"]).kill_on_drop(true);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), command.output()).await;
    let output = ended.expect("a refused start ends").unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains(told), "{url}: {error}");
    assert!(error.lines().count() <= 2, "one clear line: {error}");
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_checks_of_the_database_what_its_url_asks_for() {
    let (database, made) = with_tls();
    let (ours, another) = (shown(&made.authority), shown(&made.another_authority));
    for (host, query, is_encrypted) in [
        ("127.0.0.1", "sslmode=disable".to_owned(), false),
        ("127.0.0.1", "sslmode=prefer".to_owned(), true),
        ("127.0.0.1", "sslmode=require".to_owned(), true),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={ours}"), true),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={ours}"), true),
        ("localhost", format!("sslmode=verify-full&sslrootcert={ours}"), true),
    ] {
        works(&database, &url(&database, host, &query), is_encrypted).await;
    }
    for (host, query, told) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ours}"), "not valid for name"),
        ("localhost", format!("sslmode=verify-full&sslrootcert={another}"), "UnknownIssuer"),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={another}"), "UnknownIssuer"),
        ("localhost", format!("sslmode=require&sslrootcert={another}"), "UnknownIssuer"),
        ("localhost", "sslmode=verify-full".to_owned(), "UnknownIssuer"),
        ("localhost", "sslmode=verify-full&sslrootcert=/nowhere.pem".to_owned(), "/nowhere.pem (sslrootcert)"),
        ("localhost", "sslmode=verify-ca".to_owned(), "needs sslrootcert"),
        ("localhost", "sslmode=allow".to_owned(), "allowed are disable, prefer, require, verify-ca, verify-full"),
        ("localhost", "sslmode=require&sslcert=/me.pem".to_owned(), "`sslcert` of the database's URL is not supported"),
    ] {
        refused(&url(&database, host, &query), told).await;
    }
}

/// The certificate of PostgreSQL's own guide, which signs itself, named as its own authority.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_trusts_a_certificate_that_is_named_itself_and_needs_a_server_that_has_it() {
    let database = OwnPostgres::make();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    database.write("data/server.crt", &pem);
    database.write("data/server.key", &key.serialize_pem());
    database.start_again();
    refused(&url(&database, "localhost", "sslmode=require"), "does not support TLS").await;
    works(&database, &url(&database, "localhost", "sslmode=prefer"), false).await;
    database.configure(&["ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"]);
    tokio::task::block_in_place(|| database.stop("fast"));
    database.start_again();
    let named = shown(&database.write("named.pem", &pem));
    works(&database, &url(&database, "localhost", &format!("sslmode=verify-full&sslrootcert={named}")), true).await;
    refused(&url(&database, "127.0.0.1", &format!("sslmode=verify-full&sslrootcert={named}")), "not valid for name")
        .await;
}
