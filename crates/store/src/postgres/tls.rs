//! TLS to the database: what `sslmode` and `sslrootcert` ask for, as libpq understands them. It must not know what is sent.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;

/// Options of libpq that have to do with TLS and that we do not have. Left out in silence, a connection would be less safe than was asked for.
const UNSUPPORTED: &[&str] = &[
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslcertmode",
    "sslcrl",
    "sslcrldir",
    "sslcompression",
    "sslsni",
    "requiressl",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "requirepeer",
    "gssencmode",
];

/// The value of `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    Disable,
    /// Encrypted if the server can.
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The value of `sslrootcert`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Roots {
    /// `system`: the authorities that browsers trust.
    Public,
    File(PathBuf),
}

/// What a URL says about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tls {
    mode: Mode,
    roots: Option<Roots>,
}

/// What is held against the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checks {
    Nothing,
    Authority,
    AuthorityAndName,
}

impl Tls {
    /// Takes a parameter of the URL if it is about TLS. `false`: it is not.
    ///
    /// # Errors
    /// `Conflict`, naming the parameter and what is allowed.
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool, StoreError> {
        match name {
            "sslmode" => self.mode = mode(value)?,
            "sslrootcert" if value == "system" => self.roots = Some(Roots::Public),
            "sslrootcert" => self.roots = Some(Roots::File(unescaped(value)?.into())),
            name if UNSUPPORTED.contains(&name) => {
                return Err(StoreError::Conflict(format!(
                    "`{name}` of the database's URL is not supported; of TLS there are sslmode and sslrootcert"
                )));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether what was said goes together.
    pub fn check(&self) -> Result<(), StoreError> {
        let why = match (self.mode, &self.roots) {
            (Mode::VerifyCa, None | Some(Roots::Public)) => {
                "`sslmode=verify-ca` needs sslrootcert=FILE: any server with a public certificate would do. Name the file, or use verify-full"
            }
            (Mode::Require | Mode::Prefer | Mode::Disable, Some(Roots::Public)) => {
                "`sslrootcert=system` needs sslmode=verify-full: any server with a public certificate would do"
            }
            (Mode::Disable, Some(Roots::File(_))) => {
                "`sslrootcert` of the database's URL has no use with sslmode=disable; allowed beside it are require, verify-ca, verify-full"
            }
            _ => return Ok(()),
        };
        Err(StoreError::Conflict(why.to_owned()))
    }

    pub const fn ssl_mode(&self) -> SslMode {
        match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }

    /// Whoever is in between could read and change everything.
    pub const fn is_unchecked(&self) -> bool {
        matches!(self.checks(), Checks::Nothing)
    }

    /// `require` with a file of certificates checks the authority, as in libpq.
    const fn checks(&self) -> Checks {
        match (self.mode, &self.roots) {
            (Mode::VerifyFull, _) => Checks::AuthorityAndName,
            (Mode::VerifyCa, _) | (Mode::Require, Some(Roots::File(_))) => Checks::Authority,
            (Mode::Disable | Mode::Prefer | Mode::Require, _) => Checks::Nothing,
        }
    }

    /// # Errors
    /// `Unavailable` when the file of certificates cannot be used.
    pub fn connector(&self) -> Result<MakeRustlsConnect, StoreError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (roots, named) = match &self.roots {
            Some(Roots::File(path)) => read(path)?,
            Some(Roots::Public) | None => {
                (RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }, Vec::new())
            }
        };
        let verifier = Verifier { checks: self.checks(), roots, named, provider: Arc::clone(&provider) };
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Unavailable(format!("TLS to the database: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(client))
    }
}

fn mode(word: &str) -> Result<Mode, StoreError> {
    match word {
        "disable" => Ok(Mode::Disable),
        "prefer" => Ok(Mode::Prefer),
        "require" => Ok(Mode::Require),
        "verify-ca" => Ok(Mode::VerifyCa),
        "verify-full" => Ok(Mode::VerifyFull),
        other => Err(StoreError::Conflict(format!(
            "`sslmode` of the database's URL is `{other}`; allowed are disable, prefer, require, verify-ca, verify-full"
        ))),
    }
}

/// The authorities of a file, and the certificates themselves.
fn read(path: &std::path::Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), StoreError> {
    let unusable =
        |why: String| StoreError::Unavailable(format!("the certificates of {} (sslrootcert): {why}", path.display()));
    let mut roots = RootCertStore::empty();
    let mut named = Vec::new();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
        named.push(certificate);
    }
    if named.is_empty() { Err(unusable("there is none in it".to_owned())) } else { Ok((roots, named)) }
}

/// Holds the server's certificate against what the URL asks for.
#[derive(Debug)]
struct Verifier {
    checks: Checks,
    roots: RootCertStore,
    /// A certificate that is named itself is trusted as it is: PostgreSQL's own guide makes one that signs itself.
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.checks == Checks::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if !self.named.iter().any(|named| named.as_ref() == end_entity.as_ref()) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        }
        if self.checks == Checks::AuthorityAndName {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn unescaped(text: &str) -> Result<String, StoreError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                let (Some(high), Some(low)) = (digit(high), digit(low)) else { return Err(bad_escape()) };
                bytes.push(high * 16 + low);
                rest = behind;
            }
            (b'%', _) => return Err(bad_escape()),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad_escape())
}

fn bad_escape() -> StoreError {
    StoreError::Conflict("`sslrootcert` of the database's URL is not percent-encoded UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &[(&str, &str)]) -> Result<Tls, String> {
        let mut tls = Tls::default();
        for (name, value) in pairs {
            tls.take(name, value).map_err(|error| error.to_string())?;
        }
        tls.check().map_err(|error| error.to_string())?;
        Ok(tls)
    }

    #[test]
    fn what_is_checked_is_what_libpq_would_check() {
        for (pairs, checks) in [
            (&[][..], Checks::Nothing),
            (&[("sslmode", "require")], Checks::Nothing),
            (&[("sslmode", "require"), ("sslrootcert", "/a.pem")], Checks::Authority),
            (&[("sslmode", "verify-ca"), ("sslrootcert", "/a%20b.pem")], Checks::Authority),
            (&[("sslmode", "verify-full")], Checks::AuthorityAndName),
            (&[("sslrootcert", "system"), ("sslmode", "verify-full")], Checks::AuthorityAndName),
        ] {
            assert_eq!(said(pairs).unwrap().checks(), checks, "{pairs:?}");
        }
    }

    #[test]
    fn what_is_not_supported_or_unsafe_is_refused_by_name() {
        for (pairs, named) in [
            (&[("sslmode", "allow")][..], "allowed are disable, prefer, require, verify-ca, verify-full"),
            (&[("sslmode", "verify-ca")], "needs sslrootcert"),
            (&[("sslmode", "verify-ca"), ("sslrootcert", "system")], "needs sslrootcert=FILE"),
            (&[("sslmode", "require"), ("sslrootcert", "system")], "needs sslmode=verify-full"),
            (&[("sslmode", "disable"), ("sslrootcert", "/a.pem")], "sslmode=disable"),
            (&[("sslcert", "/me.pem")], "`sslcert`"),
            (&[("sslkey", "/me.key")], "`sslkey`"),
            (&[("sslcrl", "/crl.pem")], "`sslcrl`"),
            (&[("sslrootcert", "%f")], "percent-encoded"),
        ] {
            let refused = said(pairs).unwrap_err();
            assert!(refused.contains(named), "{pairs:?}: {refused}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roots.pem");
        let tls = Tls { mode: Mode::VerifyFull, roots: Some(Roots::File(path.clone())) };
        for written in [None, Some("")] {
            if let Some(text) = written {
                std::fs::write(&path, text).unwrap();
            }
            let refused = tls.connector().err().unwrap().to_string();
            assert!(refused.contains("roots.pem (sslrootcert)"), "{refused}");
        }
    }
}
