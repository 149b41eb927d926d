//! What every page works with. It must not know of any page.

use std::sync::Arc;

use postrider_core::Timestamp;
use postrider_engine::{Clock, Engine};

use super::frame::Flashes;
use super::live::Live;
use super::session::Sessions;
use crate::auth::AdminKey;
use crate::dispatch::Dispatch;

/// Clones share it.
#[derive(Clone)]
pub struct Board(Arc<Inner>);

struct Inner {
    api: Arc<Dispatch>,
    engine: Engine,
    admin: AdminKey,
    clock: Arc<dyn Clock>,
    sessions: Sessions,
    flashes: Flashes,
    live: Arc<Live>,
}

impl Board {
    pub fn new(api: Arc<Dispatch>, engine: Engine, admin: AdminKey, clock: Arc<dyn Clock>) -> Board {
        let (sessions, flashes, live) = Default::default();
        Board(Arc::new(Inner { api, engine, admin, clock, sessions, flashes, live }))
    }

    /// The routes that answer everybody else, gate included.
    pub fn api(&self) -> Arc<Dispatch> {
        Arc::clone(&self.0.api)
    }

    /// For sessions: whose key it is, and random bits. Pages ask the API.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub fn admin(&self) -> &AdminKey {
        &self.0.admin
    }

    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    pub fn live(&self) -> &Arc<Live> {
        &self.0.live
    }

    pub fn flashes(&self) -> &Flashes {
        &self.0.flashes
    }
}
