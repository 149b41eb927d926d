//! Methods and header lists: what is taken can be sent, and no value becomes a line of its own.

use postrider_core::message::{HeaderList, Method};

/// The input is a method, and headers on the lines after it: `Name: value`.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let mut lines = text.split('\n');
    method_holds(lines.next().unwrap_or_default());
    let mut list = HeaderList::default();
    let mut taken: Vec<(String, String)> = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        let (name, value) = (crate::unescaped(name), crate::unescaped(value));
        let is_taken = is_token(&name) && name.len() <= 256 && !value.chars().any(is_unsafe);
        assert_eq!(list.push(name.clone(), value.clone()).is_ok(), is_taken, "{name:?}: {value:?}");
        if is_taken {
            // Another reading of the same RFC agrees.
            assert!(http::HeaderName::from_bytes(name.as_bytes()).is_ok(), "{name:?}");
            assert!(http::HeaderValue::from_bytes(value.as_bytes()).is_ok(), "{value:?}");
            taken.push((name, value));
        }
    }
    assert!(list.iter().eq(taken.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
    assert_eq!((list.len(), list.is_empty()), (taken.len(), taken.is_empty()));
    stands_on_its_lines(&list);
    for (name, _) in &taken {
        let first = taken.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
        assert_eq!(list.get(&name.to_ascii_uppercase()), first);
    }
    let stored = serde_json::to_string(&list).expect("texts are JSON");
    assert_eq!(serde_json::from_str::<HeaderList>(&stored).ok().as_ref(), Some(&list));
    if let Some((name, _)) = taken.first() {
        list.remove(&name.to_ascii_lowercase());
        let left = taken.iter().filter(|(known, _)| !known.eq_ignore_ascii_case(name)).count();
        assert_eq!((list.get(name), list.len()), (None, left));
    }
}

fn method_holds(text: &str) {
    let text = crate::unescaped(text);
    let read = text.parse::<Method>();
    let is_taken =
        (1..=32).contains(&text.len()) && text.chars().all(|c| matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '-'));
    assert_eq!(read.is_ok(), is_taken, "{text:?}");
    if let Ok(method) = read {
        assert_eq!(method.as_str(), text.to_ascii_uppercase());
        assert!(http::Method::from_bytes(method.as_str().as_bytes()).is_ok());
        assert_eq!(method.only_reads(), ["GET", "HEAD", "OPTIONS"].contains(&method.as_str()));
    }
}

/// Written out as HTTP/1.1 does and taken apart again by its line ends: as many lines as fields, each with its name.
fn stands_on_its_lines(list: &HeaderList) {
    let written: String = list.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let lines: Vec<&str> = written.split_terminator(['\r', '\n']).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), list.len());
    for (line, (name, value)) in lines.iter().zip(list.iter()) {
        assert_eq!(line.split_once(": "), Some((name, value)));
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| matches!(c, '!'..='~') && !"\"(),/:;<=>?@[\\]{}".contains(c))
}

/// The control characters of Unicode but the tab: those of ASCII, and 0x80 to 0x9f.
fn is_unsafe(c: char) -> bool {
    let code = u32::from(c);
    (code < 0x20 && code != 9) || (0x7f..0xa0).contains(&code)
}
