//! The keys that say whom TLS trusts and what it shows of us, the same wherever TLS is spoken.
//!
//! This module must not read the files that they name.

use super::reader::Reader;
use crate::connection::{CertificateKeys, ClientCertificate, TlsSettings};

const PATH_BYTES_MAX: usize = 4096;

pub(super) fn read(reader: &mut Reader<'_>) -> TlsSettings {
    let older = reader.flag("tls_verify");
    let newer = reader.flag("validate_tls");
    if let (Some(older), Some(newer)) = (older, newer)
        && older != newer
    {
        reader.refuse(
            "validate_tls",
            newer,
            format!("{older} while `tls_verify` is {older}: both name the same setting"),
        );
    }
    let ca_path = path(reader, "tls_ca_path");
    let client = client(reader, &CertificateKeys { cert: "tls_client_cert", key: "tls_client_key" });
    TlsSettings { verify: older.or(newer).unwrap_or(true), ca_path, client }
}

/// One without the other proves nothing to anybody. `keys`: the settings that name the certificate and its key.
pub(super) fn client(reader: &mut Reader<'_>, keys: &'static CertificateKeys) -> Option<ClientCertificate> {
    let CertificateKeys { cert, key } = *keys;
    match (path(reader, cert), path(reader, key)) {
        (Some(cert_path), Some(key_path)) => Some(ClientCertificate { cert_path, key_path, keys }),
        (Some(_), None) if !reader.has(key) => {
            reader.refuse(key, "missing", format!("the path of the PEM file with the key of `{cert}`"));
            None
        }
        (None, Some(_)) if !reader.has(cert) => {
            reader.refuse(cert, "missing", format!("the path of the PEM file with the certificate of `{key}`"));
            None
        }
        _ => None,
    }
}

pub(super) fn path(reader: &mut Reader<'_>, key: &'static str) -> Option<String> {
    let path = reader.text(key).filter(|path| !path.is_empty())?;
    // Whoever pastes a key here would find it in every answer about the connection.
    if path.chars().any(char::is_control) || path.contains("-----BEGIN") || path.len() > PATH_BYTES_MAX {
        let allowed = reader.allowed(key);
        reader.refuse(key, "not a path", allowed);
        return None;
    }
    Some(path.to_owned())
}
