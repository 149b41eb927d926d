//! The accept loop: HTTP/1.1 over TCP with a limit on everything a caller could use up.
//!
//! An error of one connection, or of accepting, never ends the server. It must not know what the service behind it does.

mod leftover;
mod patience;

use postrider_core::log;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::entrance::Entrance;
use crate::gate::PeerAddress;
use crate::problem::Problem;
use patience::{InService, Patience, PatientStream};

/// What callers may use up, each limit with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at once; one more is answered 503 and closed.
    pub connections_max: usize,
    /// From the first byte of a request to the end of its head.
    pub head_timeout: Duration,
    /// Between two requests of one connection, and before the first.
    pub idle_timeout: Duration,
    /// A caller that takes no byte of its answer for this long is let go.
    pub write_timeout: Duration,
    pub head_bytes_max: usize,
    pub headers_max: usize,
    /// After the last answer: how long the rest of what the caller still sends is read and dropped, so that the answer is not lost to a reset.
    pub linger: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections_max: 10_240,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            head_bytes_max: 64 << 10,
            headers_max: 100,
            linger: Duration::from_secs(2),
        }
    }
}

/// Bytes that are read and dropped while lingering, at most.
const LINGER_BYTES_MAX: usize = 32 << 20;
/// A server that stops does not wait long for callers that keep idle connections.
const LINGER_WHEN_STOPPING: Duration = Duration::from_millis(250);
/// After an error of accepting, such as no free file descriptor.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("the address {0} is in use: another server listens there; choose another one with --listen")]
    InUse(SocketAddr),
    #[error("not allowed to listen on {0}: ports below 1024 need a privilege")]
    NotAllowed(SocketAddr),
    #[error("{0} is not an address of this machine")]
    NotOurs(SocketAddr),
    #[error("cannot listen on {0}: {1}")]
    Other(SocketAddr, std::io::Error),
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    limits: ServerLimits,
}

impl Server {
    /// Port 0 picks a free one: see `address`.
    pub async fn bind(address: SocketAddr, limits: ServerLimits) -> Result<Server, BindError> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = bound.await.map_err(|error: std::io::Error| match error.kind() {
            std::io::ErrorKind::AddrInUse => BindError::InUse(address),
            std::io::ErrorKind::PermissionDenied => BindError::NotAllowed(address),
            std::io::ErrorKind::AddrNotAvailable => BindError::NotOurs(address),
            _ => BindError::Other(address, error),
        })?;
        Ok(Server { listener, address, limits })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` completes; then takes no further request, and lets those under way end for at most `grace`.
    pub async fn serve(self, service: impl Into<Entrance>, stop: impl Future<Output = ()>, grace: Duration) {
        let Server { listener, limits, .. } = self;
        let service: Entrance = service.into();
        let limits = Arc::new(limits);
        let slots = Arc::new(Semaphore::new(limits.connections_max));
        let (stopping, stopping_seen) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok((stream, peer)) => (stream, PeerAddress(peer)),
                Err(error) => {
                    tracing::warn!(event = log::HTTP_ACCEPT_FAILED, %error, "accepting a connection failed; trying again");
                    tokio::time::sleep(ACCEPT_BACK_OFF).await;
                    continue;
                }
            };
            let Ok(slot) = slots.clone().try_acquire_owned() else {
                refuse(&stream);
                continue;
            };
            let (service, limits, stopping) = (service.clone(), limits.clone(), stopping_seen.clone());
            connections.spawn(async move {
                connection(stream, peer, service, &limits, stopping).await;
                drop(slot);
            });
        }
        drop(listener);
        // Every task holds a receiver, so this fails only when there is none left to tell.
        let _ = stopping.send(true);
        let ended = tokio::time::timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!(
                event = log::HTTP_CUT_OFF,
                left = connections.len(),
                "requests did not end within the grace time and are cut off"
            );
            connections.shutdown().await;
        }
    }
}

/// Full: says so if the socket takes it at once, and never waits for the caller.
fn refuse(stream: &TcpStream) {
    const BODY: &str = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"the server has as many connections as it takes (`connections_max`)"}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    let _ = stream.try_write(answer.as_bytes());
}

async fn connection(
    stream: TcpStream,
    peer: PeerAddress,
    service: Entrance,
    limits: &ServerLimits,
    mut stopping: watch::Receiver<bool>,
) {
    // Answers are small and whole: waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let patience = Arc::new(Patience::new(limits.head_timeout, limits.idle_timeout, limits.write_timeout));
    let stream = PatientStream::new(stream, patience.clone());
    let handler = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        answer(service.service(), request, InService::begin(patience.clone()))
    });
    let mut connection = hyper::server::conn::http1::Builder::new()
        // Waiting for a head is bounded by the stream itself, which tells an idle connection from a slow head.
        .header_read_timeout(None)
        .max_headers(limits.headers_max)
        .max_buf_size(limits.head_bytes_max)
        .serve_connection(TokioIo::new(stream), handler);
    let mut told_to_stop = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = poll_fn(|context| connection.poll_without_shutdown(context)) => break ended,
            _ = stopping.wait_for(|stop| *stop), if !told_to_stop => {
                told_to_stop = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(event = log::HTTP_CONNECTION_ENDED, %error, "a connection ended with an error");
    }
    let at_most = if told_to_stop { limits.linger.min(LINGER_WHEN_STOPPING) } else { limits.linger };
    linger(connection.into_parts().io.into_inner().into_inner(), at_most).await;
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

fn answer(service: Router, request: Request<Incoming>, in_service: InService) -> Answer {
    Box::pin(async move {
        let (request, leftover) = leftover::lend(request);
        let handled = std::panic::AssertUnwindSafe(service.oneshot(request)).catch_unwind().await;
        let response = match handled {
            Ok(Ok(response)) => response,
            Err(_) => {
                tracing::error!(
                    event = log::HTTP_HANDLER_PANICKED,
                    "a request handler panicked; the request was answered 500"
                );
                axum::response::IntoResponse::into_response(Problem::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "something failed on our side; the server goes on",
                ))
            }
        };
        let response = leftover.settled(response).await;
        Ok(response.map(|body| in_service.until_sent(body)))
    })
}

/// Ends our side first and reads on for a moment: closing with unread bytes would reset the connection, and the caller would lose the answer.
async fn linger(mut stream: TcpStream, at_most: Duration) {
    let _ = tokio::time::timeout(at_most, async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let mut scratch = vec![0; 16 << 10];
        let mut left = LINGER_BYTES_MAX;
        while let Ok(read) = stream.read(&mut scratch).await {
            if read == 0 || read >= left {
                return;
            }
            left -= read;
        }
    })
    .await;
}
