//! A new link: a socket through the one way out, and TLS on top.
//!
//! It must not know of requests or pools; the caller ends it when its time is up.

use std::io;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::link::{Link, Stream};
use super::metered::Metered;
use super::route::{Route, TlsRoute};
use crate::egress::{Destination, Egress, NotOpened, Progress, Stage};
use crate::guard::Policy;
use crate::tls::{self, TlsError};

pub(super) struct Connector {
    egress: Arc<Egress>,
    /// Hundreds of authorities, held once for all connections that trust the public ones.
    public_tls: OnceCell<TlsConnector>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    NotOpened(#[from] NotOpened),
    #[error(transparent)]
    TlsSettings(#[from] TlsError),
    #[error("TLS: {0}")]
    Tls(#[source] io::Error),
    #[error("{0}")]
    Internal(String),
}

impl Connector {
    pub(super) fn new(egress: Arc<Egress>) -> Self {
        Connector { egress, public_tls: OnceCell::new() }
    }

    pub(super) async fn open(&self, route: &Route, progress: &Progress) -> Result<Box<Link>, ConnectError> {
        let to = Destination { host: &route.host, tls: route.tls.is_some(), policy: Policy::Connections };
        let tcp = self.egress.open(to, progress).await?;
        let (metered, meter) = Metered::new(tcp);
        let stream = match &route.tls {
            None => Stream::Plain(metered),
            Some(tls) => {
                progress.reach(Stage::Tls);
                let connector = self.tls_connector(route, tls).await?;
                let tls = connector.connect(tls.server_name.clone(), metered).await.map_err(ConnectError::Tls)?;
                Stream::Tls(Box::new(tls))
            }
        };
        let link = Link::open(stream, meter).await.map_err(|error| ConnectError::Internal(error.to_string()))?;
        Ok(Box::new(link))
    }

    async fn tls_connector<'c>(&'c self, route: &Route, tls: &'c TlsRoute) -> Result<&'c TlsConnector, ConnectError> {
        let settings = &route.rest().tls;
        let is_public = settings.verify && settings.ca_path.is_none();
        let kept = if is_public { &self.public_tls } else { &tls.connector };
        kept.get_or_try_init(|| async {
            let settings = settings.clone();
            let built = tokio::task::spawn_blocking(move || tls::client_config(&settings)).await;
            let config = built.map_err(|lost| ConnectError::Internal(format!("TLS cannot be set up: {lost}")))??;
            Ok(TlsConnector::from(config))
        })
        .await
    }
}
