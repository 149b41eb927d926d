//! `Postrider`: a server elsewhere, or a whole one in this process, behind the same client.
//!
//! In the process the requests go straight to the routes that a server answers with, and no socket is opened for them; so both do the same by
//! construction. It must not know what any route does.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use postrider_core::Wait;
use postrider_engine::{Engine, EngineOptions, Service, SystemClock, SystemDice};
use postrider_store::{SqliteOptions, SqliteStore, Store};
use postrider_web::{AdminKey, Answers as _, ApiOptions, AppState, Front};
use postrider_wire::{Egress, HttpOptions, Senders};

use crate::client::{BoxedAnswer, Client, ClientError, Routes};
use crate::key_file::{self, KeyFile};

/// As of a server: attempts under way get this long to end.
const GRACE: Wait = Wait::from_secs(8);
/// What stands for the address of a server in errors.
const NAME: &str = "this process";

/// A Postrider that can be used at once.
pub struct Postrider {
    client: Client,
    running: Option<Running>,
}

struct Running {
    engine: Engine,
    store: Arc<dyn Store>,
    routes: Arc<Local>,
}

impl Postrider {
    /// A server at `http://HOST:PORT` or `https://HOST:PORT`. Nothing is sent yet.
    ///
    /// # Errors
    /// An address that is no such URL, and a key that cannot stand in a header.
    pub fn connect(server: &str, key: &str) -> Result<Postrider, ClientError> {
        Ok(Postrider { client: Client::new(server, key)?, running: None })
    }

    /// Runs in this process, on the data directory of a server or a new one, and goes on with what waits there. Needs a tokio runtime with all its
    /// drivers. One at a time may have a directory, whether a process or a server.
    ///
    /// # Errors
    /// `BadSetting`: the directory or the store in it cannot be used, or somebody else has it.
    pub async fn open(dir: impl AsRef<Path>) -> Result<Postrider, ClientError> {
        let dir = dir.as_ref();
        let unusable =
            |reason: String| ClientError::BadSetting { what: format!("the data directory {}", dir.display()), reason };
        make(dir).map_err(|error| unusable(error.to_string()))?;
        let database = dir.join("postrider.db");
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&database, SqliteOptions::default())).await;
        let opened = opened.map_err(|error| unusable(error.to_string()))?;
        let store: Arc<dyn Store> = Arc::new(opened.map_err(|error| unusable(error.to_string()))?);
        let file = dir.join(key_file::NAME);
        let known =
            if file.exists() { key_file::read(&file, key_file::NAME).map_err(unusable)? } else { Default::default() };
        let options = EngineOptions { keyring: known.kept_in(Arc::new(KeyFile(file))), ..EngineOptions::default() };
        let (clock, dice) = (SystemClock::shared(), SystemDice::shared());
        let sender = Arc::new(Senders::new(HttpOptions::default(), Arc::new(Egress::new(&[]))));
        // Known to nobody but this value, and gone with it.
        let key = format!("{:032x}{:032x}", dice.bits(), dice.bits());
        let engine = Engine::start(Arc::clone(&store), sender, Arc::clone(&clock), dice, options)
            .await
            .map_err(|error| unusable(error.to_string()))?;
        let state = AppState::new(engine.clone(), clock, ApiOptions::default());
        let routes = Arc::new(Local(postrider_web::router(state, AdminKey::of(&key))));
        let client = Client::in_process(NAME, &key, Arc::clone(&routes) as Arc<dyn Routes>)?;
        Ok(Postrider { client, running: Some(Running { engine, store, routes }) })
    }

    /// Everything that can be done, beside what `Courier` has.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// From now on this code is the service of that name for the channels of this process; a former one of the name is gone. Of a server elsewhere nothing
    /// happens, and `false` says so: a server runs services of its own.
    pub fn provide(&self, name: &str, service: Arc<dyn Service>) -> bool {
        let Some(running) = &self.running else { return false };
        running.engine.provide_service(name, service);
        true
    }

    /// A request at a channel's address, as the application's own HTTP server takes it: stored and acknowledged, or run while its caller waits.
    ///
    /// # Errors
    /// `BadSetting` for a Postrider elsewhere, whose channels are at its own address.
    pub async fn receive(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ClientError> {
        let Some(running) = &self.running else {
            let reason = "it is a server elsewhere: its channels are at its own address".to_owned();
            return Err(ClientError::BadSetting { what: "the Postrider".to_owned(), reason });
        };
        let answered = running.routes.answer(request.map(Full::new)).await;
        answered.map_err(|reason| ClientError::BadSetting { what: NAME.to_owned(), reason })
    }

    /// Lets attempts under way end, writes everything and gives the directory back. Without it nothing is lost either: what was under way is sent again
    /// at the next start. Of a server elsewhere, nothing happens.
    pub async fn close(self) {
        let Some(Running { engine, store, .. }) = self.running else { return };
        engine.stop(GRACE).await;
        // The next open recovers what was not closed.
        let _ = store.close().await;
    }
}

struct Local(Front);

impl Routes for Local {
    fn answer(&self, request: Request<Full<Bytes>>) -> BoxedAnswer {
        let answering = self.0.answer(request.map(axum::body::Body::new));
        Box::pin(async move {
            let (head, body) = answering.await.into_parts();
            let bytes = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            Ok(Response::from_parts(head, bytes))
        })
    }
}

/// For its owner only.
fn make(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
