//! Text as it is, line by line, and bytes that are no text within it. It must not know what a text is about.

use std::borrow::Cow;

use super::visible::BYTES_FROM;
use super::{Class, Limits, Lines};

/// As text, bytes that are no UTF-8 as private characters that are shown as `\xFF`. Nothing is lost to a replacement character.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let marks = chunk.invalid().iter();
        text.extend(marks.filter_map(|byte| char::from_u32(u32::from(BYTES_FROM) + u32::from(*byte))));
    }
    Cow::Owned(text)
}

/// How much of a body is looked at to tell text from bytes.
const LOOKED_AT: usize = 8 << 10;

/// A few strange characters make no bytes of a short text.
const STRANGE_MAX: usize = 4;

/// More than a tenth of what it begins with is neither UTF-8 nor a character of a text.
pub fn is_binary(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(LOOKED_AT)];
    let mut strange = 0;
    for chunk in start.utf8_chunks() {
        let controls = |letter: &char| letter.is_control() && !"\t\n\r\u{b}\u{c}\u{1b}\u{1c}".contains(*letter);
        strange += chunk.invalid().len() + chunk.valid().chars().filter(controls).count();
    }
    strange > STRANGE_MAX && strange * 10 > start.len()
}

/// Lines end with CR, LF or both.
pub fn lines(bytes: &[u8], limits: Limits) -> Lines {
    let mut lines = Lines::new(limits);
    let mut rest = bytes;
    while !rest.is_empty() && lines.has_room() {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let ending = if rest[end..].starts_with(b"\r\n") { 2 } else { usize::from(end < rest.len()) };
        lines.push(0, [(Class::Plain, &*decoded(&rest[..end]))]);
        rest = &rest[end + ending..];
    }
    lines
}
