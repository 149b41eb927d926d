//! JSON, a member or an element a line. Digits, escapes and the order of members stay as they were written: tokens are moved, never read.
//!
//! It must not know what a member means.

use serde::de::IgnoredAny;

use super::{Class, Limits, Lines};

/// # Errors
/// It is no JSON, and where not.
pub fn lines(bytes: &[u8], limits: Limits) -> Result<Lines, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| format!("not valid JSON: no UTF-8 from byte {}", error.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| format!("not valid JSON: {error}"))?;
    let mut lines = Lines::new(limits);
    let mut line: Vec<(Class, &str)> = Vec::new();
    let mut depth = 0_usize;
    let mut tokens = Tokens { text, at: 0 }.peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                line.push((Class::Mark, token));
                // An empty one stays on its line.
                if let Some(close) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    line.push((Class::Mark, close));
                    continue;
                }
                lines.push(depth, line.drain(..));
                depth += 1;
            }
            "}" | "]" => {
                if !line.is_empty() {
                    lines.push(depth, line.drain(..));
                }
                depth = depth.saturating_sub(1);
                line.push((Class::Mark, token));
            }
            "," => {
                line.push((Class::Mark, token));
                lines.push(depth, line.drain(..));
            }
            ":" => line.push((Class::Mark, ": ")),
            token => {
                let is_name = tokens.peek() == Some(&":");
                line.push((class_of(token, is_name), token));
            }
        }
        if !lines.has_room() {
            return Ok(lines);
        }
    }
    if !line.is_empty() {
        lines.push(depth, line);
    }
    Ok(lines)
}

fn class_of(token: &str, is_name: bool) -> Class {
    match token.as_bytes().first() {
        Some(b'"') if is_name => Class::Name,
        Some(b'"') => Class::Text,
        Some(b't' | b'f' | b'n') => Class::Word,
        _ => Class::Number,
    }
}

/// The tokens of a text that is valid JSON.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let start = self.at;
        let length = match bytes.get(start)? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_length(&bytes[start..]),
            _ => bytes[start..].iter().take_while(|byte| !b"{}[],:\" \t\r\n".contains(byte)).count(),
        };
        self.at += length.max(1);
        self.text.get(start..self.at)
    }
}

/// With both quotes.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
