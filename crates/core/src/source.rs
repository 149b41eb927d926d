//! A source: an address at which somebody else's webhooks come in, how they prove themselves, and the topic that they become messages of (R12).
//!
//! What comes in is a message like any other (D40): destinations are subscriptions to the source's topic. This module must not know how a
//! signature is computed, nor where secrets are kept.

mod provider;

use serde_json::{Map, Value};

pub use provider::{Provider, SecretOrigin};

use crate::http_url::HttpUrl;
use crate::id::{ProjectId, SourceId};
use crate::settings;
use crate::topic::TopicName;
use crate::{SettingError, Timestamp, Wait};

/// `sources_max`: of one project. All of them are in memory.
pub const SOURCES_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub id: SourceId,
    pub project_id: ProjectId,
    /// Unique per project.
    pub name: String,
    /// The keys as written, without `name` and `secret`.
    pub written: Map<String, Value>,
    pub spec: SourceSpec,
    /// Rises with every change, a rotation included.
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The validated meaning of a source's keys.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceSpec {
    pub provider: Provider,
    /// What comes in becomes a message of this topic. No two sources of a project share one.
    pub topic: TopicName,
    pub description: String,
    /// `false`: whoever sends here is told that it is gone, and nothing is stored.
    pub enabled: bool,
    /// Where providers reach this server, for those that sign the address too: scheme, host and port.
    pub public_url: Option<HttpUrl>,
    /// How far a signed time may be from ours, either way.
    pub tolerance: Wait,
    /// For how long the provider's own id of a webhook makes a second one with that id a repeat.
    pub dedupe_window: Wait,
    /// For how long a signature that has been accepted is not accepted under another id; zero: it always is.
    pub replay_window: Wait,
    pub rate_limit_per_second: Option<u32>,
    /// The header with the sender's own id of a webhook, for providers that name none.
    pub id_header: Option<String>,
    pub hubspot_version: HubSpotVersion,
    pub hmac: HmacSpec,
}

/// Which of HubSpot's signatures is asked for. A request carries older ones beside the newest, so only one of them counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HubSpotVersion {
    V1,
    V2,
    /// The only one with a time.
    #[default]
    V3,
}

/// How the provider `hmac` signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HmacSpec {
    pub algorithm: HmacAlgorithm,
    pub header: String,
    /// Stands before the signature in its header.
    pub prefix: String,
    pub encoding: HmacEncoding,
    /// With one, `{time}.{body}` is signed, and the time must be near ours.
    pub timestamp_header: Option<String>,
    pub form: HmacForm,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HmacAlgorithm {
    Sha1,
    #[default]
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HmacEncoding {
    #[default]
    Hex,
    Base64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HmacForm {
    /// The header holds the signature.
    #[default]
    Plain,
    /// The header holds `t=…,v1=…`, of which there may be several `v1`; `{t}.{body}` is signed.
    Timed,
}

impl SourceSpec {
    /// # Errors
    /// All that is refused, each with its field.
    pub fn parse(name: &str, written: &Map<String, Value>) -> Result<Self, Vec<SettingError>> {
        settings::source::parse(name, written)
    }
}

impl HubSpotVersion {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(HubSpotVersion::V1),
            "v2" => Some(HubSpotVersion::V2),
            "v3" => Some(HubSpotVersion::V3),
            _ => None,
        }
    }

    /// Whether the address is signed too.
    pub const fn signs_the_url(self) -> bool {
        !matches!(self, HubSpotVersion::V1)
    }
}

impl HmacAlgorithm {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "sha1" => Some(HmacAlgorithm::Sha1),
            "sha256" => Some(HmacAlgorithm::Sha256),
            "sha384" => Some(HmacAlgorithm::Sha384),
            "sha512" => Some(HmacAlgorithm::Sha512),
            _ => None,
        }
    }
}

impl HmacEncoding {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "hex" => Some(HmacEncoding::Hex),
            "base64" => Some(HmacEncoding::Base64),
            _ => None,
        }
    }
}

impl HmacForm {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "plain" => Some(HmacForm::Plain),
            "t_v1" => Some(HmacForm::Timed),
            _ => None,
        }
    }
}
