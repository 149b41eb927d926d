//! XML, indented. Nothing is resolved: no entity, no DTD, no name space; tags and text stay letter by letter, only blanks between tags go.
//!
//! It must not know what an element means, nor whether the document is well-formed beyond its tags.

use super::text::decoded;
use super::{Class, Limits, Lines};

/// # Errors
/// A tag that does not end, or ends what is not open.
pub fn lines(bytes: &[u8], limits: Limits) -> Result<Lines, String> {
    let text = decoded(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let tokens = tokens_of(text, limits)?;
    let mut lines = Lines::new(limits);
    let mut open: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if !lines.has_room() {
            return Ok(lines);
        }
        at += 1;
        match *token {
            Token::Open(tag) => {
                // An element with nothing but one text stays on its line.
                let depth = open.len();
                match (tokens.get(at), tokens.get(at + 1)) {
                    (Some(Token::Text(text)), Some(Token::Close(close))) if fits(tag, close) => {
                        lines.push(depth, [(Class::Mark, tag), (Class::Plain, text.trim()), (Class::Mark, *close)]);
                        at += 2;
                    }
                    (Some(Token::Close(close)), _) if fits(tag, close) => {
                        lines.push(depth, [(Class::Mark, tag), (Class::Mark, *close)]);
                        at += 1;
                    }
                    _ => {
                        lines.push(depth, [(Class::Mark, tag)]);
                        open.push(tag);
                    }
                }
            }
            Token::Close(close) => match open.pop() {
                Some(tag) if fits(tag, close) => lines.push(open.len(), [(Class::Mark, close)]),
                _ => return Err(format!("not well-formed XML: {} ends nothing that is open", clipped(close))),
            },
            Token::Whole(tag) => lines.push(open.len(), [(Class::Mark, tag)]),
            Token::Aside(aside) => each_line(&mut lines, open.len(), Class::Note, aside),
            Token::Text(text) => each_line(&mut lines, open.len(), Class::Plain, text),
        }
    }
    match open.last() {
        Some(tag) if !lines.is_cut => Err(format!("not well-formed XML: {} is not closed", clipped(tag))),
        _ => Ok(lines),
    }
}

fn each_line(lines: &mut Lines, depth: usize, class: Class, text: &str) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        lines.push(depth, [(class, line)]);
    }
}

fn clipped(tag: &str) -> String {
    tag.chars().take(60).collect()
}

enum Token<'t> {
    Open(&'t str),
    Close(&'t str),
    /// `<a/>`
    Whole(&'t str),
    /// Comments, processing instructions, a document type: shown, and that is all.
    Aside(&'t str),
    /// With CDATA sections as they are written.
    Text(&'t str),
}

/// As many as could be shown, so that a page of a large document is no work for all of it.
fn tokens_of(text: &str, limits: Limits) -> Result<Vec<Token<'_>>, String> {
    let tokens_max = limits.lines_max.saturating_mul(4).saturating_add(8);
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && tokens.len() < tokens_max {
        let length = match rest.find('<') {
            Some(0) => {
                tag_length(rest).ok_or_else(|| format!("not well-formed XML: {} does not end", clipped(rest)))?
            }
            Some(at) => at,
            None => rest.len(),
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        if token.starts_with("<![CDATA[") {
            tokens.push(Token::Text(token));
        } else if token.starts_with("<!") || token.starts_with("<?") {
            tokens.push(Token::Aside(token));
        } else if token.starts_with("</") {
            tokens.push(Token::Close(token));
        } else if token.starts_with('<') {
            tokens.push(if token.ends_with("/>") { Token::Whole(token) } else { Token::Open(token) });
        } else if !token.trim().is_empty() {
            tokens.push(Token::Text(token));
        }
    }
    Ok(tokens)
}

/// How long what begins with `<` is; a `>` within quotes or within a document type's brackets does not end it.
fn tag_length(text: &str) -> Option<usize> {
    for (start, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if let Some(rest) = text.strip_prefix(start) {
            return rest.find(end).map(|at| start.len() + at + end.len());
        }
    }
    let (mut quote, mut brackets) = (None, 0_u32);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[') => brackets += 1,
            (None, b']') => brackets = brackets.saturating_sub(1),
            (None, b'>') if brackets == 0 => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether `</a>` ends `<a …>`.
fn fits(open: &str, close: &str) -> bool {
    fn name(tag: &str) -> &str {
        let tag = tag.trim_start_matches(['<', '/']);
        tag.split(|letter: char| letter.is_whitespace() || letter == '>' || letter == '/').next().unwrap_or_default()
    }
    name(open) == name(close)
}
