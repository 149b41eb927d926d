//! Whether a connection's remote system can be reached.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Client, ClientError};

/// How far a try came, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// It is there and, where something is asked, answers; whatever the status.
    pub is_reachable: bool,
    #[serde(default)]
    pub target: String,
    /// Which of its addresses accepted.
    #[serde(default)]
    pub address: Option<String>,
    /// Those that were reached, in their order.
    #[serde(default)]
    pub stages: Vec<StageTook>,
    #[serde(default, rename = "failedAt")]
    pub failed_at: Option<String>,
    #[serde(default)]
    pub status: Option<u16>,
    /// RFC 3339.
    #[serde(default, rename = "certificateEndsAt")]
    pub certificate_ends_at: Option<String>,
    #[serde(default)]
    pub error: Option<String>,
    /// What to do, in a sentence.
    #[serde(default)]
    pub advice: Option<String>,
    /// What a newer server adds.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTook {
    /// `token`, `resolve`, `connect`, `tls` or `first_byte`.
    pub stage: String,
    #[serde(rename = "tookMs")]
    pub took_ms: f64,
}

impl Client {
    /// Tries whether the remote system can be reached now; nothing of it is stored. `method` is what a connection of type `rest` is asked with:
    /// `HEAD` (the default), `GET` or `OPTIONS`.
    pub async fn ping_connection(&self, name: &str, method: Option<&str>) -> Result<Reached, ClientError> {
        let request: Map<String, Value> =
            method.map(|method| ("method".to_owned(), method.into())).into_iter().collect();
        self.transport.json(Method::POST, &self.under_connection(name, "/ping"), &request).await
    }
}
