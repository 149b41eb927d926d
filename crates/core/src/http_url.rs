//! An `http` or `https` address with its path and query, as people write one for a token server or a webhook.
//!
//! It must not know whether the address may be dialled.

use std::fmt;

use crate::settings::read_host;

/// An address longer than this is no address that anybody wrote.
pub const URL_BYTES_MAX: usize = 4096;

#[derive(Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// `http://…` or `https://…`: scheme, host and port, in small letters, without a slash at the end.
    origin: String,
    /// Path and query, beginning with `/`.
    target: String,
}

impl HttpUrl {
    /// Reads `https://login.example.org:8443/oauth2/token?tenant=a`. User names, passwords and fragments are refused.
    ///
    /// # Errors
    /// What is allowed instead, in words that continue "allowed is …".
    pub fn parse(text: &str) -> Result<HttpUrl, &'static str> {
        const CHARACTERS: &str = "an address without spaces and characters that have to be escaped as %XX";
        if text.len() > URL_BYTES_MAX {
            return Err("an address of at most 4096 bytes");
        }
        let after_scheme = text.find("://").map_or(0, |at| at + 3);
        let end = text[after_scheme..].find(['/', '?', '#']).map_or(text.len(), |at| after_scheme + at);
        let (origin, target) = text.split_at(end);
        let origin = read_host(origin)?;
        if target.contains('#') {
            return Err("an address without a fragment (`#…`)");
        }
        if !target.bytes().all(|b| b.is_ascii_graphic() && !b"\\^`{|}<>\"".contains(&b)) {
            return Err(CHARACTERS);
        }
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(HttpUrl { origin, target })
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub fn target(&self) -> &str {
        &self.target
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.target)
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_split_into_origin_and_target() {
        for (text, origin, target) in [
            ("https://A.example", "https://a.example", "/"),
            ("http://a.example:81/x/y?z=1&q=a%20b", "http://a.example:81", "/x/y?z=1&q=a%20b"),
            ("https://[::1]:8443?tenant=a", "https://[::1]:8443", "/?tenant=a"),
        ] {
            let url = HttpUrl::parse(text).unwrap();
            assert_eq!((url.origin(), url.target()), (origin, target));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "a.example/x",
            "ftp://a.example/",
            "https://user:pw@a.example/",
            "https://a.example/#x",
            "https://a.example/a b",
            "https://a.example/\r\nx",
            "https://0x7f.1/token",
            "https:///token",
            "https://a.example\\@b.example/",
        ] {
            assert!(HttpUrl::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_reads_back_the_same(text in "(https?://)?[a-z0-9\\[\\]:@/?#.%_ é-]{0,30}") {
            if let Ok(url) = HttpUrl::parse(&text) {
                prop_assert_eq!(HttpUrl::parse(&url.to_string()), Ok(url));
            }
        }
    }
}
