//! A connection: a configured outgoing target with its delivery policy.
//!
//! What an operator wrote is kept as written; `spec` is what it means, validated. This module must not know how to reach anything.

mod channel;
mod fhir;
mod mllp;
mod rest;
mod service;
mod soap;
mod webhook;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use channel::{ChannelTarget, Door, ForwardTo, HttpDoor, MllpDoor, Runs, ServerTls, SoapDoor};
pub use fhir::{FhirTarget, PartialBatch};
pub use mllp::{AckMatch, ApplicationAck, Framing, MllpTarget, RetryOn, SegmentEnds};
pub use rest::RestTarget;
pub use service::{QUEUE_RESPONSE_HOOK, ServiceTarget};
pub use soap::{
    ElementForm, ElementName, SoapOperation, SoapTarget, WsAddressing, is_action, is_local_name, is_namespace,
};
pub use webhook::{Addresses, WebhookTarget};

use crate::Timestamp;
use crate::id::{ConnectionId, ProjectId};
use crate::message::RequestHead;
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
#[serde(rename_all = "snake_case")]
pub enum ConnectionKind {
    Rest,
    Mllp,
    Soap,
    Fhir,
    Webhook,
    /// Takes requests in over HTTP; its queue holds them until they have run (Z40).
    ChannelRest,
    /// The same over SOAP.
    ChannelSoap,
    /// Listens for HL7 over MLLP on a port of its own.
    ChannelMllp,
    /// Where code runs.
    Service,
}

/// What people configure and look for apart from each other; names are unique per kind, and each family has routes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Remote systems that callers send requests to.
    Connection,
    /// Addresses that accept requests.
    Channel,
    /// What channels run.
    Service,
}

impl ConnectionKind {
    /// In the order in which lists name them.
    pub const ALL: [ConnectionKind; 9] = [
        ConnectionKind::Rest,
        ConnectionKind::Mllp,
        ConnectionKind::Soap,
        ConnectionKind::Fhir,
        ConnectionKind::Webhook,
        ConnectionKind::ChannelRest,
        ConnectionKind::ChannelSoap,
        ConnectionKind::ChannelMllp,
        ConnectionKind::Service,
    ];
    /// What may be written, in words that continue "allowed is …".
    pub const ALLOWED: &str =
        "one of rest, mllp, soap, fhir, webhook, channel_rest, channel_soap, channel_mllp, service";
    /// Those that callers send requests to.
    pub const CONNECTIONS: [ConnectionKind; 5] = [
        ConnectionKind::Rest,
        ConnectionKind::Mllp,
        ConnectionKind::Soap,
        ConnectionKind::Fhir,
        ConnectionKind::Webhook,
    ];
    /// The same in words that continue "allowed is …".
    pub const CONNECTIONS_ALLOWED: &str = "one of rest, mllp, soap, fhir, webhook";
    pub const CHANNELS: [ConnectionKind; 3] =
        [ConnectionKind::ChannelRest, ConnectionKind::ChannelSoap, ConnectionKind::ChannelMllp];
    /// The types of channels, in words that continue "allowed is …".
    pub const CHANNELS_ALLOWED: &str = "one of rest, soap, mllp";

    pub const fn as_str(self) -> &'static str {
        match self {
            ConnectionKind::Rest => "rest",
            ConnectionKind::Mllp => "mllp",
            ConnectionKind::Soap => "soap",
            ConnectionKind::Fhir => "fhir",
            ConnectionKind::Webhook => "webhook",
            ConnectionKind::ChannelRest => "channel_rest",
            ConnectionKind::ChannelSoap => "channel_soap",
            ConnectionKind::ChannelMllp => "channel_mllp",
            ConnectionKind::Service => "service",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        ConnectionKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    pub const fn family(self) -> Family {
        match self {
            ConnectionKind::Rest
            | ConnectionKind::Mllp
            | ConnectionKind::Soap
            | ConnectionKind::Fhir
            | ConnectionKind::Webhook => Family::Connection,
            ConnectionKind::ChannelRest | ConnectionKind::ChannelSoap | ConnectionKind::ChannelMllp => Family::Channel,
            ConnectionKind::Service => Family::Service,
        }
    }

    /// The type of a channel as it is called among channels: what it speaks.
    pub fn channel_type(self) -> Option<&'static str> {
        self.as_str().strip_prefix("channel_")
    }

    /// The other way round.
    pub fn of_channel_type(text: &str) -> Option<Self> {
        ConnectionKind::CHANNELS.into_iter().find(|kind| kind.channel_type() == Some(text))
    }
}

impl Family {
    /// For messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Family::Connection => "connection",
            Family::Channel => "channel",
            Family::Service => "service",
        }
    }
}

/// Where requests go, per kind. A further kind is a further variant, its settings a file beside these, and its sender one in `wire`.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Rest(RestTarget),
    Mllp(MllpTarget),
    Soap(Box<SoapTarget>),
    Fhir(Box<FhirTarget>),
    Webhook(WebhookTarget),
    /// What it accepts is run.
    Channel(Box<ChannelTarget>),
    Service(ServiceTarget),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    Json,
    Text,
    Form,
    Xml,
    /// Messages of HL7 version 2: no choice of anybody's, but what goes over MLLP.
    Hl7,
    /// JSON or XML that becomes an envelope.
    Soap,
    /// Resources in JSON or XML, as they begin.
    Fhir,
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
    /// The settings that name the two files, for messages.
    pub keys: &'static CertificateKeys,
}

#[derive(Debug, PartialEq, Eq)]
pub struct CertificateKeys {
    pub cert: &'static str,
    pub key: &'static str,
}

impl TlsSettings {
    /// Nothing but the public authorities.
    pub const PUBLIC: TlsSettings = TlsSettings { verify: true, ca_path: None, client: None };
}

impl Target {
    pub const fn kind(&self) -> ConnectionKind {
        match self {
            Target::Rest(_) => ConnectionKind::Rest,
            Target::Mllp(_) => ConnectionKind::Mllp,
            Target::Soap(_) => ConnectionKind::Soap,
            Target::Fhir(_) => ConnectionKind::Fhir,
            Target::Webhook(_) => ConnectionKind::Webhook,
            Target::Channel(channel) => channel.door.kind(),
            Target::Service(_) => ConnectionKind::Service,
        }
    }

    pub const fn rest(&self) -> Option<&RestTarget> {
        match self {
            Target::Rest(rest) => Some(rest),
            _ => None,
        }
    }

    pub const fn webhook(&self) -> Option<&WebhookTarget> {
        match self {
            Target::Webhook(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    pub const fn mllp(&self) -> Option<&MllpTarget> {
        match self {
            Target::Mllp(mllp) => Some(mllp),
            _ => None,
        }
    }

    pub fn soap(&self) -> Option<&SoapTarget> {
        match self {
            Target::Soap(soap) => Some(soap),
            _ => None,
        }
    }

    pub fn fhir(&self) -> Option<&FhirTarget> {
        match self {
            Target::Fhir(fhir) => Some(fhir),
            _ => None,
        }
    }

    pub fn channel(&self) -> Option<&ChannelTarget> {
        match self {
            Target::Channel(channel) => Some(channel),
            _ => None,
        }
    }

    pub const fn service(&self) -> Option<&ServiceTarget> {
        match self {
            Target::Service(service) => Some(service),
            _ => None,
        }
    }

    /// The way over HTTP, for the kinds that take it.
    pub fn http(&self) -> Option<&RestTarget> {
        match self {
            Target::Rest(rest) => Some(rest),
            Target::Soap(soap) => Some(&soap.http),
            Target::Fhir(fhir) => Some(&fhir.http),
            Target::Mllp(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => None,
        }
    }

    /// Where requests go, as people are shown it; placeholders as written.
    pub fn address(&self) -> String {
        match self {
            Target::Rest(rest) => rest.address(),
            Target::Soap(soap) => soap.http.address(),
            Target::Fhir(fhir) => fhir.http.address(),
            Target::Mllp(mllp) => mllp.address(),
            Target::Webhook(endpoint) => endpoint.url.to_string(),
            Target::Channel(channel) => channel.door.address(),
            Target::Service(service) => service.url.to_string(),
        }
    }

    /// What bodies are.
    pub fn data_format(&self) -> DataFormat {
        match self {
            Target::Rest(rest) => rest.data_format,
            Target::Mllp(_) => DataFormat::Hl7,
            Target::Soap(_) => DataFormat::Soap,
            Target::Fhir(_) => DataFormat::Fhir,
            Target::Webhook(_) | Target::Service(_) => DataFormat::Json,
            Target::Channel(channel) => channel.data_format,
        }
    }

    /// Whether a request only reads, so that it never queues (Z12).
    pub fn only_reads(&self, head: &RequestHead) -> bool {
        match self {
            Target::Rest(_) => head.method.only_reads(),
            Target::Fhir(_) => crate::fhir::only_reads(head),
            // What an endpoint is sent always means something to it, and nobody but the service knows whether an operation of SOAP only reads. On a
            // channel the queue takes whatever comes.
            Target::Mllp(_) | Target::Soap(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => false,
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
        settings::parse(kind, written)
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
        || name.chars().any(|c| c.is_control() || turns_text(c))
        || name.trim() != name;
    if bad {
        return Err(SettingError::new(
            "name",
            name,
            "1 to 200 characters, no `/`, no control characters, none that turn the direction of text, no space at either end, and neither `.` nor `..`",
        ));
    }
    Ok(())
}

/// Characters that make text beside them read as something else (Unicode UAX 9, embeddings, overrides and isolates).
fn turns_text(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{ConnectionKind, Family};

    #[test]
    fn d16_a_name_that_would_read_as_another_is_refused() {
        for name in ["a\u{202e}b", "\u{2066}a", "a/b", "..", "", " a", "a\n"] {
            assert!(super::check_name(name).is_err(), "{name:?}");
        }
        for name in ["Лаборатория", "مختبر", "a-b_c.d"] {
            assert!(super::check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn d16_every_kind_reads_back_and_is_named_where_another_is_refused() {
        for kind in ConnectionKind::ALL {
            assert_eq!(ConnectionKind::parse(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        let names = ConnectionKind::ALL.map(ConnectionKind::as_str).join(", ");
        assert_eq!(ConnectionKind::ALLOWED, format!("one of {names}"));
        assert_eq!(ConnectionKind::parse("REST"), None);
        let named = |kinds: &[ConnectionKind], name: fn(ConnectionKind) -> &'static str| {
            format!("one of {}", kinds.iter().map(|kind| name(*kind)).collect::<Vec<_>>().join(", "))
        };
        assert_eq!(ConnectionKind::CONNECTIONS_ALLOWED, named(&ConnectionKind::CONNECTIONS, ConnectionKind::as_str));
        let channel = |kind: ConnectionKind| kind.channel_type().unwrap();
        assert_eq!(ConnectionKind::CHANNELS_ALLOWED, named(&ConnectionKind::CHANNELS, channel));
        for kind in ConnectionKind::ALL {
            assert_eq!(kind.family() == Family::Channel, ConnectionKind::CHANNELS.contains(&kind));
            assert_eq!(kind.family() == Family::Connection, ConnectionKind::CONNECTIONS.contains(&kind));
            assert_eq!(
                kind.channel_type().and_then(ConnectionKind::of_channel_type),
                kind.channel_type().map(|_| kind)
            );
        }
    }
}
