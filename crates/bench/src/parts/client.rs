//! Parts four and five: an HTTP client with a pool and the receiver. Beside them our own sender to the same receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::id::{Cid, ConnectionId, DeliveryId, ProjectId};
use postrider_core::message::RequestHead;
use postrider_core::{Timestamp, Wait};
use postrider_wire::{Egress, HttpOptions, HttpSender, Outgoing, Sender};
use serde_json::json;
use tokio::task::JoinSet;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::lane::Lane;
use crate::load::CALLERS;
use crate::messages;

pub struct ClientParts {
    pub pooled_us: f64,
    pub receiver_us: f64,
    pub our_sender_us: f64,
}

pub async fn measure(bench: &mut Bench) -> Result<ClientParts, Failure> {
    let at_most = bench.seconds(2, 1);
    bench.progress.step("parts: pooled HTTP client and receiver");
    let lane = Lane::start("client")?;
    let uri: Uri = format!("{}/in", bench.receiver.origin()).parse().expect("an address makes a URI");
    pooled(&lane, uri.clone(), Duration::from_millis(300)).await?;
    bench.receiver.open_book(0);
    let (client_before, receiver_before) = (lane.cpu().await, bench.receiver.cpu().await);
    let sent = pooled(&lane, uri, at_most).await?;
    let pooled_us = each(lane.cpu().await.saturating_sub(client_before), sent);
    let receiver_us = each(bench.receiver.cpu().await.saturating_sub(receiver_before), sent);

    bench.progress.step("parts: our own sender");
    let sender = Arc::new(HttpSender::new(HttpOptions::default(), Arc::new(Egress::new(&[]))));
    let connection = Arc::new(connection(&bench.receiver.origin())?);
    ours(&lane, sender.clone(), connection.clone(), Duration::from_millis(300)).await?;
    let before = lane.cpu().await;
    let sent = ours(&lane, sender, connection, at_most).await?;
    let our_sender_us = each(lane.cpu().await.saturating_sub(before), sent);
    Ok(ClientParts { pooled_us, receiver_us, our_sender_us })
}

fn each(cpu: Duration, messages: u64) -> f64 {
    cpu.as_secs_f64() * 1e6 / messages.max(1) as f64
}

async fn pooled(lane: &Lane, uri: Uri, at_most: Duration) -> Result<u64, Failure> {
    lane.on(async move {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Client<_, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let next = Arc::new(AtomicU64::new(0));
        let stop_at = Instant::now() + at_most;
        let mut tasks = JoinSet::new();
        for _ in 0..CALLERS {
            let (client, uri, next) = (client.clone(), uri.clone(), next.clone());
            tasks.spawn(async move {
                let failed = |error: &dyn std::fmt::Display| Failure::new(format!("the bare client: {error}"));
                while Instant::now() < stop_at {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let mut request = Request::new(Full::new(messages::body(number)));
                    *request.method_mut() = Method::POST;
                    *request.uri_mut() = uri.clone();
                    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    let mut answer = client.request(request).await.map_err(|error| failed(&error))?;
                    while let Some(frame) = answer.body_mut().frame().await {
                        frame.map_err(|error| failed(&error))?;
                    }
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| Failure::new(error.to_string()))??;
        }
        Ok(next.load(Ordering::Relaxed))
    })
    .await
}

async fn ours(
    lane: &Lane,
    sender: Arc<HttpSender>,
    connection: Arc<Connection>,
    at_most: Duration,
) -> Result<u64, Failure> {
    lane.on(async move {
        let next = Arc::new(AtomicU64::new(0));
        let stop_at = Instant::now() + at_most;
        let mut tasks = JoinSet::new();
        for _ in 0..CALLERS {
            let (sender, connection, next) = (sender.clone(), connection.clone(), next.clone());
            let head = Arc::new(RequestHead::default());
            let cid = Cid::new(Timestamp::from_millis(0), 7);
            tasks.spawn(async move {
                while Instant::now() < stop_at {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let outgoing = Outgoing {
                        connection: connection.clone(),
                        delivery_id: DeliveryId::from_u128(u128::from(number)),
                        cid: cid.clone(),
                        attempt: 1,
                        head: head.clone(),
                        body: messages::body(number),
                        credentials: None,
                        webhook: None,
                        service: None,
                        trace: None,
                        stamp: None,
                        timeout: Wait::from_secs(60),
                    };
                    let reply = sender.send(outgoing).await;
                    if reply.answer().is_none_or(|answer| answer.status != Some(200)) {
                        return Err(Failure::new(format!("our sender: {reply:?}")));
                    }
                }
                Ok(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| Failure::new(error.to_string()))??;
        }
        Ok(next.load(Ordering::Relaxed))
    })
    .await
}

/// A connection to the receiver with a socket for each caller, as the server would have it.
pub fn connection(host: &str) -> Result<Connection, Failure> {
    let written = json!({"host": host, "url_path": "/in", "use_queue": true, "ordered": false,
        "concurrency": CALLERS, "pool_size": CALLERS});
    let written = written.as_object().cloned().unwrap_or_default();
    let spec = ConnectionSpec::parse(ConnectionKind::Rest, &written)
        .map_err(|errors| Failure::new(format!("the connection is refused: {errors:?}")))?;
    let now = Timestamp::from_millis(0);
    Ok(Connection {
        id: ConnectionId::from_u128(1),
        project_id: ProjectId::from_u128(1),
        name: "bench".to_owned(),
        written,
        spec,
        paused: false,
        version: 1,
        created_at: now,
        updated_at: now,
    })
}
