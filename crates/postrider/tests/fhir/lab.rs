//! A server, a peer, and calls between them.

use serde_json::{Value, json};

use crate::harness::{Bench, Peer};

pub const PROJECT: &str = "/api/v1/projects/default";

pub const OK: (bool, bool, bool) = (true, false, false);
pub const IN_QUEUE: (bool, bool, bool) = (false, true, false);
pub const RETURNED: (bool, bool, bool) = (false, false, false);

pub struct Lab {
    pub bench: Bench,
    pub peer: Peer,
}

impl Lab {
    pub async fn medplum() -> Lab {
        Lab::start("fhir_medplum.py").await
    }

    pub async fn start(script: &str) -> Lab {
        let (bench, peer) = tokio::join!(Bench::start(), Peer::start(script));
        Lab { bench, peer }
    }

    /// A connection to the peer's `/fhir` unless `more` says otherwise.
    pub async fn connection(&self, name: &str, more: Value) {
        let mut body =
            json!({"name": name, "type": "fhir", "address": format!("{}/fhir", self.peer.address), "timeout": 20});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.bench.call("POST", "/connections", &body).await;
        assert_eq!(status, 201, "{answer}");
    }

    /// The result of a call.
    pub async fn send(&self, name: &str, request: Value) -> Value {
        let (status, result) = self.bench.call("POST", &format!("/connections/{name}/send"), &request).await;
        assert!(matches!(status, 200 | 202), "{status} {result}");
        result
    }

    /// The requests that the peer has seen.
    pub async fn seen(&self) -> Vec<Value> {
        self.peer.call("GET", "/__log", &Value::Null).await.as_array().unwrap().clone()
    }

    /// Of one resource on the peer, as it stands there.
    pub async fn at_peer(&self, path: &str) -> Value {
        self.peer.call("GET", &format!("/fhir{path}"), &Value::Null).await
    }

    /// How many patients the peer has with this identifier.
    pub async fn patients(&self, identifier: &str) -> u64 {
        self.at_peer(&format!("/Patient?identifier={identifier}")).await["total"].as_u64().unwrap()
    }
}

pub fn patient(number: &str) -> Value {
    json!({"resourceType": "Patient", "identifier": [{"system": "urn:lab", "value": number}], "birthDate": "1974-12-25"})
}

/// Retries that take no time.
pub fn queue() -> Value {
    json!({"use_queue": true, "max_retries": 1, "retry_sleep_time": 0})
}
