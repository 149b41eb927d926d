//! JSON with its numbers as they were written and its names in their order, which XML needs and a map of floating-point numbers does not keep.
//!
//! Linear in the text, at most `DEPTH_MAX` deep. This module must not know what the values become.

use std::borrow::Cow;

use super::xml;

/// Levels of objects and lists; what they become has to fit into an envelope.
pub const DEPTH_MAX: usize = xml::DEPTH_MAX - 4;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'t> {
    Null,
    /// `true`, `false` or a number, as written.
    Bare(&'t str),
    Text(Cow<'t, str>),
    List(Vec<Json<'t>>),
    /// In the order of the text; a name may come twice.
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

/// # Errors
/// In words that continue "it is …".
pub(super) fn read(text: &str) -> Result<Json<'_>, String> {
    // Says where the fault is, and leaves nothing to check below but the depth.
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| format!("no JSON: {error}"))?;
    Scanner { rest: text }
        .value(0)
        .ok_or_else(|| format!("JSON of more than {DEPTH_MAX} levels, or with a text that is no Unicode"))
}

/// Walks over text that is known to be JSON.
struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    /// `None` only where it is too deep.
    fn value(&mut self, depth: usize) -> Option<Json<'t>> {
        if depth > DEPTH_MAX {
            return None;
        }
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => self.string().map(Json::Text),
            _ => {
                let end = self.rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at(end);
                self.rest = rest;
                Some(if word == "null" { Json::Null } else { Json::Bare(word) })
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json<'t>> {
        let mut members = Vec::new();
        self.step();
        while self.peek()? != b'}' {
            let name = self.string()?;
            self.peek()?;
            self.step();
            members.push((name, self.value(depth + 1)?));
            if self.peek()? == b',' {
                self.step();
            }
        }
        self.step();
        Some(Json::Object(members))
    }

    fn list(&mut self, depth: usize) -> Option<Json<'t>> {
        let mut entries = Vec::new();
        self.step();
        while self.peek()? != b']' {
            entries.push(self.value(depth + 1)?);
            if self.peek()? == b',' {
                self.step();
            }
        }
        self.step();
        Some(Json::List(entries))
    }

    fn string(&mut self) -> Option<Cow<'t, str>> {
        self.peek()?;
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while *bytes.get(end)? != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let (literal, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        let inside = &literal[1..end];
        match inside.contains('\\') {
            false => Some(Cow::Borrowed(inside)),
            true => serde_json::from_str(literal).ok().map(Cow::Owned),
        }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.bytes().next()
    }

    fn step(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_order_stay_as_they_were_written() {
        let text = " {\"b\" : [ 1.50, 12345678901234567890123 ,true], \"a\\u00e4\":null,\"b\":\"x\\n\", \"o\":{ }, \"l\":[] } ";
        let Json::Object(members) = read(text).unwrap() else { panic!() };
        let names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["b", "aä", "b", "o", "l"]);
        let numbers = vec![Json::Bare("1.50"), Json::Bare("12345678901234567890123"), Json::Bare("true")];
        assert_eq!(members[0].1, Json::List(numbers));
        assert_eq!(members[1].1, Json::Null);
        assert_eq!(members[2].1, Json::Text("x\n".into()));
        assert_eq!(members[3].1, Json::Object(Vec::new()));
        assert_eq!(members[4].1, Json::List(Vec::new()));
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_refused() {
        for bad in ["", "{", "{\"a\":}", "[1,]", "{\"a\":1}x", "\"\\ud800\""] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&deep(DEPTH_MAX)).is_ok());
        assert!(read(&deep(DEPTH_MAX + 2)).is_err());
        assert!(read(&deep(1_000_000)).is_err());
    }
}
