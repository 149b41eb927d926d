//! `/openapi.json` and `/docs`: the API described by itself, to anybody. There is nothing of the installation in it.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use serde_json::Value;

use super::table;
use crate::openapi::{document, page};

/// Made once, when it is first asked for.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&table::routes().finish().1));
static PAGE: LazyLock<String> = LazyLock::new(|| page::page(&DOCUMENT));
static TEXT: LazyLock<String> = LazyLock::new(|| DOCUMENT.to_string());

/// The OpenAPI document of this build.
pub fn openapi_document() -> &'static Value {
    &DOCUMENT
}

pub async fn openapi() -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], TEXT.as_str()).into_response()
}

/// The same for people.
pub async fn page() -> Response {
    let mut response = PAGE.as_str().into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

pub async fn style() -> Response {
    let mut response = page::STYLE.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
