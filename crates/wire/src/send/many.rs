//! The sender of all kinds: it knows which of the others sends what.

use std::sync::Arc;

use async_trait::async_trait;
use postrider_core::Reply;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::id::ConnectionId;
use postrider_core::reach::Reached;

use super::http::{HttpOptions, HttpSender};
use super::mllp::MllpSender;
use super::reach::Reach;
use super::{Outgoing, Sender, fhir, soap};
use crate::egress::Egress;

pub struct Senders {
    http: HttpSender,
    mllp: MllpSender,
}

impl Senders {
    /// `egress` is the one way out that all of them share.
    pub fn new(options: HttpOptions, egress: Arc<Egress>) -> Self {
        let answer_bytes_max = options.response_bytes_max;
        Senders { http: HttpSender::new(options, Arc::clone(&egress)), mllp: MllpSender::new(answer_bytes_max, egress) }
    }
}

#[async_trait]
impl Sender for Senders {
    async fn send(&self, outgoing: Outgoing) -> Reply {
        match outgoing.connection.kind() {
            ConnectionKind::Rest
            | ConnectionKind::Webhook
            | ConnectionKind::ChannelRest
            | ConnectionKind::ChannelSoap
            | ConnectionKind::ChannelMllp
            | ConnectionKind::Service => self.http.send(outgoing).await,
            ConnectionKind::Mllp => self.mllp.send(outgoing).await,
            ConnectionKind::Soap => match soap::request(outgoing) {
                Ok(over_http) => soap::read(self.http.send(over_http).await),
                Err(reply) => reply,
            },
            ConnectionKind::Fhir => match fhir::request(outgoing) {
                Ok(over_http) => fhir::read(self.http.send(over_http.clone()).await, &over_http),
                Err(reply) => reply,
            },
        }
    }

    async fn may_reach(&self, connection: &Arc<Connection>) -> Result<(), String> {
        match connection.kind() {
            ConnectionKind::Rest
            | ConnectionKind::Webhook
            | ConnectionKind::Soap
            | ConnectionKind::Fhir
            | ConnectionKind::Service => self.http.may_reach(connection).await,
            // What it runs is judged when it is dialled.
            ConnectionKind::ChannelRest | ConnectionKind::ChannelSoap | ConnectionKind::ChannelMllp => Ok(()),
            ConnectionKind::Mllp => self.mllp.may_reach(connection).await,
        }
    }

    async fn reach(&self, wanted: Reach) -> Reached {
        match wanted.connection.kind() {
            ConnectionKind::Mllp => self.mllp.reach(wanted).await,
            // Of a channel it says that there is nothing to dial.
            _ => self.http.reach(wanted).await,
        }
    }

    fn forget(&self, connection: ConnectionId) {
        self.http.forget(connection);
        self.mllp.forget(connection);
    }
}
