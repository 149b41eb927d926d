//! A host and its port, as a URL has them. It must not know whether it may be reached.

use std::net::IpAddr;

/// Where to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    literal: Option<IpAddr>,
    port: u16,
    shown: String,
}

impl Host {
    /// `written` is the host of a URL: a name, an IPv4 address, or an IPv6 address in brackets. Anything is taken; what is no plain name is
    /// refused when it is dialled.
    pub fn new(written: &str, port: u16) -> Self {
        let name = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(written).to_owned();
        // A dot at the end says that a name is whole; an address has none.
        let literal = name.strip_suffix('.').unwrap_or(&name).parse().ok();
        Host { literal, name, port, shown: format!("{written}:{port}") }
    }

    /// A name, or the text of an address without brackets.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn literal(&self) -> Option<IpAddr> {
        self.literal
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port` as people read it.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}
