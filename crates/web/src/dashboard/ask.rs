//! Asks the API as anybody else does, within the process and on behalf of whoever is logged in.
//!
//! So a page can do nothing that the API does not allow the same person, and is refused in the same words. It must not know what is asked for.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt;
use postrider_core::log;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::gate::Caller;

/// Why the API did not do it.
#[derive(Clone, Debug)]
pub struct Refused {
    pub status: StatusCode,
    pub detail: String,
    pub errors: Vec<RefusedField>,
}

/// A field that was refused: what is wrong, and what is allowed.
#[derive(Clone, Debug, Deserialize)]
pub struct RefusedField {
    pub field: String,
    pub message: String,
    pub allowed: Option<String>,
    /// Of an imported file.
    pub line: Option<u64>,
}

impl RefusedField {
    /// In one sentence, with its line where there is one.
    pub fn told(&self) -> String {
        let place = self.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        super::fault::sentence(&format!("{place}{}", self.message))
    }
}

impl Refused {
    /// In a sentence, or one for each field that is wrong.
    pub fn told(&self) -> String {
        match self.errors.as_slice() {
            [] => super::fault::sentence(&self.detail),
            errors => errors.iter().map(RefusedField::told).collect::<Vec<_>>().join(" "),
        }
    }
}

#[derive(Deserialize)]
struct ProblemShape {
    #[serde(default)]
    detail: String,
    #[serde(default)]
    errors: Vec<RefusedField>,
}

/// The API on behalf of one caller.
#[derive(Clone)]
pub struct Api {
    router: Router,
    caller: Caller,
}

impl Api {
    pub fn new(router: Router, caller: Caller) -> Api {
        Api { router, caller }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refused> {
        self.ask(Method::GET, path, None).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Refused> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// An answer without content reads as null.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Refused> {
        let response = self.send(method, path, body).await?;
        let bytes = content(response).await?;
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(text).map_err(|error| {
            tracing::error!(event = log::PAGE_BROKEN, path, %error, "the dashboard cannot read an answer of the API");
            unreadable()
        })
    }

    /// The answer as it is, for bodies; a refusal is an error here too.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Response, Refused> {
        let mut request = Request::new(body.map_or(Body::empty(), |body| Body::from(body.to_string())));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| unreadable())?;
        if body.is_some() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        request.extensions_mut().insert(self.caller.clone());
        let Ok(response) = self.router.clone().oneshot(request).await;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let problem = serde_json::from_slice(&content(response).await?);
        let ProblemShape { detail, errors } = problem.unwrap_or(ProblemShape {
            detail: status.canonical_reason().unwrap_or("refused").to_owned(),
            errors: Vec::new(),
        });
        Err(Refused { status, detail, errors })
    }
}

/// The bytes of an answer.
pub async fn content(response: Response) -> Result<bytes::Bytes, Refused> {
    Ok(response.into_body().collect().await.map_err(|_| unreadable())?.to_bytes())
}

fn unreadable() -> Refused {
    Refused {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        detail: "something failed on our side; the server goes on".to_owned(),
        errors: Vec::new(),
    }
}
