//! The address of a channel: literal segments and `{placeholders}`, matched against the path of a request (Z40, D16).
//!
//! Segments are compared as they decode, one by one, so that no other way of writing an address reaches another channel. It must not know what
//! methods a channel takes.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::path_template::PathTemplate;

/// First segments that are the server's own (D16).
pub const RESERVED: [&str; 7] = ["api", "health", "metrics", "docs", "openapi.json", "ingress", "ui"];
/// Segments of one address, at most; a request with more is no channel's.
pub const SEGMENTS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelPath {
    written: String,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// As it decodes.
    Literal(String),
    Placeholder(String),
}

impl ChannelPath {
    /// Reads `/orders/{id}`.
    ///
    /// # Errors
    /// What is allowed instead, in words that continue "allowed is …".
    pub fn parse(text: &str) -> Result<ChannelPath, String> {
        let template = PathTemplate::parse(text).map_err(|error| format!("a path: {error}"))?;
        let Some(rest) = text.strip_prefix('/') else { return Err("a path that begins with `/`".to_owned()) };
        let segments = rest.split('/').map(Segment::parse).collect::<Result<Vec<_>, _>>()?;
        if segments.len() > SEGMENTS_MAX {
            return Err(format!("a path of at most {SEGMENTS_MAX} segments"));
        }
        if let Some(Segment::Literal(first)) = segments.first()
            && RESERVED.contains(&first.as_str())
        {
            return Err(format!("a path that does not begin with one of the server's own: /{}", RESERVED.join(", /")));
        }
        // A placeholder there would stand for the server's own addresses too.
        if matches!(segments.first(), Some(Segment::Placeholder(_))) {
            return Err("a path whose first segment is no placeholder".to_owned());
        }
        Ok(ChannelPath { written: template.as_str().to_owned(), segments })
    }

    pub fn as_str(&self) -> &str {
        &self.written
    }

    pub fn is_literal(&self) -> bool {
        self.segments.iter().all(|segment| matches!(segment, Segment::Literal(_)))
    }

    pub fn segments_count(&self) -> usize {
        self.segments.len()
    }

    /// The literal segments as they decode; those of a literal path are its key.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Literal(text) => Some(text.as_str()),
            Segment::Placeholder(_) => None,
        })
    }

    /// What the placeholders stand for in a request's path, in their order; `None`: it is another address.
    pub fn match_segments(&self, path: &[Cow<'_, str>]) -> Option<Vec<(String, String)>> {
        if path.len() != self.segments.len() {
            return None;
        }
        let mut params = Vec::new();
        for (segment, given) in self.segments.iter().zip(path) {
            match segment {
                Segment::Literal(literal) if *literal == **given => {}
                // Servers and proxies behind may take a segment of dots for a step up (RFC 3986, section 5.2.4).
                Segment::Placeholder(name) if !["", ".", ".."].contains(&&**given) => {
                    params.push((name.clone(), given.to_string()))
                }
                Segment::Literal(_) | Segment::Placeholder(_) => return None,
            }
        }
        Some(params)
    }

    /// Whether the two differ in nothing but the names of placeholders.
    pub fn has_shape_of(&self, other: &ChannelPath) -> bool {
        let same = |(ours, theirs): (&Segment, &Segment)| match (ours, theirs) {
            (Segment::Literal(ours), Segment::Literal(theirs)) => ours == theirs,
            (Segment::Placeholder(_), Segment::Placeholder(_)) => true,
            _ => false,
        };
        self.segments.len() == other.segments.len() && self.segments.iter().zip(&other.segments).all(same)
    }

    /// Which of two addresses that fit the same request is meant: the one whose first difference is a literal. Lower goes first.
    pub fn order(&self) -> Vec<bool> {
        self.segments.iter().map(|segment| matches!(segment, Segment::Placeholder(_))).collect()
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Segment, String> {
        if let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            return Ok(Segment::Placeholder(name.to_owned()));
        }
        if text.contains(['{', '}']) {
            return Err(format!("a path whose placeholders are whole segments, unlike `{text}`"));
        }
        let decoded = percent_decode_str(text).decode_utf8();
        decoded.map(|text| Segment::Literal(text.into_owned())).map_err(|_| "a path in UTF-8".to_owned())
    }
}

/// The segments of a request's path, decoded. `None`: no channel has such an address.
pub fn segments_of(path: &str) -> Option<Vec<Cow<'_, str>>> {
    let rest = path.strip_prefix('/')?;
    if rest.bytes().filter(|byte| *byte == b'/').count() >= SEGMENTS_MAX {
        return None;
    }
    rest.split('/').map(|segment| percent_decode_str(segment).decode_utf8().ok()).collect()
}

/// Whether a path is the server's own and so no channel's.
pub fn is_reserved(path: &str) -> bool {
    let first = path.strip_prefix('/').unwrap_or(path).split('/').next().unwrap_or_default();
    let first = percent_decode_str(first).decode_utf8_lossy();
    RESERVED.contains(&&*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matched(template: &str, path: &str) -> Option<Vec<(String, String)>> {
        ChannelPath::parse(template).unwrap().match_segments(&segments_of(path)?)
    }

    #[test]
    fn z40_a_path_is_matched_segment_by_segment() {
        let pairs =
            |pairs: &[(&str, &str)]| Some(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect());
        assert_eq!(matched("/orders/{id}", "/orders/17"), pairs(&[("id", "17")]));
        assert_eq!(matched("/orders/{id}", "/orders/a%2Fb"), pairs(&[("id", "a/b")]), "it stays in its segment");
        assert_eq!(matched("/orders/{id}/lines/{n}", "/orders/1/lines/2"), pairs(&[("id", "1"), ("n", "2")]));
        assert_eq!(matched("/orders", "/%6Frders"), pairs(&[]));
        assert_eq!(matched("/gr%C3%BC%C3%9Fe", "/gr%c3%bc%c3%9fe"), pairs(&[]));
        assert_eq!(matched("/", "/"), pairs(&[]));
        for (template, path) in [
            ("/orders/{id}", "/orders/"),
            ("/orders/{id}", "/orders"),
            ("/orders/{id}", "/orders/%2e."),
            ("/orders/{id}", "/orders/1/2"),
            ("/orders", "/orders/"),
            ("/orders", "/ORDERS"),
            ("/orders/{id}", "/orders/%ff"),
            ("/", ""),
        ] {
            assert_eq!(matched(template, path), None, "{template} {path}");
        }
    }

    #[test]
    fn d16_the_servers_own_addresses_are_nobody_elses() {
        for reserved in ["/api", "/api/v1/orders", "/%61pi/x", "/ui/{x}", "/openapi.json", "/{any}", "/{a}/b"] {
            assert!(ChannelPath::parse(reserved).is_err(), "{reserved}");
        }
        for refused in ["", "orders", "/a-{b}", "/{a", "/a/../b", "/a?b", "/%ff"] {
            assert!(ChannelPath::parse(refused).is_err(), "{refused}");
        }
        for allowed in ["/", "/apis", "/orders/api", "/API", "/a/{b}/"] {
            assert!(ChannelPath::parse(allowed).is_ok(), "{allowed}");
        }
        assert!(is_reserved("/%61pi/x") && is_reserved("/health") && !is_reserved("/") && !is_reserved("/apis"));
    }

    #[test]
    fn what_is_literal_goes_first() {
        let order = |text| ChannelPath::parse(text).unwrap().order();
        assert!(order("/a/b/{c}") < order("/a/{b}/c"));
        assert!(order("/a/b") < order("/a/{b}"));
    }

    proptest! {
        /// Whatever stands for a placeholder comes out as it went in, and no path that is the server's own fits any channel.
        #[test]
        fn z40_a_value_comes_back_whole(value in "\\PC{1,20}") {
            // Steps up and down are no values.
            prop_assume!(value != "." && value != "..");
            let escaped = percent_encoding::utf8_percent_encode(&value, percent_encoding::NON_ALPHANUMERIC).to_string();
            let found = matched("/orders/{id}/x", &format!("/orders/{escaped}/x")).unwrap();
            prop_assert_eq!(found, vec![("id".to_owned(), value)]);
        }

        #[test]
        fn d16_no_channel_is_where_the_server_is(template in "/[a-z%0-9{}/.]{0,12}", rest in "[a-z0-9/%]{0,12}", first in 0usize..7) {
            let path = format!("/{}/{rest}", RESERVED[first]);
            if let (Ok(channel), Some(segments)) = (ChannelPath::parse(&template), segments_of(&path)) {
                prop_assert_eq!(channel.match_segments(&segments), None);
            }
        }
    }
}
