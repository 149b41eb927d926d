//! Connections, messages and what came of them.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use postrider_core::ack::Ack;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::id::{Cid, ConnectionId, DeliveryId, ProjectId};
use postrider_core::message::RequestHead;
use postrider_core::{Answer, NoAnswer, NoAnswerKind, Reply, Timestamp};
use postrider_wire::{Egress, MllpSender, Outgoing, Sender as _};
use serde_json::{Map, Value, json};

/// One sender and its one connection.
pub struct Case {
    sender: MllpSender,
    connection: Arc<Connection>,
}

impl Case {
    pub fn to(address: SocketAddr, keys: Value) -> Case {
        Case::at(&address.to_string(), keys)
    }

    pub fn at(address: &str, keys: Value) -> Case {
        Case::by(Egress::new(&[]), address, keys)
    }

    pub fn by(egress: Egress, address: &str, keys: Value) -> Case {
        let mut written = Map::new();
        written.insert("address".into(), json!(address));
        written.extend(keys.as_object().unwrap().clone());
        let connection = Arc::new(Connection {
            id: ConnectionId::from_u128(1),
            project_id: ProjectId::from_u128(1),
            name: "LIS".into(),
            spec: ConnectionSpec::parse(ConnectionKind::Mllp, &written).unwrap(),
            written,
            paused: false,
            version: 1,
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
        });
        Case { sender: MllpSender::new(1 << 20, Arc::new(egress)), connection }
    }

    pub async fn send(&self, body: impl Into<Bytes>) -> Reply {
        let outgoing = Outgoing {
            connection: self.connection.clone(),
            delivery_id: DeliveryId::from_u128(77),
            cid: Cid::from_stored("c"),
            attempt: 1,
            head: Arc::new(RequestHead::default()),
            body: body.into(),
            credentials: None,
            trace: None,
            stamp: None,
            webhook: None,
            service: None,
            timeout: self.connection.spec.policy.timeout,
        };
        self.sender.send(outgoing).await
    }

    /// The code of the acknowledgment.
    pub async fn code(&self, body: impl Into<Bytes>) -> String {
        acknowledged(self.send(body).await).1.code.to_string()
    }

    pub async fn unanswered(&self, kind: NoAnswerKind) -> String {
        unanswered(self.send(adt("M1")).await, kind)
    }
}

pub fn adt(id: &str) -> String {
    format!(
        "MSH|^~\\&|HIS|GH|LIS|GH|20260312120534||ADT^A01^ADT_A01|{id}|P|2.5\rEVN|A01|20260312\rPID|1||7^^^MRN||Doe^Jane\r"
    )
}

pub fn acknowledged(reply: Reply) -> (Answer, Ack) {
    match reply {
        Reply::Answered(answer) => {
            let ack = answer.ack().cloned().unwrap();
            (answer, ack)
        }
        Reply::Unanswered(none) => panic!("no acknowledgment: {none:?}"),
    }
}

pub fn unanswered(reply: Reply, wanted: NoAnswerKind) -> String {
    match reply {
        Reply::Unanswered(NoAnswer { kind, detail }) => {
            assert_eq!(kind, wanted, "{detail}");
            detail
        }
        Reply::Answered(answer) => panic!("answered: {answer:?}"),
    }
}
