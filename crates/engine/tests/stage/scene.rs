//! A scene of webhooks: endpoints that are subscribed to everything, a remote system that answers by their names, and somebody who takes mails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::Failure;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::endpoint::EndpointState;
use postrider_core::health::SwitchOffReason;
use postrider_core::id::EndpointId;
use postrider_core::message::HeaderList;
use postrider_core::topic::TopicName;
use postrider_engine::{
    EngineOptions, KeyWish, Keyring, MasterKey, NewEndpoint, NewEvent, NewSubscription, Plug, SigningScheme,
};
use postrider_store::{AuditFilter, AuditLog, DeliveryFilter, Endpoints, PageRequest, ProjectSettings, StoreRead};
use postrider_wire::mail::{Mail, Mailer, NotMailed};
use serde_json::{Value, json};

use super::{Play, Remote, Stage, status};

const EVERYTHING: &str = "**";

/// With a key under which signing keys are sealed.
pub fn options() -> EngineOptions {
    let secrets = MasterKey::from_bytes([7; 32]).written();
    EngineOptions { keyring: Keyring::parse("test", &secrets).unwrap(), ..EngineOptions::default() }
}

/// Takes mails, or not.
#[derive(Default)]
pub struct Postman {
    pub taken: Mutex<Vec<Mail>>,
    pub refuses: Mutex<Option<NotMailed>>,
}

#[async_trait]
impl Mailer for Postman {
    async fn mail(&self, mail: &Mail) -> Result<(), NotMailed> {
        if let Some(refusal) = self.refuses.lock().unwrap().clone() {
            return Err(refusal);
        }
        self.taken.lock().unwrap().push(mail.clone());
        Ok(())
    }
}

impl Postman {
    /// Those of switchings-off; alerts have mails of their own.
    pub fn told(&self) -> Vec<Mail> {
        let taken = self.taken.lock().unwrap();
        taken.iter().filter(|mail| mail.subject.starts_with("Switched off")).cloned().collect()
    }

    pub fn subjects(&self) -> Vec<String> {
        self.told().into_iter().map(|mail| mail.subject).collect()
    }
}

/// Answers by the path of the endpoint, as the test says at the moment.
pub struct Scene {
    pub stage: Stage,
    pub postman: Arc<Postman>,
    pub answers: Arc<Mutex<BTreeMap<String, Play>>>,
}

impl Scene {
    pub async fn set() -> Scene {
        Scene::with(options()).await
    }

    pub async fn with(options: EngineOptions) -> Scene {
        let answers: Arc<Mutex<BTreeMap<String, Play>>> = Arc::default();
        let known = Arc::clone(&answers);
        let remote = Remote::new(move |outgoing, _| {
            known.lock().unwrap().get(&outgoing.connection.name).cloned().unwrap_or_else(|| status(200))
        });
        let postman = Arc::new(Postman::default());
        let options = EngineOptions { mailer: Plug::of(Arc::clone(&postman) as _), ..options };
        let stage = Stage::with(remote, options).await;
        let scene = Scene { stage, postman, answers };
        scene
            .settings(ProjectSettings { owner_email: Some("ada@clinic.example".to_owned()), ..Default::default() })
            .await;
        scene
    }

    pub async fn settings(&self, settings: ProjectSettings) {
        let known = self.stage.store.project("default").await.unwrap().unwrap();
        self.stage.engine.configure_project(&known, settings).await.unwrap();
    }

    pub fn answers(&self, endpoint: &str, play: Play) {
        self.answers.lock().unwrap().insert(endpoint.to_owned(), play);
    }

    pub async fn endpoint(&self, name: &str, more: Value) -> Arc<Connection> {
        let mut written = json!({"url": format!("https://{name}.example/in"), "retry_preset": "patient"});
        written.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let new = NewEndpoint {
            name: Some(name.to_owned()),
            written: written.as_object().unwrap().clone(),
            key: KeyWish::Make(SigningScheme::Symmetric),
            verify: false,
        };
        let (made, _) = self.stage.engine.create_endpoint(self.stage.project, new).await.unwrap();
        let written = json!({"event_type": EVERYTHING}).as_object().unwrap().clone();
        let subscription = NewSubscription { name: None, connection: made.id, written };
        self.stage.engine.subscribe_push(self.stage.project, subscription).await.unwrap();
        made
    }

    /// How many deliveries it made.
    pub async fn publish(&self, text: &str) -> usize {
        let event = NewEvent {
            event_type: TopicName::new("invoice.paid").unwrap(),
            headers: HeaderList::default(),
            body: Bytes::from(json!(text).to_string()),
            id: None,
            cid: None,
        };
        self.stage.engine.publish_event(self.stage.project, event).await.unwrap().deliveries
    }

    pub async fn state(&self, endpoint: &Connection) -> EndpointState {
        self.stage.store.endpoint(endpoint.id).await.unwrap().unwrap().state
    }

    pub async fn off(&self, endpoint: &Connection) -> Option<SwitchOffReason> {
        self.state(endpoint).await.off.map(|off| off.reason)
    }

    /// From the oldest to the newest.
    pub async fn deliveries(&self) -> Vec<Delivery> {
        let page = PageRequest { limit: 1000, cursor: None };
        let mut found = self.stage.store.deliveries(&DeliveryFilter::default(), page).await.unwrap().items;
        found.reverse();
        found
    }

    pub async fn ends(&self) -> Vec<(Status, Option<Failure>)> {
        let found = self.deliveries().await.into_iter();
        found.map(|delivery| (delivery.progress.status, delivery.progress.failure)).collect()
    }

    pub async fn audited(&self, action: &str) -> usize {
        let filter = AuditFilter { action: Some(action.to_owned()), ..AuditFilter::default() };
        let page = PageRequest { limit: 1000, cursor: None };
        self.stage.store.audit_entries(&filter, page).await.unwrap().items.len()
    }

    pub async fn enable(&self, endpoint: &Connection) {
        self.stage.engine.enable_endpoint(self.stage.project, EndpointId::of(endpoint.id)).await.unwrap();
    }
}
