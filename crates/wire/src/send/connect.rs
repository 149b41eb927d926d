//! A new link: a socket through the one way out, and TLS on top.
//!
//! It must not know of requests or pools; the caller ends it when its time is up.

use std::io;
use std::sync::Arc;

use postrider_core::connection::TlsSettings;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::link::{Link, Stream};
use super::metered::{Meter, Metered};
use super::origin::{Built, Origin, TlsRoute};
use crate::egress::{Destination, Egress, NotOpened, Progress, Stage};
use crate::guard::Refused;
use crate::tls::{self, TlsError};

pub(crate) struct Connector {
    egress: Arc<Egress>,
    /// Hundreds of authorities, held once for all connections that trust the public ones.
    public_tls: OnceCell<TlsConnector>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
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
    pub(crate) fn new(egress: Arc<Egress>) -> Self {
        Connector { egress, public_tls: OnceCell::new() }
    }

    pub(crate) async fn open(&self, origin: &Origin, progress: &Progress) -> Result<Box<Link>, ConnectError> {
        let (stream, meter) = self.open_stream(origin.destination(), origin.tls.as_ref(), progress).await?;
        let link = Link::open(stream, meter).await.map_err(|error| ConnectError::Internal(error.to_string()))?;
        Ok(Box::new(link))
    }

    /// The stream alone, whatever is spoken over it, and the count of its bytes.
    pub(crate) async fn open_stream(
        &self,
        to: Destination<'_>,
        tls: Option<&TlsRoute>,
        progress: &Progress,
    ) -> Result<(Stream, Arc<Meter>), ConnectError> {
        let tcp = self.egress.open(to, progress).await?;
        let (metered, meter) = Metered::new(tcp);
        let stream = match tls {
            None => Stream::Plain(metered),
            Some(tls) => {
                progress.reach(Stage::Tls);
                let connector = self.tls_connector(tls).await?;
                let tls = connector.connect(tls.server_name.clone(), metered).await.map_err(ConnectError::Tls)?;
                Stream::Tls(Box::new(tls))
            }
        };
        Ok((stream, meter))
    }

    /// Whether it may be dialled, as far as can be told without dialling.
    pub(crate) async fn judge(&self, origin: &Origin) -> Result<(), Refused> {
        self.judge_destination(origin.destination()).await
    }

    pub(crate) async fn judge_destination(&self, to: Destination<'_>) -> Result<(), Refused> {
        self.egress.judge(to).await
    }

    async fn tls_connector(&self, tls: &TlsRoute) -> Result<TlsConnector, ConnectError> {
        if tls.is_plain() {
            return self.public_tls.get_or_try_init(|| build(tls)).await.cloned();
        }
        let mut built = tls.built.lock().await;
        // Looked at before the files are read, so that a change in between is seen the next time.
        let stamps = stamps(&tls.settings).await;
        if let Some(built) = built.as_ref().filter(|built| built.stamps == stamps) {
            return Ok(built.connector.clone());
        }
        let connector = build(tls).await?;
        *built = Some(Built { connector: connector.clone(), stamps });
        Ok(connector)
    }
}

async fn build(tls: &TlsRoute) -> Result<TlsConnector, ConnectError> {
    let (settings, speaks) = (tls.settings.clone(), tls.speaks);
    let built = tokio::task::spawn_blocking(move || tls::client_config(&settings, speaks)).await;
    let config = built.map_err(|lost| ConnectError::Internal(format!("TLS cannot be set up: {lost}")))??;
    Ok(TlsConnector::from(config))
}

/// When each of the files was changed last, and its length; `None` for one that is not there.
async fn stamps(settings: &TlsSettings) -> Vec<Option<(std::time::SystemTime, u64)>> {
    let client = settings.client.iter().flat_map(|client| [&client.cert_path, &client.key_path]);
    let mut stamps = Vec::new();
    for path in settings.ca_path.iter().chain(client) {
        let found = tokio::fs::metadata(path).await.ok();
        stamps.push(found.and_then(|found| Some((found.modified().ok()?, found.len()))));
    }
    stamps
}
