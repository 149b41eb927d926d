//! `application/x-www-form-urlencoded`, a field a line, decoded. It must not know what a field means.

use super::text::decoded;
use super::{Class, Limits, Lines};

pub fn lines(bytes: &[u8], limits: Limits) -> Lines {
    let mut lines = Lines::new(limits);
    for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        if !lines.has_room() {
            break;
        }
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = (plain(&pair[..at]), plain(pair.get(at + 1..).unwrap_or_default()));
        lines.push(0, [(Class::Name, &*decoded(&name)), (Class::Mark, " = "), (Class::Text, &*decoded(&value))]);
    }
    lines
}

fn plain(field: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = field.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_encoding::percent_decode(&spaced).collect()
}
