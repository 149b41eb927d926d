//! What can go wrong between a client and its server. It must not know of exit codes: the command line chooses those.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address or the key cannot be used at all; nothing was sent.
    #[error("{what} cannot be used: {reason}")]
    BadSetting { what: String, reason: String },
    /// No answer came. Whether the server took the request is unknown.
    #[error("the server at {server} cannot be reached: {reason}")]
    Unreachable { server: String, reason: String },
    /// The server said no; nothing was changed.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// Something answered that does not speak this API.
    #[error("the server at {server} answered something unreadable: {reason}")]
    Unreadable { server: String, reason: String },
}

/// A refusal as the server wrote it (`application/problem+json`, RFC 9457).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    #[serde(default, rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub status: u16,
    #[serde(default)]
    pub detail: Option<String>,
    /// One entry for each field that was refused.
    #[serde(default)]
    pub errors: Vec<FieldProblem>,
    /// Further members, such as a `code`.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldProblem {
    #[serde(default)]
    pub field: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub allowed: Option<String>,
    /// Where it stands in a file that was imported, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.detail.as_deref() {
            Some(detail) if !detail.is_empty() => f.write_str(detail),
            _ if !self.title.is_empty() => f.write_str(&self.title),
            _ => write!(f, "the server answered {}", self.status),
        }
    }
}
