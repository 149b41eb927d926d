//! Bodies as they are shown: whatever one is, a bounded number of bounded lines comes out, nothing misleading is in them, and nothing is lost.

use postrider_web::body_view::{Class, Kind, Limits, Line, pretty, raw};
use serde_json::Value;

const LIMITS: Limits = Limits { lines_max: 200, line_chars_max: 400 };
const ALL: Limits = Limits { lines_max: 1_000_000, line_chars_max: 1_000_000 };
const KINDS: [Kind; 6] = [Kind::Json, Kind::Xml, Kind::Hl7, Kind::Form, Kind::Text, Kind::Binary];

/// The first byte says which kind it is taken for, the rest is the body.
pub fn holds(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let taken_for = KINDS.get(usize::from(*first)).copied().unwrap_or_else(|| Kind::of(None, body));
    for view in [pretty(taken_for, body, LIMITS), raw(taken_for, body, LIMITS)] {
        assert!(view.lines.len() <= LIMITS.lines_max);
        for line in &view.lines {
            is_harmless(line);
        }
    }
    nothing_is_lost(body);
    if taken_for == Kind::Json {
        the_same_json(body);
    }
}

fn is_harmless(line: &Line) {
    assert!(line.depth <= Limits::DEPTH_MAX);
    // A hidden character is at most `U+` and six digits.
    assert!(line.text().chars().count() <= LIMITS.line_chars_max * 8);
    for letter in line.pieces.iter().flat_map(|piece| piece.text.chars()) {
        let turns_direction =
            matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!turns_direction && (letter == '\t' || !letter.is_control()), "{letter:?}");
    }
}

/// As raw text, by a reading of its own: each line's characters but those that are made visible stand there in their order.
fn nothing_is_lost(body: &[u8]) {
    let view = raw(Kind::Text, body, ALL);
    let Ok(text) = std::str::from_utf8(body) else { return };
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = unified.split_terminator('\n').collect();
    assert_eq!(view.lines.len(), lines.len(), "{text:?}");
    for (line, wanted) in view.lines.iter().zip(lines) {
        let shown = line.pieces.iter().filter(|piece| piece.class != Class::Hidden);
        let shown: String = shown.map(|piece| piece.text.as_str()).collect();
        let mut letters = wanted.chars();
        assert!(shown.chars().all(|letter| letters.any(|known| known == letter)), "{shown:?} of {wanted:?}");
        let ascii = |text: &str| text.chars().filter(|letter| letter.is_ascii_graphic()).collect::<String>();
        assert_eq!(ascii(&shown), ascii(wanted));
    }
}

fn the_same_json(body: &[u8]) {
    let view = pretty(Kind::Json, body, ALL);
    let read = std::str::from_utf8(body).ok().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(value) = read else { return };
    assert_eq!(view.remark, None);
    let is_all_shown = view.lines.iter().flat_map(|line| &line.pieces).all(|piece| piece.class != Class::Hidden);
    if is_all_shown {
        let text: String = view.lines.iter().map(|line| line.text() + "\n").collect();
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(value), "{text}");
    }
}
