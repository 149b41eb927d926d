//! Problems as RFC 9457 has them: `application/problem+json` with `type title status detail`, and `errors` that name fields.
//!
//! Details are written for callers. What failed inside (paths, SQL, panics) goes to the log and must not be known here.

use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use postrider_core::SettingError;
use postrider_core::access::ScopeSet;
use postrider_core::decide::Refused;
use postrider_core::log;
use postrider_engine::Refusal;
use postrider_store::StoreError;
use serde_json::{Map, Value, json};

/// How long a caller is asked to wait when we cannot take requests now.
const RETRY_AFTER_SECONDS: &str = "5";
/// Fields that one refusal names; a request could have thousands of wrong ones.
const ERRORS_MAX: usize = 100;

/// One field that was refused: what is wrong with it, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
    pub allowed: Option<String>,
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl Into<String>, allowed: impl Into<String>) -> Self {
        FieldError { field: field.into(), message: message.into(), allowed: Some(allowed.into()) }
    }
}

impl From<&SettingError> for FieldError {
    fn from(error: &SettingError) -> Self {
        FieldError::new(error.field.clone(), error.to_string(), &error.allowed)
    }
}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem(Box<Content>);

#[derive(Clone, Debug, PartialEq)]
struct Content {
    status: StatusCode,
    detail: String,
    errors: Vec<FieldError>,
    extensions: Map<String, Value>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem(Box::new(Content {
            status,
            detail: detail.into(),
            errors: Vec::new(),
            extensions: Map::new(),
            header: None,
        }))
    }

    /// 422: the request can be read, and these fields are refused.
    pub fn fields(mut errors: Vec<FieldError>) -> Self {
        let left_out = errors.len().saturating_sub(ERRORS_MAX);
        errors.truncate(ERRORS_MAX);
        let mut detail = errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ");
        if left_out > 0 {
            detail.push_str(&format!("; and {left_out} more"));
        }
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).naming(errors)
    }

    pub fn field(field: impl Into<String>, message: impl Into<String>, allowed: impl Into<String>) -> Self {
        Problem::fields(vec![FieldError::new(field, message, allowed)])
    }

    /// 400: a query parameter, header or path that makes no sense.
    pub fn bad_request(field: impl Into<String>, message: impl Into<String>, allowed: impl Into<String>) -> Self {
        let error = FieldError::new(field, message, allowed);
        Problem::new(StatusCode::BAD_REQUEST, error.message.clone()).naming(vec![error])
    }

    pub fn not_found(what: &str, name: &str) -> Self {
        let named = if name.is_empty() { what.to_owned() } else { format!("{what} `{}`", clipped(name)) };
        Problem::new(StatusCode::NOT_FOUND, format!("{named} does not exist"))
    }

    pub fn too_large(allowed: u64) -> Self {
        let detail = format!("the body is too large: at most {allowed} bytes are allowed (`body_bytes_max`)");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// The request around the body, with its escapes.
    pub fn request_too_large(allowed: u64) -> Self {
        let detail = format!(
            "the request is too large: at most {allowed} bytes are allowed (`request_bytes_max`); `body_base64` needs least for a body that JSON escapes"
        );
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 401 with its challenge, RFC 6750 section 3.
    pub fn unauthorized(presented: bool) -> Self {
        let (detail, challenge) = if presented {
            ("the key is not valid", r#"Bearer realm="postrider", error="invalid_token""#)
        } else {
            ("a key is needed: `Authorization: Bearer KEY` or `X-API-Key: KEY`", r#"Bearer realm="postrider""#)
        };
        Problem::new(StatusCode::UNAUTHORIZED, detail)
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// 403, RFC 6750 section 3.1: the key is valid and does not reach so far.
    pub fn forbidden(needed: ScopeSet, is_placed: bool) -> Self {
        let detail = if is_placed {
            format!("the key has too small a scope: {needed} is needed")
        } else {
            format!(
                "a key of a project does not reach so far: a key of the installation is needed, with the scope {needed}"
            )
        };
        // The header lists scopes with spaces between.
        let scopes = needed.to_string().replace(',', "");
        let challenge = format!(r#"Bearer realm="postrider", error="insufficient_scope", scope="{scopes}""#);
        let challenge = HeaderValue::from_str(&challenge);
        Problem::new(StatusCode::FORBIDDEN, detail)
            .with_header(WWW_AUTHENTICATE, challenge.unwrap_or(HeaderValue::from_static("Bearer")))
    }

    /// 503 that asks to come again.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            .with_header(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS))
    }

    /// A refusal that says in seconds when to come again.
    pub fn come_again(status: StatusCode, detail: impl Into<String>, seconds: HeaderValue) -> Self {
        Problem::new(status, detail).with_header(RETRY_AFTER, seconds)
    }

    #[must_use]
    fn naming(mut self, errors: Vec<FieldError>) -> Self {
        self.0.errors = errors;
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    /// A further member, RFC 9457 section 3.2.
    #[must_use]
    pub fn with_member(mut self, name: &str, value: Value) -> Self {
        self.0.extensions.insert(name.to_owned(), value);
        self
    }

    /// The same, of fields within this one.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        for error in &mut self.0.errors {
            error.field = format!("{field}.{}", error.field);
        }
        self
    }

    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The header that goes with it, if there is one.
    pub fn header(&self) -> Option<(&HeaderName, &HeaderValue)> {
        self.0.header.as_ref().map(|(name, value)| (name, value))
    }

    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    pub fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    pub fn to_json(&self) -> Value {
        let content = &self.0;
        let mut object = Map::new();
        object.insert("type".into(), "about:blank".into());
        object.insert("title".into(), content.status.canonical_reason().unwrap_or("Error").into());
        object.insert("status".into(), content.status.as_u16().into());
        object.insert("detail".into(), content.detail.clone().into());
        if !content.errors.is_empty() {
            let errors = content
                .errors
                .iter()
                .map(|error| json!({"field": error.field, "message": error.message, "allowed": error.allowed}))
                .collect();
            object.insert("errors".into(), Value::Array(errors));
        }
        object.extend(content.extensions.clone());
        Value::Object(object)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.to_json().to_string();
        let mut response = (self.0.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = self.0.header {
            headers.insert(name, value);
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound { what, name } => Problem::not_found(what, &name),
            Refusal::Invalid(errors) if errors.is_empty() => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the request is refused")
            }
            Refusal::Invalid(errors) => Problem::fields(errors.iter().map(FieldError::from).collect()),
            Refusal::Inactive(_) | Refusal::Conflict(_) => Problem::new(StatusCode::CONFLICT, refusal.to_string()),
            Refusal::TooLarge { .. } => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, refusal.to_string()),
            Refusal::OutcomeUnknown { msg_id } => Problem::new(StatusCode::CONFLICT, refusal.to_string())
                .with_member("code", "outcome_unknown".into())
                .with_member("msg_id", json!(msg_id)),
            Refusal::NotNow(refused) => {
                let code = match refused {
                    Refused::InFlight => "in_flight",
                    Refused::AlreadyDelivered => "already_delivered",
                    Refused::WrongStatus { .. } => "wrong_status",
                };
                Problem::new(StatusCode::CONFLICT, refusal.to_string()).with_member("code", code.into())
            }
            Refusal::Full { limit: "jobs_active_max" } => Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "this project has as many jobs under way as it may (`jobs_active_max`)",
            )
            .with_header(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS)),
            Refusal::TooMany { retry_after, .. } => {
                let seconds = retry_after.as_millis().div_ceil(1000).max(1);
                Problem::new(StatusCode::TOO_MANY_REQUESTS, refusal.to_string())
                    .with_header(RETRY_AFTER, HeaderValue::from(seconds))
            }
            Refusal::Full { .. } => Problem::new(StatusCode::INSUFFICIENT_STORAGE, refusal.to_string()),
            Refusal::Unavailable(why) => {
                tracing::warn!(
                    event = log::REQUEST_UNAVAILABLE,
                    why,
                    "a request was refused because the store is unavailable"
                );
                Problem::unavailable("the store is unavailable; nothing was stored")
            }
            Refusal::Stopping => Problem::unavailable("the server is stopping"),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            // What a store says of a cursor that it did not give.
            StoreError::NotFound { what: "page" | "cursor" } => bad_cursor(),
            other => Problem::from(Refusal::from(other)),
        }
    }
}

pub fn bad_cursor() -> Problem {
    Problem::bad_request("cursor", "`cursor` is not one that a list gave", "the `next_cursor` of the page before")
}

/// The answer to a path that nothing has.
pub fn nothing_here() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}

/// The answer to a method that the path does not have.
pub fn method_not_allowed(allowed: &str) -> Problem {
    let problem =
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not have this method; `Allow` names those it has");
    match HeaderValue::from_str(allowed) {
        Ok(value) => problem.with_header(ALLOW, value),
        Err(_) => problem,
    }
}

/// Enough of what a caller gave to recognise it.
pub fn clipped(given: &str) -> String {
    let mut text: String = given.chars().take(80).collect();
    if text.len() < given.len() {
        text.push('…');
    }
    text
}
