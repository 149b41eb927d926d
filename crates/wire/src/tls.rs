//! What TLS trusts: the public authorities and the system's, or only those of one file, or anything; and the certificate that it shows.
//!
//! TLS 1.2 and 1.3 with ring. It must not know of sockets or requests; reading files blocks, so the caller does it on a
//! thread where that is allowed.

use std::io::Read;
use std::sync::Arc;

use postrider_core::connection::{ClientCertificate, ServerTls, TlsSettings};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

/// A file of authorities larger than this is no file of authorities.
const CA_FILE_BYTES_MAX: u64 = 8 << 20;

/// Where Linux and BSD distributions keep the authorities that the administrator trusts; the first that can be read is taken.
const SYSTEM_STORES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];

/// Why a connection's TLS settings cannot be used; each names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("`{setting}`: {path} cannot be read: {cause}")]
    Unreadable { setting: &'static str, path: String, cause: String },
    #[error("`{setting}`: {path} has no certificate in PEM form")]
    NoCertificate { setting: &'static str, path: String },
    #[error("`{setting}`: {path} has a certificate that cannot be used: {cause}")]
    BadCertificate { setting: &'static str, path: String, cause: String },
    #[error("`{setting}`: {path} has no private key in PEM form")]
    NoKey { setting: &'static str, path: String },
    #[error("`{setting}`: the key cannot be used with the certificate of `{of}`: {cause}")]
    BadKey { setting: &'static str, of: &'static str, cause: String },
    #[error("TLS cannot be set up: {0}")]
    Provider(String),
}

/// What is spoken over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http,
    /// Something that has no name in ALPN, so none is offered.
    Unnamed,
}

/// Reads what the settings name and builds the client's side of TLS. Blocks on files.
pub(crate) fn client_config(settings: &TlsSettings, speaks: Speaks) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Provider(error.to_string()))?;
    let builder = if settings.verify {
        let roots = match &settings.ca_path {
            Some(path) => roots_of_file(path)?,
            None => public_roots(),
        };
        builder.with_root_certificates(roots)
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustsAnything(provider)))
    };
    let mut config = match &settings.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let (chain, key) = client_identity(client)?;
            let (of, setting) = (client.keys.cert, client.keys.key);
            let bad = |error: rustls::Error| TlsError::BadKey { setting, of, cause: error.to_string() };
            builder.with_client_auth_cert(chain, key).map_err(bad)?
        }
    };
    config.alpn_protocols = match speaks {
        Speaks::Http => vec![b"http/1.1".to_vec()],
        Speaks::Unnamed => Vec::new(),
    };
    Ok(Arc::new(config))
}

/// The server's side: what is shown, and whose certificates callers have to show. Blocks on files.
pub(crate) fn server_config(settings: &ServerTls) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Provider(error.to_string()))?;
    let builder = match &settings.clients_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots_of_file(path)?), provider).build();
            let setting = "tls_ca_path";
            let bad = |cause: String| TlsError::BadCertificate { setting, path: path.clone(), cause };
            builder.with_client_cert_verifier(verifier.map_err(|error| bad(error.to_string()))?)
        }
    };
    let (chain, key) = client_identity(&settings.identity)?;
    let (of, setting) = (settings.identity.keys.cert, settings.identity.keys.key);
    let bad = |error: rustls::Error| TlsError::BadKey { setting, of, cause: error.to_string() };
    Ok(Arc::new(builder.with_single_cert(chain, key).map_err(bad)?))
}

/// For a client of our own API: the public authorities and the system's, or only those of one PEM file. Blocks on files.
///
/// # Errors
/// In words: the file cannot be read or has no certificate.
pub fn trusting(ca_path: Option<&str>) -> Result<ClientConfig, String> {
    let settings = TlsSettings { verify: true, ca_path: ca_path.map(str::to_owned), client: None };
    let config = client_config(&settings, Speaks::Unnamed).map_err(|error| error.to_string())?;
    let mut config = Arc::unwrap_or_clone(config);
    // The client negotiates by itself.
    config.alpn_protocols.clear();
    Ok(config)
}

fn public_roots() -> RootCertStore {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(pem) = SYSTEM_STORES.iter().find_map(|path| read_limited(path).ok()) {
        // What the system trusts is a bonus: an authority that rustls cannot read only stays untrusted.
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
    }
    roots
}

fn roots_of_file(path: &str) -> Result<RootCertStore, TlsError> {
    const SETTING: &str = "tls_ca_path";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(SETTING, path)? {
        let bad = |cause| TlsError::BadCertificate { setting: SETTING, path: path.to_owned(), cause };
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    Ok(roots)
}

/// What we show, and the key that proves it ours. No error tells anything of the key.
fn client_identity(
    client: &ClientCertificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let setting = client.keys.key;
    let chain = certificates(client.keys.cert, &client.cert_path)?;
    let pem = read(setting, &client.key_path)?;
    let no_key = |_| TlsError::NoKey { setting, path: client.key_path.clone() };
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(no_key)?;
    Ok((chain, key))
}

/// At least one.
fn certificates(setting: &'static str, path: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(setting, path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = read.map_err(|error| {
        let cause = error.to_string();
        TlsError::BadCertificate { setting, path: path.to_owned(), cause }
    })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { setting, path: path.to_owned() });
    }
    Ok(certificates)
}

fn read(setting: &'static str, path: &str) -> Result<Vec<u8>, TlsError> {
    read_limited(path).map_err(|error| {
        let cause = error.to_string();
        TlsError::Unreadable { setting, path: path.to_owned(), cause }
    })
}

fn read_limited(path: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(CA_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// `tls_verify: false`: encrypts, and proves nothing about who is at the other end.
#[derive(Debug)]
struct TrustsAnything(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustsAnything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str) -> TlsError {
        client_config(&TlsSettings { ca_path: Some(path.to_owned()), ..TlsSettings::PUBLIC }, Speaks::Http).unwrap_err()
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_its_setting() {
        let text = refused("/nonexistent/ca.pem").to_string();
        assert!(text.contains("tls_ca_path") && text.contains("/nonexistent/ca.pem"), "{text}");
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert_eq!(refused(manifest), TlsError::NoCertificate { setting: "tls_ca_path", path: manifest.to_owned() });
    }

    #[test]
    fn the_public_authorities_are_trusted_by_default() {
        assert!(public_roots().len() >= webpki_roots::TLS_SERVER_ROOTS.len());
        assert!(client_config(&TlsSettings::PUBLIC, Speaks::Http).is_ok());
    }
}
