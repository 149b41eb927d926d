//! A connection's `host`: scheme, host and port, and nothing else. It must not know whether the address may be dialled.

// From `core`, which has the address types and no sockets.
use core::net::{Ipv4Addr, Ipv6Addr};

/// The longest host name of DNS.
const NAME_BYTES_MAX: usize = 253;

/// Reads `http://name[:port]` or `https://…`, with one slash allowed at the end. Gives it back in small letters, without that slash.
///
/// # Errors
/// What is allowed instead, in words that continue "allowed is …".
pub(crate) fn read_host(text: &str) -> Result<String, &'static str> {
    const SCHEME: &str = "an address that begins with http:// or https://";
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("an address without spaces and control characters");
    }
    let (scheme, rest) = text.split_once("://").ok_or(SCHEME)?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => "http",
        "https" => "https",
        _ => return Err(SCHEME),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('@') {
        return Err("an address without user name and password");
    }
    if authority.contains(['/', '\\', '?', '#']) {
        return Err("an address of scheme, host and port only; the path belongs in `url_path`");
    }
    let (name, port) = split_port(authority)?;
    if port.is_some_and(|port| !is_port(port)) {
        return Err("an address whose port is from 1 to 65535");
    }
    if !is_name(name) {
        return Err("an address with a host name of letters, digits, `-`, `_` and dots, or an IP address");
    }
    Ok(format!("{scheme}://{}", authority.to_ascii_lowercase()))
}

/// Reads `name:port`, as connections without a scheme have it. Gives back the name in small letters, an IPv6 address with its brackets.
///
/// # Errors
/// What is allowed instead, in words that continue "allowed is …".
pub(super) fn read_address(text: &str) -> Result<(String, u16), &'static str> {
    if text.contains("://") {
        return Err("an address of host and port without a scheme, such as `10.1.1.5:2575`");
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("an address without spaces and control characters");
    }
    let (name, port) = split_port(text)?;
    let port = port.ok_or("an address with a port, such as `10.1.1.5:2575`")?;
    if !is_port(port) {
        return Err("an address whose port is from 1 to 65535");
    }
    if !is_name(name) {
        return Err("an address with a host name of letters, digits, `-`, `_` and dots, or an IP address");
    }
    let port = port.parse().map_err(|_| "an address whose port is from 1 to 65535")?;
    Ok((name.to_ascii_lowercase(), port))
}

/// A text with what may be a password left out, for showing.
pub(super) fn without_user_info(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, after)) => format!("…@{after}"),
        None => text.to_owned(),
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    let after_name = if authority.starts_with('[') {
        authority.find(']').ok_or("an address whose IPv6 part ends with `]`")? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (name, rest) = authority.split_at(after_name);
    match rest.strip_prefix(':') {
        Some(port) => Ok((name, Some(port))),
        None if rest.is_empty() => Ok((name, None)),
        None => Err("an address whose port follows a colon"),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_name(name: &str) -> bool {
    if let Some(inside) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inside.parse::<Ipv6Addr>().is_ok();
    }
    let bare = name.strip_suffix('.').unwrap_or(name);
    let labels_fit = bare.split('.').all(|label| {
        (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    });
    // What ends in a number is read as an IPv4 address by some and as a name by others, so it has to be a whole one.
    let ends_in_number =
        bare.rsplit('.').next().is_some_and(|last| match last.strip_prefix("0x").or_else(|| last.strip_prefix("0X")) {
            Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
            None => last.bytes().all(|b| b.is_ascii_digit()),
        });
    labels_fit && bare.len() <= NAME_BYTES_MAX && (!ends_in_number || bare.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn z03_hosts_that_are_taken() {
        for (given, read) in [
            ("https://api.example.org", "https://api.example.org"),
            ("HTTPS://API.Example.org/", "https://api.example.org"),
            ("http://10.1.1.5:2575", "http://10.1.1.5:2575"),
            ("http://localhost:8080/", "http://localhost:8080"),
            ("http://2fa-service:8080", "http://2fa-service:8080"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("http://[2001:DB8::1]", "http://[2001:db8::1]"),
            ("http://billing_api.internal.", "http://billing_api.internal."),
        ] {
            assert_eq!(read_host(given).as_deref(), Ok(read), "{given}");
        }
    }

    #[test]
    fn z03_hosts_that_are_refused_say_why() {
        for (given, why) in [
            ("api.example.org", "http://"),
            ("ftp://api.example.org", "http://"),
            ("://x", "http://"),
            ("https://user:secret@api.example.org", "user name"),
            ("https://api.example.org/v2", "url_path"),
            ("https://api.example.org//", "url_path"),
            ("https://api.example.org?x=1", "url_path"),
            ("https://api.example.org#x", "url_path"),
            ("https://a\\b", "url_path"),
            ("https://", "host name"),
            ("https:///", "host name"),
            ("https://:80", "host name"),
            ("https://a..b", "host name"),
            ("https://münchen.example", "host name"),
            ("https://300.1.1.1", "host name"),
            ("https://0x7f.1", "host name"),
            ("https://0xa9fea9fe", "host name"),
            ("https://0Xa9fea9fe", "host name"),
            ("https://1.0X7F.", "host name"),
            ("https://[::1", "`]`"),
            ("https://[::g]", "host name"),
            ("https://[::1]80", "colon"),
            ("https://a:0", "port"),
            ("https://a:65536", "port"),
            ("https://a:", "port"),
            ("https://a:+80", "port"),
            ("https://a:80:90", "port"),
            ("https://a b", "spaces"),
            ("https://a\r\nb", "spaces"),
        ] {
            let refused = read_host(given).unwrap_err();
            assert!(refused.contains(why), "{given}: {refused}");
        }
    }

    #[test]
    fn z03_addresses_of_host_and_port() {
        for (given, name, port) in [
            ("10.1.1.5:2575", "10.1.1.5", 2575),
            ("LIS.hospital.example:1", "lis.hospital.example", 1),
            ("[2001:DB8::1]:65535", "[2001:db8::1]", 65535),
        ] {
            assert_eq!(read_address(given), Ok((name.to_owned(), port)));
        }
        for (given, why) in [
            ("10.1.1.5", "with a port"),
            ("10.1.1.5:0", "port"),
            ("10.1.1.5:65536", "port"),
            ("10.1.1:2575", "host name"),
            ("mllp://lis:2575", "scheme"),
            ("lis :2575", "spaces"),
            (":2575", "host name"),
            ("2001:db8::1:2575", "port"),
            ("lis:2575/x", "port"),
            ("user@lis:2575", "host name"),
        ] {
            let refused = read_address(given).unwrap_err();
            assert!(refused.contains(why), "{given}: {refused}");
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        assert_eq!(without_user_info("https://user:secret@api.example.org"), "…@api.example.org");
        assert_eq!(without_user_info("https://api.example.org"), "https://api.example.org");
    }

    proptest! {
        #[test]
        fn z03_any_text_is_taken_or_refused_and_a_taken_one_reads_back(text in "(https?://)?[a-z0-9\\[\\]:@/?#. _-]{0,20}") {
            if let Ok(read) = read_host(&text) {
                let again = read_host(&read);
                prop_assert_eq!(again.as_deref(), Ok(read.as_str()));
                prop_assert!(!read.ends_with('/') && !read.contains('@'));
            }
        }
    }
}
