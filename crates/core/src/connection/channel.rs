//! A channel as a target: the door by which requests come in, and what then runs (Z40).
//!
//! It must not know how a request is authenticated, stored or answered.

use core::net::SocketAddr;
use std::sync::Arc;

use super::{ClientCertificate, ConnectionKind, DataFormat, Framing, SoapOperation};
use crate::Wait;
use crate::channel_path::ChannelPath;
use crate::message::Method;
use crate::soap::SoapVersion;

#[derive(Clone, Debug, PartialEq)]
pub struct ChannelTarget {
    pub door: Door,
    pub runs: Runs,
    /// What bodies are, for the service that reads them.
    pub data_format: DataFormat,
    /// The whole acknowledgment of a queued request, in place of the default one (Z43).
    pub queue_response: Option<String>,
    /// How long the service may take to write the acknowledgment (D42).
    pub hook_timeout: Wait,
}

/// What accepting a request leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// By its name in the project; whether there is one is seen when it runs.
    Service(String),
    /// The request is put into the queue of each of these, as it arrived.
    Connections(Vec<ForwardTo>),
}

/// A connection as settings name it: `Billing API`, or `rest:Billing API` where the name alone is ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardTo {
    pub kind: Option<ConnectionKind>,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Door {
    Http(HttpDoor),
    Soap(HttpDoor, SoapDoor),
    Mllp(Arc<MllpDoor>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct HttpDoor {
    pub path: ChannelPath,
    /// In capitals; none: any.
    pub methods: Vec<Method>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SoapDoor {
    pub version: SoapVersion,
    /// The action that a request must have; empty: any.
    pub action: String,
    /// Of the operations, in the WSDL that is served.
    pub namespace: String,
    pub operations: Vec<SoapOperation>,
}

/// A port that listens for HL7 over MLLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MllpDoor {
    pub listen: SocketAddr,
    pub framing: Framing,
    /// A longer message is refused and its socket closed. In bytes, without framing.
    pub message_bytes_max: u32,
    /// Sockets at once, at most; a further one is closed.
    pub connections_max: u32,
    /// From the first byte of a message to its last.
    pub read_timeout: Wait,
    /// A socket on which nothing went on for this long is closed; `None`: never.
    pub idle_close: Option<Wait>,
    /// For so long a message of the very same bytes is acknowledged again and not run again; zero: it is run.
    pub duplicates_for: Wait,
    /// `None`: in the clear.
    pub tls: Option<ServerTls>,
}

/// The server's side of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// What is shown, and its key.
    pub identity: ClientCertificate,
    /// Whose certificates callers have to show (mutual TLS). Names in them are not compared with where callers are.
    pub clients_ca: Option<String>,
}

impl ForwardTo {
    /// Reads `rest:Billing API` or `Billing API`.
    pub fn parse(text: &str) -> ForwardTo {
        let typed = text.split_once(':').and_then(|(kind, name)| {
            let kind = ConnectionKind::CONNECTIONS.into_iter().find(|known| known.as_str() == kind)?;
            Some(ForwardTo { kind: Some(kind), name: name.to_owned() })
        });
        typed.unwrap_or_else(|| ForwardTo { kind: None, name: text.to_owned() })
    }
}

impl Door {
    pub const fn kind(&self) -> ConnectionKind {
        match self {
            Door::Http(_) => ConnectionKind::ChannelRest,
            Door::Soap(..) => ConnectionKind::ChannelSoap,
            Door::Mllp(_) => ConnectionKind::ChannelMllp,
        }
    }

    pub const fn http(&self) -> Option<&HttpDoor> {
        match self {
            Door::Http(http) | Door::Soap(http, _) => Some(http),
            Door::Mllp(_) => None,
        }
    }

    pub const fn soap(&self) -> Option<&SoapDoor> {
        match self {
            Door::Soap(_, soap) => Some(soap),
            Door::Http(_) | Door::Mllp(_) => None,
        }
    }

    /// As people are shown it; placeholders as written.
    pub fn address(&self) -> String {
        match self {
            Door::Http(http) | Door::Soap(http, _) => http.path.as_str().to_owned(),
            Door::Mllp(mllp) => mllp.listen.to_string(),
        }
    }

    /// Whether one request could mean either of the two, so that they cannot both be there (D16).
    pub fn is_same_as(&self, other: &Door) -> bool {
        if let (Door::Mllp(ours), Door::Mllp(theirs)) = (self, other) {
            let (ours, theirs) = (ours.listen, theirs.listen);
            let is_all = ours.ip().is_unspecified() || theirs.ip().is_unspecified();
            return ours.port() == theirs.port() && (is_all || ours.ip() == theirs.ip());
        }
        let (Some(ours), Some(theirs)) = (self.http(), other.http()) else { return false };
        let methods_meet = ours.methods.is_empty()
            || theirs.methods.is_empty()
            || ours.methods.iter().any(|method| theirs.methods.contains(method));
        let actions_meet = match (self.soap(), other.soap()) {
            (Some(ours), Some(theirs)) => ours.action == theirs.action,
            _ => true,
        };
        methods_meet && actions_meet && ours.path.has_shape_of(&theirs.path)
    }
}

impl ChannelTarget {
    pub fn service(&self) -> Option<&str> {
        match &self.runs {
            Runs::Service(name) => Some(name),
            Runs::Connections(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(path: &str, methods: &[&str]) -> Door {
        let methods = methods.iter().map(|method| method.parse().unwrap()).collect();
        Door::Http(HttpDoor { path: ChannelPath::parse(path).unwrap(), methods })
    }

    #[test]
    fn d16_method_and_path_are_unique_and_placeholders_have_no_names_there() {
        let one = door("/orders/{id}", &["POST", "PUT"]);
        for (path, methods, same) in [
            ("/orders/{id}", &["POST"][..], true),
            ("/orders/{number}", &["PUT", "GET"], true),
            ("/orders/{id}", &[], true),
            ("/orders/{id}", &["GET"], false),
            ("/orders/new", &["POST"], false),
            ("/orders/{id}/", &["POST"], false),
            ("/Orders/{id}", &["POST"], false),
        ] {
            assert_eq!(one.is_same_as(&door(path, methods)), same, "{path} {methods:?}");
            assert_eq!(door(path, methods).is_same_as(&one), same, "{path} {methods:?}");
        }
    }

    #[test]
    fn a_connection_is_named_with_its_type_or_without() {
        let named = |kind, name: &str| ForwardTo { kind, name: name.to_owned() };
        assert_eq!(ForwardTo::parse("rest:Billing: A"), named(Some(ConnectionKind::Rest), "Billing: A"));
        assert_eq!(ForwardTo::parse("Billing: A"), named(None, "Billing: A"));
        assert_eq!(ForwardTo::parse("service:a"), named(None, "service:a"), "nobody forwards to one");
    }
}
