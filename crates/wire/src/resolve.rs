//! Names to addresses, behind a trait so that tests and other resolvers can stand in. It must not know which addresses are allowed.

use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;

/// Asked once for every new socket; nothing is remembered, so a changed record holds from the next socket on.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of a host name, best first. IP literals never come here.
    ///
    /// # Errors
    /// Whatever the resolver reports; an empty list counts as "no address".
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The operating system's resolver (`getaddrinfo`), with its hosts file and search rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}
