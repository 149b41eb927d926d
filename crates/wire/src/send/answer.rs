//! What came back becomes an `Answer`: lossy where it must be, never unsafe to store or show.
//!
//! It must not know of sockets or limits.

use http::HeaderMap;
use postrider_core::Answer;
use postrider_core::message::HeaderList;

use super::link::ReadBody;

pub(super) fn answer(head: &http::response::Parts, body: ReadBody) -> Answer {
    Answer {
        status: Some(head.status.as_u16()),
        headers: header_list(&head.headers),
        said: None,
        body: body.bytes,
        incomplete: body.incomplete,
    }
}

/// Bytes that are no UTF-8 become U+FFFD and control characters go; a name is valid by construction.
fn header_list(map: &HeaderMap) -> HeaderList {
    let mut list = HeaderList::default();
    for (name, value) in map {
        let mut text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        if text.chars().any(|c| c != '\t' && c.is_control()) {
            text.retain(|c| c == '\t' || !c.is_control());
        }
        // What is left cannot be refused but for a name of more than 256 bytes, which is let go.
        let _ = list.push(name.as_str().to_owned(), text);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn odd_header_values_come_through_safely() {
        let mut map = HeaderMap::new();
        map.append("x-latin", HeaderValue::from_bytes(b"caf\xe9").unwrap());
        map.append("x-c1", HeaderValue::from_bytes("a\u{85}b\tc".as_bytes()).unwrap());
        map.append(HeaderName::from_bytes("n".repeat(300).as_bytes()).unwrap(), HeaderValue::from_static("v"));
        let list = header_list(&map);
        assert_eq!(list.get("x-latin"), Some("caf\u{fffd}"));
        assert_eq!(list.get("x-c1"), Some("ab\tc"));
        assert_eq!(list.len(), 2);
    }
}
