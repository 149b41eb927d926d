//! An HL7 v2 message: a segment, its fields and their components, each on a line of its own with its place and, where it is a usual one, its name.
//!
//! Escapes and values stay as they were sent. It must not know what follows from a message.

use std::borrow::Cow;

use super::hl7_names::{field_name, segment_name};
use super::text::decoded;
use super::{Class, Limits, Lines};

/// What separates what, as the first segment says.
struct Separators {
    field: char,
    component: char,
    repetition: char,
}

pub fn lines(bytes: &[u8], limits: Limits) -> Lines {
    let mut lines = Lines::new(limits);
    let text = in_its_letters(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // An MLLP frame around it says nothing.
    let text = text.trim_start_matches('\u{b}').trim_end_matches(['\u{1c}', '\r', '\n']);
    let separators = separators_of(text);
    for segment in text.split(['\r', '\n']).filter(|segment| !segment.is_empty()) {
        if !lines.has_room() {
            break;
        }
        put_segment(&mut lines, segment, &separators);
    }
    lines
}

fn separators_of(text: &str) -> Separators {
    let mut letters = text.trim_start().chars().skip(3);
    let mut next = |usual| letters.next().unwrap_or(usual);
    Separators { field: next('|'), component: next('^'), repetition: next('~') }
}

fn put_segment(lines: &mut Lines, segment: &str, separators: &Separators) {
    let mut fields = segment.split(separators.field);
    let id = fields.next().unwrap_or_default();
    let meaning = segment_name(id).unwrap_or_default();
    lines.push(
        0,
        [(Class::Name, id), (Class::Note, if meaning.is_empty() { "" } else { "  " }), (Class::Note, meaning)],
    );
    // Of the header, the first field is the separator itself.
    let is_header = matches!(id, "MSH" | "FHS" | "BHS");
    if is_header {
        put_value(lines, 1, &format!("{id}-1"), field_name(id, 1), separators.field.encode_utf8(&mut [0; 4]));
    }
    for (index, field) in fields.enumerate() {
        let number = index + if is_header { 2 } else { 1 };
        if field.is_empty() {
            continue;
        }
        if is_header && number == 2 {
            put_value(lines, 1, &format!("{id}-2"), field_name(id, 2), field);
            continue;
        }
        let repeated = field.contains(separators.repetition);
        for (repetition, value) in field.split(separators.repetition).enumerate() {
            if !lines.has_room() {
                return;
            }
            let place = if repeated { format!("{id}-{number}[{}]", repetition + 1) } else { format!("{id}-{number}") };
            put_field(lines, &place, field_name(id, number), value, separators);
        }
    }
}

fn put_field(lines: &mut Lines, place: &str, name: Option<&str>, value: &str, separators: &Separators) {
    if !value.contains(separators.component) {
        return put_value(lines, 1, place, name, value);
    }
    put_value(lines, 1, place, name, "");
    for (index, component) in value.split(separators.component).enumerate() {
        if !component.is_empty() {
            put_value(lines, 2, &format!("{place}.{}", index + 1), None, component);
        }
    }
}

fn put_value(lines: &mut Lines, depth: usize, place: &str, name: Option<&str>, value: &str) {
    let name = name.map(|name| format!("  {name}")).unwrap_or_default();
    let gap = if value.is_empty() { "" } else { "  " };
    lines.push(depth, [(Class::Name, place), (Class::Note, &name), (Class::Mark, gap), (Class::Text, value)]);
}

/// MSH-18 says how letters are written; ISO 8859-1 is still usual, and what is not known is taken for UTF-8.
fn in_its_letters(bytes: &[u8]) -> Cow<'_, str> {
    if std::str::from_utf8(bytes).is_ok() {
        return decoded(bytes);
    }
    let header = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let separator = header.get(3).copied().unwrap_or(b'|');
    let said = header.split(|byte| *byte == separator).nth(17).unwrap_or_default();
    if said == b"8859/1" {
        return Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect());
    }
    decoded(bytes)
}
