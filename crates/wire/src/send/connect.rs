//! A new socket: name to addresses, addresses past the guard, TCP to the first that takes it, TLS on top.
//!
//! No proxy, whatever the environment says. It must not know of requests or pools; the caller ends it when its time is up.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::cause::Stage;
use super::link::{Link, Stream};
use super::metered::Metered;
use super::route::{Host, Route, TlsRoute};
use crate::guard::{Guard, Refused};
use crate::resolve::Resolver;
use crate::tls::{self, TlsError};

/// An address that has not answered for this long gets company from the next one (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// A silent peer is asked whether it is still there after this long, so that an attempt with a long timeout on a vanished host ends.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);

pub(super) struct Connector {
    resolver: Arc<dyn Resolver>,
    guard: Guard,
    /// Hundreds of authorities, held once for all connections that trust the public ones.
    public_tls: OnceCell<TlsConnector>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("resolve: {0}")]
    Resolve(#[source] io::Error),
    #[error("no address")]
    NoAddress,
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("connect: {0}")]
    Tcp(#[source] io::Error),
    #[error(transparent)]
    TlsSettings(#[from] TlsError),
    #[error("TLS: {0}")]
    Tls(#[source] io::Error),
    #[error("{0}")]
    Internal(String),
}

/// How far the attempt is, for the one who ends it.
pub(super) struct Progress(AtomicU8);

impl Progress {
    const STAGES: [Stage; 5] = [Stage::Slot, Stage::Resolve, Stage::Connect, Stage::Tls, Stage::Answer];

    pub(super) fn new() -> Self {
        Progress(AtomicU8::new(Stage::Slot as u8))
    }

    pub(super) fn reach(&self, stage: Stage) {
        self.0.store(stage as u8, Relaxed);
    }

    pub(super) fn stage(&self) -> Stage {
        Self::STAGES.get(usize::from(self.0.load(Relaxed))).copied().unwrap_or(Stage::Answer)
    }
}

impl Connector {
    pub(super) fn new(resolver: Arc<dyn Resolver>, guard: Guard) -> Self {
        Connector { resolver, guard, public_tls: OnceCell::new() }
    }

    pub(super) async fn open(&self, route: &Route, progress: &Progress) -> Result<Box<Link>, ConnectError> {
        let addresses = self.addresses(&route.host, progress).await?;
        progress.reach(Stage::Connect);
        let tcp = connect_to_any(&addresses).await.map_err(ConnectError::Tcp)?;
        tune(&tcp);
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

    /// All addresses, every one of them allowed: a mixed answer is refused whole, because it is how a name is made to slip through.
    async fn addresses(&self, host: &Host, progress: &Progress) -> Result<Vec<SocketAddr>, ConnectError> {
        let addresses = match host.literal {
            Some(address) => vec![SocketAddr::new(address, host.port)],
            None => {
                progress.reach(Stage::Resolve);
                self.resolver.resolve(&host.name, host.port).await.map_err(ConnectError::Resolve)?
            }
        };
        if addresses.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        for address in &addresses {
            self.guard.check(address.ip())?;
        }
        Ok(addresses)
    }
}

/// The first address that accepts; the next one is tried when one fails or hesitates. The last failure is told.
async fn connect_to_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return TcpStream::connect(only).await;
    }
    let mut waiting = addresses.iter().copied();
    let mut racing = JoinSet::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = waiting.next() {
            racing.spawn(TcpStream::connect(address));
        }
        tokio::select! {
            biased;
            ended = racing.join_next() => match ended {
                Some(Ok(Ok(tcp))) => return Ok(tcp),
                Some(Ok(Err(error))) => failure = error,
                Some(Err(lost)) => failure = io::Error::other(lost),
                None => return Err(failure),
            },
            () = tokio::time::sleep(NEXT_ADDRESS_AFTER), if waiting.len() > 0 => {}
        }
    }
}

/// Small requests leave at once, and a vanished peer is noticed. A socket that refuses either still works.
fn tune(tcp: &TcpStream) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_AFTER);
    let _ = tcp.set_nodelay(true);
    let _ = SockRef::from(tcp).set_tcp_keepalive(&keepalive);
}
