//! A webhook endpoint as a target. It must not know how requests are signed.

use super::TlsSettings;
use crate::envelope::Payload;
use crate::http_url::HttpUrl;
use crate::message::HeaderList;

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
