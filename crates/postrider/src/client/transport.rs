//! One HTTP exchange with the server: JSON or bytes out, JSON or bytes back, a refusal read into a `Problem`.
//!
//! It must not know what any path means.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{ClientError, Problem};

/// How long a TCP connection to the server may take; an answer may take as long as the call behind it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What goes out.
pub struct Content {
    pub kind: &'static str,
    pub bytes: Bytes,
    pub headers: Vec<(&'static str, String)>,
}

#[derive(Clone)]
pub struct Transport {
    server: String,
    authorization: HeaderValue,
    way: Way,
}

/// How a request gets to its server.
#[derive(Clone)]
enum Way {
    Network(HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>),
    /// The server's own routes, in this process.
    InProcess(Arc<dyn Routes>),
}

/// A server in this process.
pub trait Routes: Send + Sync {
    fn answer(&self, request: Request<Full<Bytes>>) -> BoxedAnswer;
}

/// The answer with all of its body, or why there is none.
pub type BoxedAnswer = Pin<Box<dyn Future<Output = Result<Response<Bytes>, String>> + Send>>;

impl std::fmt::Debug for Transport {
    /// Never shows the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Transport {
    /// `ca_path`: a PEM file of authorities to trust in place of the public ones and the system's.
    pub fn new(server: &str, key: &str, ca_path: Option<&str>) -> Result<Transport, ClientError> {
        let server = server.trim_end_matches('/').to_owned();
        check_server(&server)?;
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let tls = postrider_wire::tls::trusting(ca_path);
        let tls = tls.map_err(|reason| ClientError::BadSetting { what: "the file of authorities".into(), reason })?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let http = HyperClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector.wrap_connector(tcp));
        Ok(Transport { server, authorization: authorization(key)?, way: Way::Network(http) })
    }

    pub fn in_process(name: &str, key: &str, routes: Arc<dyn Routes>) -> Result<Transport, ClientError> {
        Ok(Transport { server: name.to_owned(), authorization: authorization(key)?, way: Way::InProcess(routes) })
    }

    pub fn server(&self) -> &str {
        &self.server
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.act(Method::GET, path).await
    }

    /// With a JSON body out and one back.
    pub async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| ClientError::BadSetting { what: "the request".into(), reason: error.to_string() })?;
        let body = Content { kind: "application/json", bytes: body.into(), headers: Vec::new() };
        let bytes = self.exchange(method, path, Some(body)).await?;
        self.read(&bytes)
    }

    /// With any content out and JSON back.
    pub async fn content<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content: Content,
    ) -> Result<T, ClientError> {
        let bytes = self.exchange(method, path, Some(content)).await?;
        self.read(&bytes)
    }

    /// With nothing out and JSON back.
    pub async fn act<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, ClientError> {
        let bytes = self.exchange(method, path, None).await?;
        self.read(&bytes)
    }

    /// Where the answer has no content that matters.
    pub async fn bare(&self, method: Method, path: &str) -> Result<(), ClientError> {
        self.exchange(method, path, None).await.map(drop)
    }

    pub async fn bytes(&self, path: &str) -> Result<Bytes, ClientError> {
        self.exchange(Method::GET, path, None).await
    }

    async fn exchange(&self, method: Method, path: &str, content: Option<Content>) -> Result<Bytes, ClientError> {
        let (status, _, bytes) = self.ask(method, path, content).await?;
        if status.is_success() { Ok(bytes) } else { Err(ClientError::Refused(Box::new(problem(status, &bytes)))) }
    }

    /// The answer as it is, whatever its status.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        content: Option<Content>,
    ) -> Result<(StatusCode, HeaderMap, Bytes), ClientError> {
        let base = match self.way {
            Way::Network(_) => self.server.as_str(),
            Way::InProcess(_) => "",
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(http::header::AUTHORIZATION, self.authorization.clone());
        let mut body = Bytes::new();
        if let Some(Content { kind, bytes, headers }) = content {
            request = request.header(http::header::CONTENT_TYPE, kind);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            body = bytes;
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| ClientError::BadSetting { what: format!("`{path}`"), reason: error.to_string() })?;
        let answer = match &self.way {
            Way::Network(http) => {
                let answer = http.request(request).await.map_err(|error| self.unreachable(&error))?;
                let (head, body) = answer.into_parts();
                let bytes = body.collect().await.map_err(|error| self.unreachable(&error))?.to_bytes();
                Response::from_parts(head, bytes)
            }
            Way::InProcess(routes) => {
                let unreachable = |reason| ClientError::Unreachable { server: self.server.clone(), reason };
                routes.answer(request).await.map_err(unreachable)?
            }
        };
        let (head, bytes) = answer.into_parts();
        Ok((head.status, head.headers, bytes))
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(bytes)
            .map_err(|error| ClientError::Unreadable { server: self.server.clone(), reason: error.to_string() })
    }

    /// The innermost reason is the one that helps: "connection refused", not "client error (Connect)".
    fn unreachable(&self, error: &dyn std::error::Error) -> ClientError {
        let mut innermost = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        ClientError::Unreachable { server: self.server.clone(), reason: innermost.to_string() }
    }
}

fn authorization(key: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| ClientError::BadSetting {
        what: "the key".into(),
        reason: "it holds characters that a header cannot".into(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn check_server(server: &str) -> Result<(), ClientError> {
    let refuse = |reason: &str| {
        Err(ClientError::BadSetting { what: format!("the server address `{server}`"), reason: reason.to_owned() })
    };
    let Ok(uri) = server.parse::<Uri>() else { return refuse("it is no URL") };
    match uri.scheme_str() {
        Some("http" | "https") => {}
        _ => return refuse("it must begin with http:// or https://"),
    }
    if uri.host().is_none_or(str::is_empty) || uri.path() != "/" || uri.query().is_some() {
        return refuse("it must be http://HOST:PORT or https://HOST:PORT and nothing more");
    }
    Ok(())
}

/// A refusal that is no problem document (a proxy's page, say) is told by its status alone.
fn problem(status: StatusCode, bytes: &[u8]) -> Problem {
    let mut problem: Problem = serde_json::from_slice(bytes).unwrap_or_default();
    problem.status = status.as_u16();
    if problem.title.is_empty() {
        problem.title = format!("the server answered {status}");
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_work_is_refused_before_anything_is_sent() {
        for bad in ["127.0.0.1:8080", "http://", "http://a/x", "http://a?b", "ftp://a", "not a url"] {
            assert!(matches!(check_server(bad), Err(ClientError::BadSetting { .. })), "{bad}");
        }
        assert!(check_server("http://localhost:8080").is_ok() && check_server("https://localhost").is_ok());
        assert!(Transport::new("http://a", "line\nbreak", None).is_err());
        assert!(Transport::new("https://a", "k", Some("/nowhere/at/all")).is_err());
    }

    #[test]
    fn the_key_never_shows_in_debug_output() {
        let transport = Transport::new("http://a", "very-secret", None).unwrap();
        assert!(!format!("{transport:?}").contains("very-secret"));
    }

    #[test]
    fn a_refusal_without_a_problem_document_still_says_something() {
        let problem = problem(StatusCode::BAD_GATEWAY, b"<html>");
        assert_eq!((problem.status, problem.to_string().as_str()), (502, "the server answered 502 Bad Gateway"));
    }
}
