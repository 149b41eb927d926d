//! What a message says, for people to read: characters by MSH-18 and escapes undone.
//!
//! For showing only; nothing that is read here is ever sent.

use super::Delimiters;

/// Longer texts are cut.
const SHOWN_CHARS_MAX: usize = 200;

/// A field as text: one line without control characters, at most 200 characters. `charset` is MSH-18. `None` when nothing is left.
pub fn shown(field: &[u8], delimiters: Delimiters, charset: &[u8]) -> Option<String> {
    let text = decoded(&unescaped(field, delimiters), charset);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.trim().chars().map(visible).take(SHOWN_CHARS_MAX).collect();
    if text.trim().chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    (!shown.is_empty()).then_some(shown)
}

/// Where the bytes are UTF-8 they are meant so, whatever MSH-18 says or leaves out; else each is a character of Latin-1, unless UTF-8 was
/// promised.
fn decoded(bytes: &[u8], charset: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) if charset.starts_with(b"UNICODE") => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// `\F\ \S\ \T\ \R\ \E\` and `\Xdd…\`; anything else that looks like an escape stays as it is.
fn unescaped(field: &[u8], delimiters: Delimiters) -> Vec<u8> {
    let Some(escape) = delimiters.escape else { return field.to_vec() };
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = memchr::memchr(escape, rest) {
        let (before, from) = rest.split_at(at);
        text.extend_from_slice(before);
        let end = memchr::memchr(escape, &from[1..]).map(|end| end + 1);
        let meant = end.and_then(|end| meaning(&from[1..end], delimiters));
        match (end, meant) {
            (Some(end), Some(meant)) => {
                text.extend_from_slice(&meant);
                rest = &from[end + 1..];
            }
            _ => {
                text.push(escape);
                rest = &from[1..];
            }
        }
    }
    text.extend_from_slice(rest);
    text
}

fn meaning(sequence: &[u8], delimiters: Delimiters) -> Option<Vec<u8>> {
    let one = |byte: Option<u8>| byte.map(|byte| vec![byte]);
    match sequence {
        b"F" => one(Some(delimiters.field)),
        b"S" => one(delimiters.component),
        b"T" => one(delimiters.subcomponent),
        b"R" => one(delimiters.repetition),
        b"E" => one(delimiters.escape),
        [b'X', hex @ ..] if !hex.is_empty() && hex.len() % 2 == 0 => {
            let digits = std::str::from_utf8(hex).ok().filter(|hex| hex.is_ascii())?;
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Delimiters = Delimiters {
        field: b'|',
        component: Some(b'^'),
        repetition: Some(b'~'),
        escape: Some(b'\\'),
        subcomponent: Some(b'&'),
    };

    fn text(field: &[u8], charset: &str) -> Option<String> {
        shown(field, USUAL, charset.as_bytes())
    }

    // Field reports: two escapes in a row collapsed, and a lone backslash crashed the reader.
    #[test]
    fn escapes_are_undone_each_by_itself() {
        for (field, read) in [
            (r"a\F\b\S\c\T\d\R\e\E\f", "a|b^c&d~e\\f"),
            (r"x\X41\\X42\y", "xABy"),
            (r"a\b", r"a\b"),
            (r"a\", r"a\"),
            (r"\X4\", r"\X4\"),
            (r"\H\bold\N\", r"\H\bold\N\"),
            (r"\\F\", r"\|"),
        ] {
            assert_eq!(text(field.as_bytes(), "").as_deref(), Some(read), "{field}");
        }
    }

    #[test]
    fn m30_characters_are_those_of_msh_18() {
        assert_eq!(text("Größe".as_bytes(), "UNICODE UTF-8").as_deref(), Some("Größe"));
        assert_eq!(text(b"Gr\xf6\xdfe", "8859/1").as_deref(), Some("Größe"));
        assert_eq!(text(b"Gr\xf6e", "UNICODE UTF-8").as_deref(), Some("Gr\u{fffd}e"));
        assert_eq!(text(b"a\r\nb\x00\\X0D\\c", "").as_deref(), Some("a  b  c"));
        assert_eq!(text(b" \r", ""), None);
        assert_eq!(text(&[b'x'; 1000], "").map(|text| text.chars().count()), Some(201));
    }
}
