//! Whether the server is ready, which needs no key.

use http::Method;
use serde_json::Value;

use super::{Client, ClientError};

/// What `/health/ready` answers, also where that is no.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    pub is_ready: bool,
    /// `checks`, and after a restore `restored`.
    pub ready: Value,
    /// The server's clock, as the `Date` header has it (RFC 9110, section 6.6.1).
    pub date: Option<String>,
}

impl Client {
    /// # Errors
    /// The server cannot be reached, or something else answers there.
    pub async fn health(&self) -> Result<Health, ClientError> {
        let (status, headers, bytes) = self.transport.ask(Method::GET, "/health/ready", None).await?;
        let ready = serde_json::from_slice(&bytes)
            .map_err(|error| ClientError::Unreadable { server: self.server().to_owned(), reason: error.to_string() })?;
        let date = headers.get(http::header::DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        Ok(Health { is_ready: status.is_success(), ready, date })
    }
}
