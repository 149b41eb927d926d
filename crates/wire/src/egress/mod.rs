//! The one way out: every socket that the product opens to somebody else is opened here, past the guard (R14).
//!
//! A name is resolved once, all its addresses are judged, and the socket goes to one of those very addresses, so that a name which
//! resolves differently the second time finds nobody asking. `cargo xtask tidy` sees to it that nothing else connects. No proxy, whatever
//! the environment says. It must not know of HTTP, TLS or who wants to go out; the caller ends it when its time is up.

mod host;
mod progress;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub use host::Host;
pub use progress::{Progress, Stage};

use crate::guard::{Guard, Policy, Refused};
use crate::resolve::{Resolver, SystemResolver};

/// An address that has not answered for this long gets company from the next one (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// A silent peer is asked whether it is still there after this long, so that an attempt with a long timeout on a vanished host ends.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);

/// A name may have this many addresses; more are not tried. All of them are judged.
const ADDRESSES_TRIED_MAX: usize = 8;

/// Opens sockets, for everybody who wants out.
pub struct Egress {
    resolver: Arc<dyn Resolver>,
    guard: Guard,
}

/// Where to, how, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    pub host: &'a Host,
    /// Whether TLS will be spoken over the socket.
    pub tls: bool,
    pub policy: Policy,
}

/// Why no socket was opened.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    #[error("resolve: {0}")]
    Resolve(#[source] io::Error),
    #[error("no address")]
    NoAddress,
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("connect: {0}")]
    Connect(#[source] io::Error),
}

impl Egress {
    /// The operating system's resolver. `opened` are ranges that are closed otherwise (`POSTRIDER_ALLOW_PRIVATE`, D33).
    pub fn new(opened: &[IpNet]) -> Self {
        Egress::with_resolver(opened, Arc::new(SystemResolver))
    }

    pub fn with_resolver(opened: &[IpNet], resolver: Arc<dyn Resolver>) -> Self {
        Egress { resolver, guard: Guard::opening(opened) }
    }

    /// What judges; for checks when something is saved, before anything is dialled.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// A connected socket, tuned for small requests. It has no deadline of its own.
    ///
    /// # Errors
    /// `NotOpened`; after `Refused` nothing was dialled.
    pub async fn open(&self, to: Destination<'_>, progress: &Progress) -> Result<TcpStream, NotOpened> {
        let addresses = self.addresses(to, progress).await?;
        progress.reach(Stage::Connect);
        let tried = addresses.len().min(ADDRESSES_TRIED_MAX);
        let tcp = connect_to_any(&addresses[..tried]).await.map_err(NotOpened::Connect)?;
        tune(&tcp);
        Ok(tcp)
    }

    /// Resolves and judges, and dials nobody. What cannot be resolved now is judged when it is dialled.
    ///
    /// # Errors
    /// `Refused` when the name or any address may not be dialled.
    pub async fn judge(&self, to: Destination<'_>) -> Result<(), Refused> {
        match self.addresses(to, &Progress::new()).await {
            Err(NotOpened::Refused(refused)) => Err(refused),
            Err(_) if to.policy == Policy::PublicTls && !to.tls => Err(Refused::NotEncrypted),
            Ok(_) | Err(NotOpened::Resolve(_) | NotOpened::NoAddress | NotOpened::Connect(_)) => Ok(()),
        }
    }

    /// All addresses, every one of them allowed: a mixed answer is refused whole, because it is how a name is made to slip through.
    async fn addresses(&self, to: Destination<'_>, progress: &Progress) -> Result<Vec<SocketAddr>, NotOpened> {
        let host = to.host;
        let addresses = match host.literal() {
            Some(address) => vec![SocketAddr::new(address, host.port())],
            None => {
                self.guard.check_name(to.policy, host.name())?;
                progress.reach(Stage::Resolve);
                self.resolver.resolve(host.name(), host.port()).await.map_err(NotOpened::Resolve)?
            }
        };
        if addresses.is_empty() {
            return Err(NotOpened::NoAddress);
        }
        for address in &addresses {
            self.guard.check(to.policy, to.tls, address.ip())?;
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
