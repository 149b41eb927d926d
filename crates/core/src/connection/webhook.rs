//! A webhook endpoint as a target. It must not know how requests are signed.

use super::TlsSettings;
use crate::breaker::BreakerRules;
use crate::envelope::Payload;
use crate::http_url::HttpUrl;
use crate::message::HeaderList;
use crate::ordering::OrderingKey;

/// An address that people outside named.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookTarget {
    pub url: HttpUrl,
    pub description: String,
    /// As its owner wants it; it can be switched off beside that. Off, it is sent nothing and holds nothing (D28, D29).
    pub enabled: bool,
    /// For deliveries from now on (D21).
    pub payload: Payload,
    pub addresses: Addresses,
    pub custom_headers: HeaderList,
    /// Attempts a second at most; `None`: no limit.
    pub rate_limit_per_second: Option<u32>,
    pub breaker: BreakerRules,
    /// Order is kept among the events of one key, and those of others go beside them (R15). An endpoint that keeps order among all has an
    /// ordered queue instead.
    pub ordered_by_key: bool,
    pub ordering_key: Option<OrderingKey>,
    pub tls: TlsSettings,
}

/// Where the requests of an endpoint may go (R14, D20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Public ones, over http or https.
    Public,
    /// Public ones, over https.
    PublicTls,
}
