//! Where the messages of a bridge go: a subject, an exchange or a stream of somebody else's broker (P02).
//!
//! It must not know what is spoken with a broker.

use super::{ConnectionKind, TlsSettings};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerTarget {
    /// A host name or an IP address; an IPv6 address in brackets.
    pub host: String,
    pub port: u16,
    /// `None`: in the clear.
    pub tls: Option<TlsSettings>,
    /// Connections at most; each has one message in flight.
    pub pool_size: u32,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A subject that a stream of JetStream takes.
    Nats { subject: String },
    /// An exchange; the default one, whose name is empty, puts into the queue that the routing key names.
    RabbitMq { vhost: String, exchange: String, routing_key: String },
    Redis {
        stream: String,
        database: u32,
        /// Older entries go when there are about so many; `None`: none do.
        entries_max: Option<u32>,
    },
}

impl BrokerTarget {
    pub const fn kind(&self) -> ConnectionKind {
        match self.place {
            Place::Nats { .. } => ConnectionKind::Nats,
            Place::RabbitMq { .. } => ConnectionKind::Rabbitmq,
            Place::Redis { .. } => ConnectionKind::Redis,
        }
    }

    /// `host:port`, and the place there.
    pub fn address(&self) -> String {
        let place = match &self.place {
            Place::Nats { subject } => subject.clone(),
            Place::RabbitMq { exchange, routing_key, .. } => format!("{exchange}/{routing_key}"),
            Place::Redis { stream, .. } => stream.clone(),
        };
        format!("{}:{} {place}", self.host, self.port)
    }
}
