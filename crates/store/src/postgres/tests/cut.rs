//! A network that can be cut at the worst moment: it passes everything on until a client commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_postgres::config::Host;

use super::{TestSchema, server};
use crate::postgres::Database;

/// What becomes of the connection of a client that says COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The server never hears of it.
    BeforeCommit,
    /// The server commits, and the client never hears of that.
    AfterCommit,
}

/// Passes connections on to the server. Dropping it ends nothing; its tasks end with the test's runtime.
pub(super) struct Wire {
    address: std::net::SocketAddr,
    /// How many commits are still to be cut.
    cuts: Arc<AtomicUsize>,
}

impl Wire {
    pub async fn laid(cut: Cut) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&cuts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let left = Arc::clone(&left);
                tokio::spawn(async move {
                    match where_to() {
                        Ok(path) => pass_on(client, UnixStream::connect(path).await.unwrap(), cut, left).await,
                        Err(address) => pass_on(client, TcpStream::connect(address).await.unwrap(), cut, left).await,
                    }
                });
            }
        });
        Wire { address, cuts }
    }

    /// The same schema, by way of this wire.
    pub fn database(&self, schema: &TestSchema) -> Database {
        let config: tokio_postgres::Config = server().parse().unwrap();
        let (user, name) = (config.get_user().unwrap_or("postgres"), config.get_dbname().unwrap_or("postgres"));
        let url = format!("postgres://{user}@{}/{name}?sslmode=disable&schema={}", self.address, schema.name);
        Database::parse(&url).unwrap()
    }

    pub fn cut_next(&self, commits: usize) {
        self.cuts.store(commits, Ordering::SeqCst);
    }

    pub fn is_done(&self) -> bool {
        self.cuts.load(Ordering::SeqCst) == 0
    }
}

/// The server's socket, or its address.
fn where_to() -> Result<std::path::PathBuf, String> {
    let config: tokio_postgres::Config = server().parse().unwrap();
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match &config.get_hosts()[0] {
        Host::Unix(folder) => Ok(folder.join(format!(".s.PGSQL.{port}"))),
        Host::Tcp(name) => Err(format!("{name}:{port}")),
    }
}

async fn pass_on(client: TcpStream, server: impl AsyncRead + AsyncWrite + Unpin, cut: Cut, cuts: Arc<AtomicUsize>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            count = from_client.read(&mut asked) => {
                let Ok(count @ 1..) = count else { return };
                let commits = asked[..count].windows(7).any(|part| part == b"COMMIT\0");
                let is_cut = commits
                    && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                if is_cut && cut == Cut::BeforeCommit {
                    return;
                }
                if to_server.write_all(&asked[..count]).await.is_err() {
                    return;
                }
                if is_cut {
                    // The answer says that it is committed; nobody gets it.
                    let _ = from_server.read(&mut answered).await;
                    return;
                }
            }
            count = from_server.read(&mut answered) => {
                let Ok(count @ 1..) = count else { return };
                if to_client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
