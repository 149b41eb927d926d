//! `/openapi.json`: the API described by itself, to anybody. There is nothing of the installation in it.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::table;
use crate::openapi::document;

/// Made once, when it is first asked for.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&table::routes().finish().1));
static TEXT: LazyLock<String> = LazyLock::new(|| DOCUMENT.to_string());

/// The OpenAPI document of this build.
pub fn openapi_document() -> &'static Value {
    &DOCUMENT
}

pub async fn openapi() -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], TEXT.as_str()).into_response()
}
