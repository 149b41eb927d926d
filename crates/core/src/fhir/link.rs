//! Links of servers, such as the one to the next page: followed only to where the connection goes anyway.
//!
//! This module must not know what a page is.

use crate::connection::FhirTarget;
use crate::http_url::HttpUrl;

/// What is behind the connection's address in a link of its server, query included.
///
/// # Errors
/// What is allowed instead, in words that continue "allowed is …": another origin, or another part of the server, is not followed.
pub fn below(target: &FhirTarget, link: &str) -> Result<String, String> {
    let link = &escaped(link);
    let base = target.http.url_path.as_str();
    let only = || format!("a link below {}: no other is followed", target.http.address());
    // A server may leave its own address out.
    let rest = match (link.contains("://"), link.strip_prefix('/')) {
        (true, _) => {
            let url = HttpUrl::parse(link).map_err(str::to_owned)?;
            if without_port(url.origin()) != without_port(&target.http.host) {
                return Err(only());
            }
            url.target().strip_prefix(base).ok_or_else(only)?.to_owned()
        }
        (false, Some(_)) => link.strip_prefix(base).ok_or_else(only)?.to_owned(),
        (false, None) if link.starts_with('?') => link.to_owned(),
        (false, None) => format!("/{link}"),
    };
    if rest.is_empty() || rest.starts_with(['/', '?']) { Ok(rest) } else { Err(only()) }
}

/// Servers write characters into links that an address does not have.
fn escaped(link: &str) -> String {
    let is_loose = |c: char| matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    link.trim().chars().fold(String::with_capacity(link.len()), |mut all, c| {
        if is_loose(c) {
            all.push_str(&format!("%{:02X}", c as u32))
        } else {
            all.push(c)
        }
        all
    })
}

/// The port that the scheme has anyway says nothing.
fn without_port(origin: &str) -> &str {
    let own = if origin.starts_with("https://") { ":443" } else { ":80" };
    origin.strip_suffix(own).unwrap_or(origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{ConnectionKind, ConnectionSpec};

    fn read(address: &str, link: &str) -> Result<String, String> {
        let written = serde_json::json!({"address": address});
        let spec = ConnectionSpec::parse(ConnectionKind::Fhir, written.as_object().unwrap()).unwrap();
        below(spec.target.fhir().unwrap(), link)
    }

    // proves: Z33
    #[test]
    fn z33_a_link_is_followed_only_below_the_address() {
        let address = "https://fhir.example.org/r4";
        for (link, path) in [
            ("https://fhir.example.org/r4?_getpages=a&_o=20", "?_getpages=a&_o=20"),
            ("https://FHIR.example.org:443/r4/Patient?page=2", "/Patient?page=2"),
            ("/r4/Patient?page=2", "/Patient?page=2"),
            ("Patient?page=2", "/Patient?page=2"),
            ("/r4/Patient?identifier=urn:mrn|7 8", "/Patient?identifier=urn:mrn%7C7%208"),
            ("?page=2", "?page=2"),
        ] {
            assert_eq!(read(address, link).as_deref(), Ok(path), "{link}");
        }
        for link in [
            "https://evil.example/r4/Patient?page=2",
            "http://fhir.example.org/r4/Patient",
            "https://fhir.example.org:8443/r4/Patient",
            "https://fhir.example.org/r4x/Patient",
            "https://fhir.example.org/admin",
            "https://fhir.example.org@evil.example/r4/Patient",
            "/r5/Patient",
            "//evil.example/r4",
            "https://",
        ] {
            assert!(read(address, link).is_err(), "{link}");
        }
        assert_eq!(read("http://127.0.0.1:9", "http://127.0.0.1:9/Patient?p=2").as_deref(), Ok("/Patient?p=2"));
    }
}
