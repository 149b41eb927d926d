//! A form as it was sent, its token checked by the door. It must not know what a form is for.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::board::Board;
use super::fault::Fault;

/// The fields of a form, in the order in which they were sent.
#[derive(Debug, Default)]
pub struct Posted(Vec<(String, String)>);

impl Posted {
    /// Takes apart `application/x-www-form-urlencoded`. Lines end in `\n`, however the browser sent them.
    pub fn parse(bytes: &[u8]) -> Posted {
        let decode = |text: &[u8]| {
            let text: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
            percent_encoding::percent_decode(&text).decode_utf8_lossy().replace("\r\n", "\n")
        };
        let pairs = bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            (decode(&pair[..at]), decode(pair.get(at + 1..).unwrap_or_default()))
        });
        Posted(pairs.collect())
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The same without blanks around, and nothing for an empty one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Whether a box is ticked.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "on" || value == "true")
    }

    /// All values of a name, as a list of boxes sends them.
    pub fn all<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Where to go when it is done: a path of ours, else `otherwise`.
    pub fn way_back(&self, otherwise: &str) -> String {
        safe_way(self.get("back").unwrap_or_default()).unwrap_or(otherwise).to_owned()
    }
}

/// A longer way is none of ours, and a header that long is refused by clients.
const WAY_BYTES_MAX: usize = 2048;

/// A way that stays in the dashboard; anything else would send people elsewhere.
pub fn safe_way(way: &str) -> Option<&str> {
    let is_ours = way == "/ui" || way.starts_with("/ui/") || way.starts_with("/ui?");
    let is_short = way.len() <= WAY_BYTES_MAX;
    let climbs = way.split(['/', '?', '#']).any(|segment| segment == ".." || segment == ".");
    let is_plain = way.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    (is_ours && is_plain && is_short && !climbs).then_some(way)
}

impl FromRequestParts<Board> for Form {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Board) -> Result<Self, Fault> {
        let posted = parts.extensions.get::<Arc<Posted>>().cloned();
        posted.map(Form).ok_or_else(|| Fault::broken("a form was not read"))
    }
}

/// The form of a request.
pub struct Form(pub Arc<Posted>);

impl std::ops::Deref for Form {
    type Target = Posted;
    fn deref(&self) -> &Posted {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_lines_end_in_one_way() {
        let posted = Posted::parse(b"a=1+2&b=%C3%A4%26%3D&b=x&text=l1%0D%0Al2&box=on&bare&=v&&blank=++");
        assert_eq!(posted.get("a"), Some("1 2"));
        assert_eq!(posted.all("b").collect::<Vec<_>>(), ["ä&=", "x"]);
        assert_eq!(posted.get("text"), Some("l1\nl2"));
        assert!(posted.is_on("box") && !posted.is_on("bare"));
        assert_eq!((posted.get("bare"), posted.text("blank"), posted.get("gone")), (Some(""), None, None));
    }

    #[test]
    fn a_way_back_stays_in_the_dashboard() {
        for way in ["/ui", "/ui/projects/p?x=1", "/ui?x"] {
            assert_eq!(safe_way(way), Some(way));
        }
        for way in [
            "",
            "/",
            "//elsewhere",
            "/ui\\elsewhere",
            "/uix",
            "https://elsewhere/ui",
            "/ui/\r\nx",
            "javascript:x",
            "/ui/../..//elsewhere",
            "/ui/.",
        ] {
            assert_eq!(safe_way(way), None, "{way}");
        }
        assert_eq!(safe_way(&format!("/ui/{}", "x".repeat(WAY_BYTES_MAX))), None);
    }
}
