//! A server: where it is, how it is named in a request, and how TLS with it is set up.
//!
//! It must not know what is asked of it.

use std::time::SystemTime;

use http::{HeaderValue, Uri};
use postrider_core::connection::TlsSettings;
use rustls_pki_types::ServerName;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use crate::egress::{Destination, Host};
use crate::guard::Policy;
use crate::tls::Speaks;

/// The text is not an address of scheme, host and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not an address of scheme, host and port")]
pub(crate) struct NotAnOrigin;

pub(crate) struct Origin {
    pub(crate) host: Host,
    /// `Some` for https.
    pub(crate) tls: Option<TlsRoute>,
    /// The `Host` header: without the port when it is the scheme's own.
    pub(crate) host_header: HeaderValue,
    /// Whose destination it is.
    pub(crate) policy: Policy,
}

pub(crate) struct TlsRoute {
    pub(crate) server_name: ServerName<'static>,
    pub(crate) settings: TlsSettings,
    pub(crate) speaks: Speaks,
    /// Stays empty for a server of which only the public authorities are asked.
    pub(crate) built: Mutex<Option<Built>>,
}

/// What was made of the files that the settings name, and when those were changed last: a renewed certificate holds from the next socket on.
/// A failure is not kept, so a mended file works at the next attempt.
pub(crate) struct Built {
    pub(crate) connector: TlsConnector,
    pub(crate) stamps: Vec<Option<(SystemTime, u64)>>,
}

impl TlsRoute {
    /// Trusts the public authorities and shows nothing: the same for all that do.
    pub(crate) fn is_plain(&self) -> bool {
        self.settings == TlsSettings::PUBLIC && self.speaks == Speaks::Http
    }

    pub(crate) fn new(host: &Host, settings: &TlsSettings, speaks: Speaks) -> Result<TlsRoute, NotAnOrigin> {
        let server_name = ServerName::try_from(host.name().to_owned()).map_err(|_| NotAnOrigin)?;
        Ok(TlsRoute { server_name, settings: settings.clone(), speaks, built: Mutex::default() })
    }
}

impl Origin {
    /// Reads `https://host[:port]`; what follows is not looked at.
    pub(crate) fn new(address: &str, settings: &TlsSettings) -> Result<Origin, NotAnOrigin> {
        let uri: Uri = address.parse().map_err(|_| NotAnOrigin)?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(NotAnOrigin),
        };
        let authority = uri.authority().ok_or(NotAnOrigin)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(NotAnOrigin);
        }
        let own_port = if https { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(own_port);
        let written = authority.host();
        let host = Host::new(written, port);
        let host_header = if port == own_port { written } else { host.shown() };
        let host_header = HeaderValue::from_str(host_header).map_err(|_| NotAnOrigin)?;
        let tls = if https { Some(TlsRoute::new(&host, settings, Speaks::Http)?) } else { None };
        Ok(Origin { host, tls, host_header, policy: Policy::Connections })
    }

    pub(crate) fn judged_by(self, policy: Policy) -> Origin {
        Origin { policy, ..self }
    }

    pub(crate) fn destination(&self) -> Destination<'_> {
        Destination { host: &self.host, tls: self.tls.is_some(), policy: self.policy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Result<Origin, NotAnOrigin> {
        Origin::new(address, &TlsSettings::PUBLIC)
    }

    #[test]
    fn the_host_header_has_the_port_unless_it_is_the_schemes_own() {
        for (host, header, shown) in [
            ("http://a.example", "a.example", "a.example:80"),
            ("http://a.example:80", "a.example", "a.example:80"),
            ("http://a.example:443", "a.example:443", "a.example:443"),
            ("https://a.example", "a.example", "a.example:443"),
            ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ] {
            let origin = origin(host).unwrap();
            assert_eq!((origin.host_header.to_str().unwrap(), origin.host.shown()), (header, shown));
            assert_eq!(origin.tls.is_some(), host.starts_with("https"));
        }
    }

    #[test]
    fn a_literal_is_known_as_one() {
        assert_eq!(origin("http://[::1]:80").unwrap().host.literal(), Some("::1".parse().unwrap()));
        assert_eq!(origin("http://a.example").unwrap().host.literal(), None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for host in ["", "a.example", "/path", "ftp://a.example", "http://user:secret@a.example", "http://"] {
            assert_eq!(origin(host).err(), Some(NotAnOrigin), "{host}");
        }
    }
}
