//! All that is worked out once for a version of a connection: address, header values, trust, sockets.
//!
//! It must not know of single requests.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use postrider_core::connection::{Connection, DataFormat, RestTarget, Target};
use rustls_pki_types::ServerName;
use tokio::sync::{OnceCell, Semaphore};
use tokio_rustls::TlsConnector;

use super::pool::Pool;
use crate::egress::Host;

/// Why a connection's settings make no address to send to; it names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RouteError {
    #[error("`host` is not an address of scheme, host and port")]
    Host,
    #[error("`content_type` is not a header value")]
    ContentType,
}

pub(super) struct Route {
    pub(super) connection: Arc<Connection>,
    pub(super) host: Host,
    /// `Some` for https.
    pub(super) tls: Option<TlsRoute>,
    /// The `Host` header: without the port when it is the scheme's own.
    pub(super) host_header: HeaderValue,
    pub(super) content_type: HeaderValue,
    /// Attempts at once; each has at most one socket, so this bounds the sockets too.
    pub(super) slots: Semaphore,
    pub(super) pool: Arc<Pool>,
}

pub(super) struct TlsRoute {
    pub(super) server_name: ServerName<'static>,
    /// Built at the first socket, because it may read a file; a failure is not kept, so a mended file works at the next attempt.
    /// Stays empty for a connection that trusts the public authorities.
    pub(super) connector: OnceCell<TlsConnector>,
}

impl Route {
    pub(super) fn new(connection: &Arc<Connection>, idle_timeout: Duration) -> Result<Self, RouteError> {
        let Target::Rest(rest) = &connection.spec.target;
        let uri: Uri = rest.host.parse().map_err(|_| RouteError::Host)?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(RouteError::Host),
        };
        let authority = uri.authority().ok_or(RouteError::Host)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(RouteError::Host);
        }
        let own_port = if https { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(own_port);
        let written = authority.host();
        let host = Host::new(written, port);
        let host_header = if port == own_port { written } else { host.shown() };
        let tls = if https {
            let server_name = ServerName::try_from(host.name().to_owned()).map_err(|_| RouteError::Host)?;
            Some(TlsRoute { server_name, connector: OnceCell::new() })
        } else {
            None
        };
        let slots = usize::try_from(rest.pool_size).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        Ok(Route {
            host_header: HeaderValue::from_str(host_header).map_err(|_| RouteError::Host)?,
            host,
            tls,
            content_type: content_type(rest)?,
            slots: Semaphore::new(slots),
            pool: Pool::new(idle_timeout),
            connection: connection.clone(),
        })
    }

    pub(super) fn rest(&self) -> &RestTarget {
        let Target::Rest(rest) = &self.connection.spec.target;
        rest
    }
}

fn content_type(rest: &RestTarget) -> Result<HeaderValue, RouteError> {
    match &rest.content_type {
        Some(written) => HeaderValue::from_str(written).map_err(|_| RouteError::ContentType),
        None => Ok(HeaderValue::from_static(match rest.data_format {
            DataFormat::Json => "application/json",
            DataFormat::Text => "text/plain; charset=utf-8",
            DataFormat::Form => "application/x-www-form-urlencoded",
            DataFormat::Xml => "application/xml",
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::Timestamp;
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};
    use postrider_core::id::{ConnectionId, ProjectId};

    fn route(host: &str) -> Result<Route, RouteError> {
        let written = serde_json::json!({"host": "http://a.example", "url_path": "/"}).as_object().unwrap().clone();
        let mut spec = ConnectionSpec::parse(ConnectionKind::Rest, &written).unwrap();
        let Target::Rest(rest) = &mut spec.target;
        // Past the settings' own check, which must not be the only one.
        rest.host = host.to_owned();
        let connection = Connection {
            id: ConnectionId::from_u128(1),
            project_id: ProjectId::from_u128(1),
            name: "a".into(),
            written,
            spec,
            paused: false,
            version: 1,
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
        };
        Route::new(&Arc::new(connection), Duration::from_secs(4))
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
            let route = route(host).unwrap();
            assert_eq!((route.host_header.to_str().unwrap(), route.host.shown()), (header, shown));
            assert_eq!(route.tls.is_some(), host.starts_with("https"));
        }
    }

    #[test]
    fn a_literal_is_known_as_one() {
        assert_eq!(route("http://[::1]:80").unwrap().host.literal(), Some("::1".parse().unwrap()));
        assert_eq!(route("http://a.example").unwrap().host.literal(), None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for host in ["", "a.example", "/path", "ftp://a.example", "http://user:secret@a.example", "http://"] {
            assert_eq!(route(host).err(), Some(RouteError::Host), "{host}");
        }
    }
}
