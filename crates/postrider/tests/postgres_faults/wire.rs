//! The network between a server and its database: it passes everything on, is cut, says nothing any more, or loses the answer to a COMMIT.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How PostgreSQL's protocol says it: a simple query.
const COMMIT: &[u8] = b"COMMIT\0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Open,
    /// Connections are reset, and new ones too.
    Cut,
    /// Nothing passes, and nobody is told.
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The database never hears of the COMMIT.
    Before,
    /// It commits, and its client never hears of that.
    After,
}

pub struct Wire {
    pub port: u16,
    way: watch::Sender<Way>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Commits still to be cut off before they arrive, and after.
    before: AtomicUsize,
    after: AtomicUsize,
}

impl Wire {
    pub async fn laid(to: u16) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let way = watch::Sender::new(Way::Open);
        let shared: Arc<Shared> = Arc::default();
        let (ways, cuts) = (way.subscribe(), Arc::clone(&shared));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, to, ways.clone(), Arc::clone(&cuts)));
            }
        });
        Wire { port, way, shared }
    }

    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }

    pub fn cut_next_commit(&self, cut: Cut) {
        self.counter(cut).store(1, Ordering::SeqCst);
    }

    pub fn has_cut(&self, cut: Cut) -> bool {
        self.counter(cut).load(Ordering::SeqCst) == 0
    }

    fn counter(&self, cut: Cut) -> &AtomicUsize {
        if cut == Cut::Before { &self.shared.before } else { &self.shared.after }
    }
}

async fn pass_on(client: TcpStream, to: u16, ways: watch::Receiver<Way>, shared: Arc<Shared>) {
    let mut cutting = ways.clone();
    let talk = async {
        open(&ways).await;
        let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
        let (from_client, to_client) = tokio::io::split(client);
        let (from_server, to_server) = tokio::io::split(server);
        let muted = AtomicBool::new(false);
        tokio::select! {
            () = ask(from_client, to_server, &ways, &shared, &muted) => {}
            () = answer(from_server, to_client, &ways, &muted) => {}
        }
    };
    // Both ends are closed with bytes unread, which resets them.
    tokio::select! {
        () = talk => {}
        _ = cutting.wait_for(|way| *way == Way::Cut) => {}
    }
}

/// Waits as long as the wire is silent.
async fn open(ways: &watch::Receiver<Way>) {
    let _ = ways.clone().wait_for(|way| *way != Way::Silent).await;
}

async fn ask(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    ways: &watch::Receiver<Way>,
    cuts: &Shared,
    muted: &AtomicBool,
) {
    let mut chunk = vec![0; 64 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut chunk).await else { return };
        open(ways).await;
        let bytes = &chunk[..count];
        let commits = bytes.windows(COMMIT.len()).any(|seven| seven == COMMIT);
        if commits && take(&cuts.before) {
            return;
        }
        let is_last = commits && take(&cuts.after);
        muted.store(is_last, Ordering::SeqCst);
        if to.write_all(bytes).await.is_err() {
            return;
        }
        if is_last {
            // The database gets it before its connection is gone.
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            return;
        }
    }
}

fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

async fn answer(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    ways: &watch::Receiver<Way>,
    muted: &AtomicBool,
) {
    let mut chunk = vec![0; 64 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut chunk).await else { return };
        open(ways).await;
        if !muted.load(Ordering::SeqCst) && to.write_all(&chunk[..count]).await.is_err() {
            return;
        }
    }
}
