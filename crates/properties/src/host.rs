//! A connection's `host`: a request can go to the address that was written, and nowhere else.

use postrider_core::connection::{ConnectionKind, ConnectionSpec, check_name};
use serde_json::{Map, Value};

/// The input is the host as it is written; it is tried as a connection's name too.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let is_name = (1..=200).contains(&text.chars().count())
        && text.trim().len() == text.len()
        && !text.chars().any(|c| c == '/' || c.is_control())
        && ![".", ".."].contains(&text);
    assert_eq!(check_name(text).is_ok(), is_name, "{text:?}");
    let Some(host) = read(text) else { return };
    let (scheme, authority) = host.split_once("://").expect("a host has a scheme");
    assert!(matches!(scheme, "http" | "https"), "{host}");
    assert_eq!(host, text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase());
    assert_eq!(read(&host).as_deref(), Some(host.as_str()), "reads back as itself");
    // Another reading of RFC 3986 finds the same parts.
    let uri: http::Uri = format!("{host}/a/b?c=d").parse().unwrap_or_else(|error| panic!("{host}: {error}"));
    assert_eq!(uri.scheme_str(), Some(scheme));
    assert_eq!(uri.authority().map(http::uri::Authority::as_str), Some(authority));
    assert_eq!((uri.path(), uri.query()), ("/a/b", Some("c=d")));
    let name = uri.host().unwrap_or_default();
    assert!(!name.is_empty() && name.is_ascii() && !authority.contains('@'), "{host}");
    let port = authority.strip_prefix(name).expect("an authority begins with its host");
    match port.strip_prefix(':') {
        Some(digits) => assert!(digits.parse::<u16>().is_ok_and(|port| port > 0 && uri.port_u16() == Some(port))),
        None => assert_eq!(port, ""),
    }
}

fn read(host: &str) -> Option<String> {
    let written = [("host", host), ("url_path", "")].map(|(key, value)| (key.to_owned(), Value::from(value)));
    let spec = ConnectionSpec::parse(ConnectionKind::Rest, &Map::from_iter(written)).ok()?;
    Some(spec.target.rest()?.host.clone())
}
