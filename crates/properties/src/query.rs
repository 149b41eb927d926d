//! Query strings of the API: what a page, a flag, a time or a kind may be, and that nothing is passed over.

use postrider_core::connection::ConnectionKind;
use postrider_web::{Problem, Query};

/// The input is the query string.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let first = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());

    let mut query = Query::parse(text);
    let page = query.page();
    let limit = first("limit").map_or(Some(50), number).filter(|limit| (1..=1000).contains(limit));
    let cursor = first("cursor").filter(|cursor| !cursor.is_empty());
    match (&page, limit, cursor.is_none_or(|cursor| cursor.len() <= 2048)) {
        (Ok(page), Some(limit), true) => {
            assert_eq!((u64::from(page.limit), page.cursor.as_deref()), (limit, cursor), "{text:?}");
        }
        (Err(problem), None, _) => names(problem, "limit"),
        (Err(problem), Some(_), false) => names(problem, "cursor"),
        _ => panic!("{text:?}: {page:?}"),
    }

    let mut query = Query::parse(text);
    match (query.flag("force"), first("force")) {
        (Ok(flag), given) => assert_eq!(flag, given == Some("true"), "{text:?}"),
        (Err(problem), given) => {
            assert!(!matches!(given, None | Some("true" | "false")));
            names(&problem, "force");
        }
    }
    match (query.time("from"), first("from")) {
        (Ok(None), None) => {}
        (Ok(Some(time)), Some(given)) => assert_eq!(Some(time), postrider_core::Timestamp::parse_rfc3339(given)),
        (Err(problem), Some(_)) => names(&problem, "from"),
        (read, given) => panic!("{given:?} was read as {read:?}"),
    }
    match (query.kind(), first("type")) {
        (Ok(None), None) => {}
        (Ok(Some(kind)), Some(given)) if kind.as_str() == given => {}
        (Err(problem), Some(given)) if !ConnectionKind::ALL.iter().any(|kind| kind.as_str() == given) => {
            names(&problem, "type");
        }
        (read, given) => panic!("{given:?} was read as {read:?}"),
    }
    let statuses = query.take_all("status");
    assert!(statuses.iter().all(|status| !status.is_empty() && !status.contains(',')));

    // What nobody took is refused, and it is one of those that were there.
    let taken = |name: &str| name == "status" || (["force", "from", "type"].contains(&name) && is_once(&pairs, name));
    match query.finish() {
        Ok(()) => assert!(pairs.iter().all(|(name, _)| taken(name)), "{text:?}"),
        Err(problem) => {
            assert!(pairs.iter().any(|(name, _)| !taken(name)));
            assert_eq!(problem.status(), 400);
        }
    }
}

fn is_once(pairs: &[(String, String)], name: &str) -> bool {
    pairs.iter().filter(|(known, _)| known == name).count() == 1
}

fn names(problem: &Problem, field: &str) {
    let json = problem.to_json();
    assert_eq!((problem.status().as_u16(), json["errors"][0]["field"].as_str()), (400, Some(field)));
}

/// Digits, with a plus before them as Rust reads numbers.
fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.bytes().fold(0u64, |sum, b| sum.saturating_mul(10).saturating_add(u64::from(b - b'0'))))
}

/// `+` is a space, `%XX` a byte, and what is no UTF-8 then is marked as such.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(hex(*high) * 16 + hex(*low));
                rest = after;
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

/// Every byte as `%XX`.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
