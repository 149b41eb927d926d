//! A query string, taken apart by name; what nobody took is refused.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use postrider_core::Timestamp;
use postrider_core::connection::ConnectionKind;
pub use postrider_store::PAGE_ROWS_MAX;
use postrider_store::PageRequest;

use crate::problem::{Problem, clipped};

/// Rows of a page when the caller does not say.
pub const PAGE_ROWS_DEFAULT: u32 = 50;
/// A cursor may hold a name: 200 characters of up to four bytes, escaped or encoded by its store.
const CURSOR_BYTES_MAX: usize = 2048;

#[derive(Debug)]
pub struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Query::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl Query {
    /// Takes apart what stands behind the `?`. What is no UTF-8 once it is decoded is marked as such and matches nothing.
    pub fn parse(text: &str) -> Query {
        let decode = |text: &str| {
            let text = text.replace('+', " ");
            percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Query(pairs.collect())
    }

    /// Of names and values that came in another way.
    pub fn of_pairs(pairs: Vec<(String, String)>) -> Query {
        Query(pairs)
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// One value; a second one of the same name is left and so refused.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// All values of a name, each of which may hold several with commas between.
    pub fn take_all(&mut self, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        while let Some(value) = self.take(name) {
            values.extend(value.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned));
        }
        values
    }

    pub fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(given) => Err(bad(name, given, "true or false")),
        }
    }

    pub fn time(&mut self, name: &str) -> Result<Option<Timestamp>, Problem> {
        let Some(given) = self.take(name) else { return Ok(None) };
        let allowed = "an RFC 3339 time such as 2026-03-12T12:05:34Z (write the + of an offset as %2B)";
        Timestamp::parse_rfc3339(&given).map(Some).ok_or_else(|| bad(name, &given, allowed))
    }

    /// `?type=` where a name alone is ambiguous (D16).
    pub fn kind(&mut self) -> Result<Option<ConnectionKind>, Problem> {
        let Some(given) = self.take("type") else { return Ok(None) };
        ConnectionKind::parse(&given).map(Some).ok_or_else(|| bad("type", &given, KINDS))
    }

    /// `limit` and `cursor`.
    pub fn page(&mut self) -> Result<PageRequest, Problem> {
        let limit = match self.take("limit") {
            None => PAGE_ROWS_DEFAULT,
            Some(given) => given
                .parse()
                .ok()
                .filter(|limit| (1..=PAGE_ROWS_MAX).contains(limit))
                .ok_or_else(|| bad("limit", &given, &format!("a whole number from 1 to {PAGE_ROWS_MAX}")))?,
        };
        let cursor = self.take("cursor").filter(|cursor| !cursor.is_empty());
        if cursor.as_ref().is_some_and(|cursor| cursor.len() > CURSOR_BYTES_MAX) {
            return Err(crate::problem::bad_cursor());
        }
        Ok(PageRequest { limit, cursor })
    }

    /// Ends the reading: a parameter that nobody took is refused by name.
    pub fn finish(self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::bad_request(
                clipped(name),
                format!("`{}` is not a parameter here, or is there twice", clipped(name)),
                "the parameters of this path, each once",
            )),
        }
    }
}

/// The kinds of connections, as people write them.
const KINDS: &str = ConnectionKind::ALLOWED;

fn bad(name: &str, given: &str, allowed: &str) -> Problem {
    Problem::bad_request(name, format!("`{name}` is `{}`: allowed is {allowed}", clipped(given)), allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(problem: Problem) -> String {
        problem.to_json()["errors"][0]["field"].as_str().unwrap().to_owned()
    }

    #[test]
    fn pages_have_bounds() {
        let page = |text| Query::parse(text).page();
        assert_eq!(page("").unwrap().limit, 50);
        assert_eq!(page("limit=1000&cursor=x").unwrap(), PageRequest { limit: 1000, cursor: Some("x".into()) });
        for text in ["limit=0", "limit=1001", "limit=-1", "limit=ten", "limit=", "limit=99999999999"] {
            assert_eq!(field(page(text).unwrap_err()), "limit", "{text}");
        }
        assert_eq!(field(page(&format!("cursor={}", "x".repeat(2049))).unwrap_err()), "cursor");
    }

    #[test]
    fn what_nobody_takes_is_refused() {
        let mut query = Query::parse("a=1&a=2&%C3%A4+b=%ff");
        assert_eq!(query.take("a").as_deref(), Some("1"));
        assert_eq!(query.take("ä b").as_deref(), Some("\u{fffd}"));
        assert_eq!(field(query.finish().unwrap_err()), "a");
    }

    #[test]
    fn times_flags_and_kinds_are_told_apart() {
        let mut query = Query::parse("from=2026-03-12T14:05:34%2B02:00&force=maybe&type=ftp&bad=yesterday");
        assert_eq!(query.time("from").unwrap().unwrap().to_string(), "2026-03-12T12:05:34.000Z");
        assert_eq!(field(query.flag("force").unwrap_err()), "force");
        assert_eq!(field(query.kind().unwrap_err()), "type");
        assert_eq!(field(query.time("bad").unwrap_err()), "bad");
    }
}
