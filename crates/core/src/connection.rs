//! A connection: a configured outgoing target with its delivery policy.
//!
//! What an operator wrote is kept as written; `spec` is what it means, validated. This module must not know how to reach anything.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;
use crate::envelope::Payload;
use crate::http_url::HttpUrl;
use crate::id::{ConnectionId, ProjectId};
use crate::message::HeaderList;
use crate::path_template::PathTemplate;
use crate::policy::DeliveryPolicy;
use crate::settings::{self, SettingError};

#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    pub id: ConnectionId,
    pub project_id: ProjectId,
    /// Unique per project and kind (D16).
    pub name: String,
    /// The keys as written, without `name` and `type`; export and the API give these back.
    pub written: Map<String, Value>,
    pub spec: ConnectionSpec,
    /// Paused by hand: new calls are stored, nothing is sent.
    pub paused: bool,
    /// Rises with every change.
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The validated meaning of a connection's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionSpec {
    pub target: Target,
    pub policy: DeliveryPolicy,
    /// The security definition, by name, whose credentials every attempt carries.
    pub security: Option<String>,
    /// `false` refuses new calls and holds the queue (Z16).
    pub is_active: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionKind {
    Rest,
    Webhook,
}

impl ConnectionKind {
    pub const ALL: [ConnectionKind; 2] = [ConnectionKind::Rest, ConnectionKind::Webhook];

    pub const fn as_str(self) -> &'static str {
        match self {
            ConnectionKind::Rest => "rest",
            ConnectionKind::Webhook => "webhook",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        ConnectionKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Where requests go, per kind. A further kind is a further variant.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Rest(RestTarget),
    Webhook(WebhookTarget),
}

/// A webhook endpoint: an address that people outside named.
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

#[derive(Clone, Debug, PartialEq)]
pub struct RestTarget {
    /// `http://…` or `https://…`: scheme, host and port, no path, no user info, no slash at the end.
    pub host: String,
    pub url_path: PathTemplate,
    pub content_type: Option<String>,
    pub data_format: DataFormat,
    /// Sockets kept open at most, and attempts at once at most.
    pub pool_size: u32,
    pub tls: TlsSettings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    Json,
    Text,
    Form,
    Xml,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    pub verify: bool,
    /// A PEM file with the authorities to trust instead of the public ones.
    pub ca_path: Option<String>,
    /// What to show to a server that asks who we are (mutual TLS).
    pub client: Option<ClientCertificate>,
}

/// PEM files; read anew when they change, so that a renewed certificate holds from the next socket on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate and its chain.
    pub cert_path: String,
    pub key_path: String,
}

impl TlsSettings {
    /// Nothing but the public authorities.
    pub const PUBLIC: TlsSettings = TlsSettings { verify: true, ca_path: None, client: None };
}

impl Target {
    pub const fn kind(&self) -> ConnectionKind {
        match self {
            Target::Rest(_) => ConnectionKind::Rest,
            Target::Webhook(_) => ConnectionKind::Webhook,
        }
    }
}

impl Connection {
    pub const fn kind(&self) -> ConnectionKind {
        self.spec.target.kind()
    }

    /// Nothing is sent while this holds.
    pub const fn is_held(&self) -> bool {
        self.paused || !self.spec.is_active
    }

    /// Since when it has surely not been held: its last change, of which a resume is one. `None` while it is held.
    ///
    /// The clock of the age cap begins anew here (D22), so that neither a pause nor a repair of the settings costs a delivery its attempts.
    pub fn open_since(&self) -> Option<Timestamp> {
        (!self.is_held()).then_some(self.updated_at)
    }
}

impl ConnectionSpec {
    /// Reads the YAML keys of an outgoing connection of this kind. All errors at once, each with its field.
    pub fn parse(kind: ConnectionKind, written: &Map<String, Value>) -> Result<Self, Vec<SettingError>> {
        match kind {
            ConnectionKind::Rest => settings::rest::parse(written),
            ConnectionKind::Webhook => settings::webhook::parse(written),
        }
    }
}

/// A connection's name: 1 to 200 characters, no `/` (D16), no control characters, no space at either end.
pub fn check_name(name: &str) -> Result<(), SettingError> {
    let length = name.chars().count();
    // Clients take a path segment of dots away before they send it, so nothing could ever reach such a connection.
    let of_dots = name == "." || name == "..";
    let bad = length == 0
        || length > 200
        || of_dots
        || name.contains('/')
        || name.chars().any(char::is_control)
        || name.trim() != name;
    if bad {
        return Err(SettingError::new(
            "name",
            name,
            "1 to 200 characters, no `/`, no control characters, no space at either end, and neither `.` nor `..`",
        ));
    }
    Ok(())
}
