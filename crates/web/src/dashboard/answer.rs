//! What leaves the dashboard: pages and redirects, with headers that keep them safe. It must not know what a page shows.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, StatusCode};

use super::fault::Fault;

/// Nothing but our own files; no script or style within a page; nobody frames us.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// A page as it is shown.
pub fn page(template: &impl Template) -> Result<Response, Fault> {
    page_with(StatusCode::OK, template)
}

/// The same with another status: a form that is shown again with what was wrong.
pub fn page_with(status: StatusCode, template: &impl Template) -> Result<Response, Fault> {
    let text = template.render().map_err(|_| Fault::broken("a page could not be made"))?;
    Ok(html(status, text))
}

pub fn html(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], text).into_response()
}

/// To a page, to be fetched by GET.
pub fn redirect(way: &str) -> Response {
    let location = HeaderValue::from_str(way).unwrap_or(HeaderValue::from_static("/ui"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

#[must_use]
pub fn with_cookie(mut response: Response, cookie: HeaderValue) -> Response {
    response.headers_mut().append(SET_COOKIE, cookie);
    response
}

pub fn with_safe_headers(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    // Health data stays in no cache.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
