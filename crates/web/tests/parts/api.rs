//! The API over a real socket, with an engine on the store in memory and a remote system that answers by path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::connection::Connection;
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::message::HeaderList;
use postrider_core::{Answer, Reply, Timestamp, Wait};
use postrider_engine::{Clock, Engine, EngineOptions, Keyring, MasterKey, SystemClock, SystemDice};
use postrider_store::{MemoryStore, Project, ProjectSettings, Store, StoreRead};
use postrider_web::{AdminKey, ApiOptions, AppState, BodyBounds, Front, ServerLimits, ensure_admin_key, router, site};
use postrider_wire::{Outgoing, Sender};
use serde_json::Value;

use super::{Running, answer, exchange};

pub const CONNECTIONS: &str = "/api/v1/projects/default/connections";
pub const DELIVERIES: &str = "/api/v1/projects/default/deliveries";

/// `/fail` is answered 500, anything else 200 with the body that was sent.
struct Remote;

#[async_trait]
impl Sender for Remote {
    async fn send(&self, outgoing: Outgoing) -> Reply {
        let fields = vec![("content-type".to_owned(), "application/json".to_owned())];
        let headers = HeaderList::try_from(fields).unwrap();
        let fails = outgoing.head.path == "/fail";
        Reply::Answered(Answer {
            status: Some(if fails { 500 } else { 200 }),
            headers,
            body: outgoing.body,
            ..Answer::default()
        })
    }

    async fn may_reach(&self, _: &Arc<Connection>) -> Result<(), String> {
        Ok(())
    }

    fn forget(&self, _: ConnectionId) {}
}

pub struct Api {
    pub key: String,
    pub store: Arc<dyn Store>,
    engine: Engine,
    running: Running,
}

impl Api {
    /// Bodies may have 1000 bytes; progress is looked at every 200 ms.
    pub async fn start() -> Api {
        Api::serving(SystemClock::shared(), |state, admin, _| router(state, admin)).await
    }

    /// The same with the dashboard, and with somebody's own clock.
    pub async fn start_site(clock: Arc<dyn Clock>) -> Api {
        Api::serving(clock, site).await
    }

    async fn serving(clock: Arc<dyn Clock>, service: impl FnOnce(AppState, AdminKey, Arc<dyn Clock>) -> Front) -> Api {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let dice = SystemDice::seeded(7);
        let secrets = MasterKey::from_bytes([7; 32]).written();
        let keyring = Keyring::parse("test", &secrets).unwrap();
        let options = EngineOptions { body_bytes_max: 1000, keyring, ..EngineOptions::default() };
        let engine =
            Engine::start(store.clone(), Arc::new(Remote), clock.clone(), dice.clone(), options).await.unwrap();
        for (number, name) in [(1, "default"), (2, "other")] {
            if store.project(name).await.unwrap().is_none() {
                let project = Project {
                    id: ProjectId::from_u128(number),
                    name: name.into(),
                    settings: ProjectSettings::default(),
                    created_at: Timestamp::from_millis(0),
                };
                store.create_project(project).await.unwrap();
            }
        }
        let key = ensure_admin_key(&*store, None, &*dice).await.unwrap().expect("a new store has no key");
        assert_eq!(ensure_admin_key(&*store, None, &*dice).await.unwrap(), None, "a key is shown once");
        let admin = AdminKey::load(&*store as &dyn StoreRead).await.unwrap();
        let window = Duration::from_millis(200);
        let body = BodyBounds { body_bytes_max: 1000, window, window_bytes_min: 100, ..BodyBounds::default() };
        let state = AppState::new(engine.clone(), clock.clone(), ApiOptions { body, ..ApiOptions::default() });
        let service = service(state, admin, clock);
        let running = Running::start(service, ServerLimits::default()).await;
        Api { key, store, engine, running }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn address(&self) -> SocketAddr {
        self.running.address
    }

    pub async fn stop(self) {
        self.running.stop().await;
        self.engine.stop(Wait::from_secs(5)).await;
    }

    /// Status, head in lower case, body.
    pub async fn raw(&self, request: &[u8]) -> (u16, String, String) {
        let text = exchange(self.running.address, request).await;
        let (head, body) = answer(&text);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("no answer: {text}")), head, body.to_owned())
    }

    pub async fn with(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String, String) {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n{headers}\r\n",
            self.key,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.raw(&request).await
    }

    /// With a JSON body; empty for none.
    pub async fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, _, text) = self.with(method, path, "Content-Type: application/json\r\n", body.as_bytes()).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, json) = self.call("GET", path, "").await;
        assert_eq!(status, 200, "{path}: {json}");
        json
    }

    /// A connection named so with these further keys, given as members of an object.
    pub async fn connection(&self, name: &str, keys: &str) {
        let body =
            format!(r#"{{"name": "{name}", "type": "rest", "host": "http://remote.test", "url_path": ""{keys}}}"#);
        let (status, json) = self.call("POST", CONNECTIONS, &body).await;
        assert_eq!(status, 201, "{json}");
    }

    /// Waits until a delivery has this status.
    pub async fn until(&self, id: &str, wanted: &str) {
        let reached = async {
            while self.get(&format!("{DELIVERIES}/{id}")).await["status"] != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(20), reached).await;
        assert!(reached.is_ok(), "{id} did not become {wanted}");
    }
}

pub fn field(problem: &Value) -> &str {
    problem["errors"][0]["field"].as_str().unwrap_or_default()
}
