//! `serve --demo`: a receiver that misbehaves in known ways, connections to it, a channel whose service it plays, a little traffic, and a guide to what there is to see.
//!
//! It is a client like any other: it must not know the engine or the store.

mod connections;
mod guide;
mod receiver;
mod traffic;

use postrider::Client;
use tokio::task::AbortHandle;

use crate::exit::{Exit, Failed};
use crate::output;

/// The demo as long as it runs; dropping it ends its traffic and its receiver.
pub struct Demo(Vec<AbortHandle>);

impl Demo {
    /// `key` is that of the server at `address`; `first` the link by which its first owner is made.
    pub async fn start(address: &str, key: Option<&str>, first: &str) -> Result<Demo, Failed> {
        let key = key.ok_or_else(|| Failed::new(Exit::Failure, "the demo knows no key to its own server"))?;
        let client = Client::new(address, key)?;
        let (receiver, places) = receiver::start(address).await.map_err(|error| {
            Failed::new(Exit::Failure, format!("the demo's receiver cannot listen on 127.0.0.1: {error}"))
        })?;
        let mut demo = Demo(vec![receiver.abort_handle()]);
        connections::create(&client, &places).await?;
        output::print(&guide::text(address, key, &guide::program(), first));
        demo.0.push(tokio::spawn(traffic::run(client)).abort_handle());
        Ok(demo)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}
