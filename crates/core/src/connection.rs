//! A connection: a configured outgoing target with its delivery policy.
//!
//! What an operator wrote is kept as written; `spec` is what it means, validated. This module must not know how to reach anything.

mod fhir;
mod mllp;
mod rest;
mod soap;
mod webhook;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use fhir::{FhirTarget, PartialBatch};
pub use mllp::{AckMatch, ApplicationAck, Framing, MllpTarget, RetryOn, SegmentEnds};
pub use rest::RestTarget;
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
#[serde(rename_all = "lowercase")]
pub enum ConnectionKind {
    Rest,
    Mllp,
    Soap,
    Fhir,
    Webhook,
}

impl ConnectionKind {
    /// In the order in which lists name them.
    pub const ALL: [ConnectionKind; 5] = [
        ConnectionKind::Rest,
        ConnectionKind::Mllp,
        ConnectionKind::Soap,
        ConnectionKind::Fhir,
        ConnectionKind::Webhook,
    ];
    /// What may be written, in words that continue "allowed is …".
    pub const ALLOWED: &str = "one of rest, mllp, soap, fhir, webhook";

    pub const fn as_str(self) -> &'static str {
        match self {
            ConnectionKind::Rest => "rest",
            ConnectionKind::Mllp => "mllp",
            ConnectionKind::Soap => "soap",
            ConnectionKind::Fhir => "fhir",
            ConnectionKind::Webhook => "webhook",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        ConnectionKind::ALL.into_iter().find(|kind| kind.as_str() == text)
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
        }
    }

    pub const fn rest(&self) -> Option<&RestTarget> {
        match self {
            Target::Rest(rest) => Some(rest),
            Target::Mllp(_) | Target::Soap(_) | Target::Fhir(_) | Target::Webhook(_) => None,
        }
    }

    pub const fn webhook(&self) -> Option<&WebhookTarget> {
        match self {
            Target::Webhook(endpoint) => Some(endpoint),
            Target::Rest(_) | Target::Mllp(_) | Target::Soap(_) | Target::Fhir(_) => None,
        }
    }

    pub const fn mllp(&self) -> Option<&MllpTarget> {
        match self {
            Target::Mllp(mllp) => Some(mllp),
            Target::Rest(_) | Target::Soap(_) | Target::Fhir(_) | Target::Webhook(_) => None,
        }
    }

    pub fn soap(&self) -> Option<&SoapTarget> {
        match self {
            Target::Soap(soap) => Some(soap),
            Target::Rest(_) | Target::Mllp(_) | Target::Fhir(_) | Target::Webhook(_) => None,
        }
    }

    pub fn fhir(&self) -> Option<&FhirTarget> {
        match self {
            Target::Fhir(fhir) => Some(fhir),
            Target::Rest(_) | Target::Mllp(_) | Target::Soap(_) | Target::Webhook(_) => None,
        }
    }

    /// The way over HTTP, for the kinds that take it.
    pub fn http(&self) -> Option<&RestTarget> {
        match self {
            Target::Rest(rest) => Some(rest),
            Target::Soap(soap) => Some(&soap.http),
            Target::Fhir(fhir) => Some(&fhir.http),
            Target::Mllp(_) | Target::Webhook(_) => None,
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
        }
    }

    /// What bodies are.
    pub const fn data_format(&self) -> DataFormat {
        match self {
            Target::Rest(rest) => rest.data_format,
            Target::Mllp(_) => DataFormat::Hl7,
            Target::Soap(_) => DataFormat::Soap,
            Target::Fhir(_) => DataFormat::Fhir,
            Target::Webhook(_) => DataFormat::Json,
        }
    }

    /// Whether a request only reads, so that it never queues (Z12).
    pub fn only_reads(&self, head: &RequestHead) -> bool {
        match self {
            Target::Rest(_) => head.method.only_reads(),
            Target::Fhir(_) => crate::fhir::only_reads(head),
            // What an endpoint is sent always means something to it, and nobody but the service knows whether an operation of SOAP only reads.
            Target::Mllp(_) | Target::Soap(_) | Target::Webhook(_) => false,
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

#[cfg(test)]
mod tests {
    use super::ConnectionKind;

    #[test]
    fn d16_every_kind_reads_back_and_is_named_where_another_is_refused() {
        for kind in ConnectionKind::ALL {
            assert_eq!(ConnectionKind::parse(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        let names = ConnectionKind::ALL.map(ConnectionKind::as_str).join(", ");
        assert_eq!(ConnectionKind::ALLOWED, format!("one of {names}"));
        assert_eq!(ConnectionKind::parse("REST"), None);
    }
}
