//! One keep-alive connection to an HTTP server, as bare as hyper has it: what callers, the direct call and the bare client use.
//!
//! It must not know what the requests mean.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::failure::Failure;

/// The key that the server is started with.
pub const KEY: &str = "benchmark-key-of-32-characters-xx";

pub struct Peer {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    bearer: HeaderValue,
}

impl Peer {
    /// Connects and drives the connection on the runtime that this is called on.
    pub async fn connect(address: SocketAddr) -> Result<Peer, Failure> {
        let lost = |error: &dyn std::fmt::Display| Failure::new(format!("connecting to {address}: {error}"));
        let stream = TcpStream::connect(address).await.map_err(|error| lost(&error))?;
        stream.set_nodelay(true).map_err(|error| lost(&error))?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
        tokio::spawn(connection);
        let host = HeaderValue::from_str(&address.to_string()).expect("an address is visible ASCII");
        let bearer = HeaderValue::from_str(&format!("Bearer {KEY}")).expect("the key is visible ASCII");
        Ok(Peer { sender, host, bearer })
    }

    /// Sends a POST and reads the answer's status; the answer's body is read and dropped.
    pub async fn post(&mut self, uri: &Uri, kind: &'static str, body: Bytes) -> Result<StatusCode, Failure> {
        let mut answer = self.ask(Method::POST, uri, kind, body).await?;
        let status = answer.status();
        while let Some(frame) = answer.body_mut().frame().await {
            frame.map_err(|error| Failure::new(format!("reading an answer of {uri}: {error}")))?;
        }
        Ok(status)
    }

    /// Sends a request and keeps the answer.
    pub async fn call(&mut self, method: Method, uri: &Uri, body: Bytes) -> Result<(StatusCode, Bytes), Failure> {
        let mut answer = self.ask(method, uri, "application/json", body).await?;
        let status = answer.status();
        let mut kept = BytesMut::new();
        while let Some(frame) = answer.body_mut().frame().await {
            let frame = frame.map_err(|error| Failure::new(format!("reading an answer of {uri}: {error}")))?;
            kept.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
        Ok((status, kept.freeze()))
    }

    async fn ask(
        &mut self,
        method: Method,
        uri: &Uri,
        kind: &'static str,
        body: Bytes,
    ) -> Result<http::Response<hyper::body::Incoming>, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(AUTHORIZATION, self.bearer.clone());
        headers.insert::<HeaderName>(CONTENT_TYPE, HeaderValue::from_static(kind));
        let failed = |error: hyper::Error| Failure::new(format!("calling {uri}: {error}"));
        self.sender.ready().await.map_err(failed)?;
        self.sender.send_request(request).await.map_err(failed)
    }
}
