//! All that is worked out once for a version of a connection and its credentials: address, header values, trust, sockets.
//!
//! It must not know of single requests.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use postrider_core::connection::{Connection, DataFormat, RestTarget};
use tokio::sync::Semaphore;

use super::link::Link;
use super::origin::Origin;
use super::pool::Pool;

/// Why a connection's settings make no address to send to; it names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RouteError {
    #[error("`host` is not an address of scheme, host and port")]
    Host,
    #[error("`content_type` is not a header value")]
    ContentType,
    #[error("a connection of type `{0}` does not go over HTTP")]
    Kind(&'static str),
}

pub(super) struct Route {
    pub(super) connection: Arc<Connection>,
    pub(super) rest: RestTarget,
    pub(super) origin: Origin,
    pub(super) content_type: HeaderValue,
    /// Attempts at once; each has at most one socket, so this bounds the sockets too.
    pub(super) slots: Semaphore,
    pub(super) pool: Arc<Pool<Box<Link>>>,
}

impl Route {
    pub(super) fn new(connection: &Arc<Connection>, idle_timeout: Duration) -> Result<Self, RouteError> {
        let rest = connection.spec.target.http();
        let rest = rest.ok_or(RouteError::Kind(connection.kind().as_str()))?;
        let slots = usize::try_from(rest.pool_size).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        Ok(Route {
            origin: Origin::new(&rest.host, &rest.tls).map_err(|_| RouteError::Host)?,
            content_type: content_type(rest)?,
            slots: Semaphore::new(slots),
            pool: Pool::new(idle_timeout),
            rest: rest.clone(),
            connection: connection.clone(),
        })
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
            DataFormat::Hl7 => "application/hl7-v2",
            DataFormat::Soap => "text/xml; charset=utf-8",
        })),
    }
}
