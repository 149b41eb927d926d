//! All that is worked out once for a version of a connection and its credentials: address, header values, trust, sockets.
//!
//! It must not know of single requests.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use postrider_core::connection::{Addresses, Connection, DataFormat, RestTarget, Target};
use tokio::sync::Semaphore;

use super::link::Link;
use super::origin::Origin;
use super::pool::Pool;
use crate::guard::Policy;

/// Why a connection's settings make no address to send to; it names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RouteError {
    #[error("`host` or `url` is not an address of scheme, host and port")]
    Host,
    #[error("`content_type` is not a header value")]
    ContentType,
    #[error("a connection of type `{0}` does not go over HTTP")]
    Kind(&'static str),
}

/// `hooks_max`: so many at once, as a host of ours has it.
const BESIDE_MAX: usize = 16;

pub(super) struct Route {
    pub(super) connection: Arc<Connection>,
    pub(super) origin: Origin,
    pub(super) content_type: HeaderValue,
    /// Attempts at once, as people are told.
    pub(super) slots_max: u32,
    /// Attempts at once; each has at most one socket, so this bounds the sockets too.
    pub(super) slots: Semaphore,
    /// What is asked of a service beside its runs: their number must not hold an acknowledgment up.
    pub(super) beside: Semaphore,
    pub(super) pool: Arc<Pool<Box<Link>>>,
}

impl Route {
    pub(super) fn new(connection: &Arc<Connection>, idle_timeout: Duration) -> Result<Self, RouteError> {
        let (origin, content_type, slots_max) = match &connection.spec.target {
            Target::Rest(rest) => over_http(rest)?,
            Target::Soap(soap) => over_http(&soap.http)?,
            Target::Fhir(fhir) => over_http(&fhir.http)?,
            Target::Webhook(endpoint) => {
                let origin = Origin::new(endpoint.url.origin(), &endpoint.tls).map_err(|_| RouteError::Host)?;
                let policy = match endpoint.addresses {
                    Addresses::Public => Policy::Public,
                    Addresses::PublicTls => Policy::PublicTls,
                };
                let slots = connection.spec.policy.queue.concurrency;
                (origin.judged_by(policy), HeaderValue::from_static("application/json"), slots)
            }
            Target::Service(service) => {
                let origin = Origin::new(service.url.origin(), &service.tls).map_err(|_| RouteError::Host)?;
                (origin, HeaderValue::from_static("application/json"), service.pool_size)
            }
            Target::Mllp(_) | Target::Channel(_) => return Err(RouteError::Kind(connection.kind().as_str())),
        };
        let slots = usize::try_from(slots_max).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        Ok(Route {
            origin,
            content_type,
            slots_max,
            slots: Semaphore::new(slots),
            beside: Semaphore::new(BESIDE_MAX),
            pool: Pool::new(idle_timeout),
            connection: connection.clone(),
        })
    }
}

fn over_http(rest: &RestTarget) -> Result<(Origin, HeaderValue, u32), RouteError> {
    let origin = Origin::new(&rest.host, &rest.tls).map_err(|_| RouteError::Host)?;
    Ok((origin, content_type(rest)?, rest.pool_size))
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
            DataFormat::Fhir => "application/fhir+json; charset=utf-8",
        })),
    }
}
