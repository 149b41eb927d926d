//! What a provider asks for before it sends anything: answered at once, and neither stored nor passed on. Only what is verified gets here.

use http::HeaderMap;
use postrider_core::source::{Provider, SourceSpec};
use serde::Deserialize;

/// Longer challenges are none.
const CHALLENGE_BYTES_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Slack's `url_verification`: the text goes back as it came.
    Challenge(String),
    /// GitHub's `ping`, when a webhook has been set up.
    Ping,
}

/// `None`: a webhook like any other.
pub fn handshake(spec: &SourceSpec, headers: &HeaderMap, body: &[u8]) -> Option<Handshake> {
    match spec.provider {
        Provider::Slack => {
            let asked: Asked = serde_json::from_slice(body).ok()?;
            let is_asked = asked.kind == "url_verification" && asked.challenge.len() <= CHALLENGE_BYTES_MAX;
            is_asked.then_some(Handshake::Challenge(asked.challenge))
        }
        Provider::GitHub => (headers.get("x-github-event")?.as_bytes() == b"ping").then_some(Handshake::Ping),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Asked {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
}
