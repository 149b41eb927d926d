//! The variable segments of a path, percent-decoded; a `/` hidden in one is refused (D16).

use std::str::FromStr;

use axum::extract::FromRequestParts;
use http::request::Parts;
use postrider_core::id::DeliveryId;

use crate::problem::Problem;

/// The path of the route that a request is for, with its variables in braces. Whoever has matched it puts it into the request.
#[derive(Clone, Copy, Debug)]
pub struct Pattern(pub &'static str);

#[derive(Debug)]
pub struct Segments(Vec<(&'static str, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pattern = parts.extensions.get::<Pattern>().map_or("", |pattern| pattern.0);
        let mut segments = Vec::new();
        for (known, sent) in pattern.split('/').zip(parts.uri.path().split('/')) {
            if let Some(name) = known.strip_prefix('{').and_then(|known| known.strip_suffix('}')) {
                segments.push((name, decoded(name, sent)?));
            }
        }
        Ok(Segments(segments))
    }
}

impl Segments {
    /// # Errors
    /// 404 when it is no id: nothing has such a one.
    pub fn id<T: FromStr>(&self, name: &str, what: &str) -> Result<T, Problem> {
        let text = self.get(name);
        text.parse().map_err(|_| Problem::not_found(what, text))
    }

    /// Empty for a segment that the route does not have.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// One segment of a path as it was sent.
pub fn decoded(name: &str, segment: &str) -> Result<String, Problem> {
    let text = percent_encoding::percent_decode_str(segment).decode_utf8().ok();
    match text.filter(|text| !text.contains(['/', '\0'])) {
        Some(text) => Ok(text.into_owned()),
        None => {
            let message = format!("the `{name}` in the path is no UTF-8, or has a `/` or a NUL in it");
            Err(Problem::bad_request(name, message, "percent-encoded UTF-8 without `/` and NUL"))
        }
    }
}

/// What is not shaped like an id names no delivery: 404, as for any other that is not there.
pub fn delivery_id(text: &str) -> Result<DeliveryId, Problem> {
    text.parse().map_err(|_| Problem::not_found("delivery", text))
}
