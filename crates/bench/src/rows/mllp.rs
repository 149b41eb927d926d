//! MLLP: one FIFO connection with a full queue, against a bare client that sends each message when the last one was acknowledged.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::lane::Lane;
use crate::peer::Peer;
use crate::server::{BATCH_TYPE, of, uri};

pub const FIGURES: &[Figure] =
    &[at_least("MLLP: one connection, of a bare client's ack round trips", Unit::Share, 0.7, 0.9)];
const CONNECTION: &str = "mllp";
/// Messages loaded with one call.
const BATCH: u64 = 1000;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    bench.progress.step("mllp: bare client");
    let receiver = Receiver::start()?;
    let (address, at_most) = (receiver.address, bench.seconds(3, 1));
    let bare = bench.generator.on(async move { sequential(address, at_most).await }).await?;
    let messages = bench.number(40_000, 5_000);
    bench.progress.step("mllp: loading");
    let Stage { data: _data, server } = bench.stage().await?;
    let written = json!({"name": CONNECTION, "type": "mllp", "address": address.to_string(), "use_queue": true});
    server.expect(Method::POST, "/api/v1/projects/default/connections", written.to_string().into()).await?;
    server.pause(CONNECTION).await?;
    let mut loader = Peer::connect(server.address).await?;
    for from in (0..messages).step_by(usize::try_from(BATCH).unwrap_or(1)) {
        let lines: String =
            (from..messages.min(from + BATCH)).map(|id| json!({"body": message(id)}).to_string() + "\n").collect();
        let status = loader.post(&uri(&of(CONNECTION, "publish/batch")), BATCH_TYPE, lines.into()).await?;
        if !status.is_success() {
            return Err(Failure::new(format!("loading was answered {status}")));
        }
    }
    bench.progress.step("mllp: delivering");
    let before = receiver.acknowledged.load(Ordering::Relaxed);
    let began_at = Instant::now();
    server.resume(CONNECTION).await?;
    while receiver.acknowledged.load(Ordering::Relaxed) < before + messages {
        if began_at.elapsed() > Duration::from_secs(300) {
            return Err(Failure::new("not all messages were delivered within 300 s"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let rate = messages as f64 / began_at.elapsed().as_secs_f64();
    Ok(Measured::Values {
        values: vec![rate / bare],
        details: vec![detail("messages a second", rate), detail("bare client, messages a second", bare)],
    })
}

/// About a kilobyte, as most messages of a hospital are.
fn message(id: u64) -> String {
    let text = "x".repeat(800);
    format!(
        "MSH|^~\\&|HIS|GH|LIS|GH|20260312120534||ORU^R01^ORU_R01|{id}|P|2.5\rPID|1||7^^^MRN||Doe^Jane\rOBX|1|TX|REPORT||{text}\r"
    )
}

/// Acknowledges every frame; on a lane of its own.
struct Receiver {
    address: SocketAddr,
    acknowledged: Arc<AtomicU64>,
    _lane: Lane,
}

impl Receiver {
    fn start() -> Result<Receiver, Failure> {
        let cannot = |error: io::Error| Failure::new(format!("the receiver of HL7 cannot be started: {error}"));
        let lane = Lane::start("mllp").map_err(cannot)?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let acknowledged = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&acknowledged);
        lane.handle().spawn(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(acknowledge(tcp, Arc::clone(&count)));
            }
        });
        Ok(Receiver { address, acknowledged, _lane: lane })
    }
}

async fn acknowledge(mut tcp: TcpStream, count: Arc<AtomicU64>) {
    let _ = tcp.set_nodelay(true);
    let mut bytes = Vec::with_capacity(16 * 1024);
    loop {
        while !bytes.ends_with(b"\x1c\r") {
            if !matches!(tcp.read_buf(&mut bytes).await, Ok(1..)) {
                return;
            }
        }
        let id = bytes.split(|byte| *byte == b'|').nth(9).unwrap_or_default().to_vec();
        bytes.clear();
        let ack = [b"\x0bMSH|^~\\&|LIS|GH|HIS|GH|20260312||ACK|A|P|2.5\rMSA|AA|", &id[..], b"\r\x1c\r"].concat();
        if tcp.write_all(&ack).await.is_err() {
            return;
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn sequential(address: SocketAddr, at_most: Duration) -> Result<f64, Failure> {
    let broke = |error: io::Error| Failure::new(format!("the bare client's connection broke: {error}"));
    let mut tcp = TcpStream::connect(address).await.map_err(broke)?;
    tcp.set_nodelay(true).map_err(broke)?;
    let began_at = Instant::now();
    let mut sent = 0u64;
    let mut answer = Vec::with_capacity(4096);
    while began_at.elapsed() < at_most {
        let frame = [b"\x0b", message(sent).as_bytes(), b"\x1c\r"].concat();
        tcp.write_all(&frame).await.map_err(broke)?;
        answer.clear();
        while !answer.ends_with(b"\x1c\r") {
            if tcp.read_buf(&mut answer).await.map_err(broke)? == 0 {
                return Err(Failure::new("the bare client's connection was closed"));
            }
        }
        sent += 1;
    }
    Ok(sent as f64 / began_at.elapsed().as_secs_f64())
}
