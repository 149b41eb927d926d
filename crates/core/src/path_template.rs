//! A connection's `url_path` with `{placeholders}`, filled from a request's params.
//!
//! Whatever the values are, they stay inside their segments: a path that an operator wrote cannot be left by what a caller sends. This
//! module must not know the host or the body.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// A template or a request's own path may be this many bytes long.
pub const PATH_BYTES_MAX: usize = 4096;
/// Of the path and query together: what an address can hold where requests are built. Longer ones could never be sent.
const TARGET_BYTES_MAX: usize = 65_534;

/// All but the unreserved characters of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Empty, or a path that begins with `/`; stored and shown as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathTemplate {
    written: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Placeholder(String),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("it has {bytes} bytes: at most {PATH_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    #[error("it begins with neither `/` nor nothing: a path is empty or begins with `/`")]
    NoSlash,
    #[error("it contains {found:?}: a path has letters, digits and -._~!$&'()*+,;=:@/, anything else as %XX")]
    BadCharacter { found: char },
    #[error("it contains a `%` without two hex digits after it")]
    BadEscape,
    #[error("it has a `{{` or `}}` without its partner, or one inside another: write {{name}}")]
    UnbalancedBraces,
    #[error("`{{{name}}}` is no placeholder: its name has 1 to 64 letters, digits, `_`, `-` or dots")]
    BadPlaceholder { name: String },
    #[error("`{{{name}}}` is there twice: each placeholder stands once")]
    Twice { name: String },
    #[error("it has a segment `{segment}`: segments of dots are not allowed")]
    DotSegment { segment: String },
}

/// Why a request's params and path do not make a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("the path needs `{name}`: no such param was given")]
    Missing { name: String },
    #[error("the path's segment with `{name}` would be empty: a value of at least one character is needed")]
    Empty { name: String },
    /// Servers and proxies take such a segment away, and often the one before it too, escaped or not (RFC 3986, section 6.2.2).
    #[error("the path would get a segment `{segment}`: a segment of dots alone is not allowed")]
    DotSegment { segment: String },
    #[error("the request's path has {bytes} bytes: at most {PATH_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    #[error("the path with its query has {bytes} bytes: at most {TARGET_BYTES_MAX} are allowed")]
    TargetTooLong { bytes: usize },
    #[error(
        "the request's path contains {found:?}: spaces, control characters and other unsafe ones have to be escaped as %XX"
    )]
    BadCharacter { found: char },
    #[error("the request's path contains a `%` without two hex digits after it")]
    BadEscape,
}

impl PathTemplate {
    /// Reads `/v2/claims/{claim_id}`.
    ///
    /// # Errors
    /// Braces that are unbalanced, empty or nested, a placeholder that stands twice, segments of dots, and all characters that a path does not have
    /// (RFC 3986, section 3.3): among them `?`, `#`, spaces and control characters.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(TemplateError::TooLong { bytes: text.len() });
        }
        if !text.is_empty() && !text.starts_with('/') {
            return Err(TemplateError::NoSlash);
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (literal, from_brace) = rest.split_at(at);
            let inside = from_brace.strip_prefix('{').ok_or(TemplateError::UnbalancedBraces)?;
            let end = inside.find(['{', '}']).ok_or(TemplateError::UnbalancedBraces)?;
            let (name, after) = inside.split_at(end);
            rest = after.strip_prefix('}').ok_or(TemplateError::UnbalancedBraces)?;
            push_literal(&mut pieces, literal)?;
            check_placeholder(&pieces, name)?;
            pieces.push(Piece::Placeholder(name.to_owned()));
        }
        push_literal(&mut pieces, rest)?;
        if let Some(segment) = text.split('/').find(|segment| is_dot_segment(segment)) {
            return Err(TemplateError::DotSegment { segment: segment.to_owned() });
        }
        Ok(PathTemplate { written: text.to_owned(), pieces })
    }

    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The names of the placeholders in their order.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Placeholder(name) => Some(name.as_str()),
        })
    }

    /// The path and query of a request, beginning with `/`.
    ///
    /// The first param of a placeholder's name fills it, every byte percent-encoded but RFC 3986's unreserved ones. The others make the query string
    /// in their order. `extra_path` is the request's own path (`RequestHead::path`): it goes behind with exactly one slash between, and a query
    /// that it carries comes first.
    ///
    /// # Errors
    /// A placeholder without a value; a value that would empty its segment or make it `.` or `..`; an `extra_path` with such a segment
    /// or with characters that have to be escaped.
    pub fn fill(&self, params: &[(String, String)], extra_path: &str) -> Result<String, FillError> {
        let mut used = vec![false; params.len()];
        let mut path = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => path.push_str(literal),
                Piece::Placeholder(name) => {
                    let at = params
                        .iter()
                        .position(|(param, _)| param == name)
                        .ok_or_else(|| FillError::Missing { name: name.clone() })?;
                    used[at] = true;
                    path.extend(utf8_percent_encode(&params[at].1, RESERVED));
                }
            }
        }
        self.check_filled(&path)?;
        let (extra, extra_query) = read_extra(extra_path)?;
        append(&mut path, extra);
        let mut query = extra_query.to_owned();
        for ((name, value), _) in params.iter().zip(used).filter(|(_, used)| !used) {
            if !query.is_empty() && !query.ends_with('&') {
                query.push('&');
            }
            query.extend(utf8_percent_encode(name, RESERVED));
            query.push('=');
            query.extend(utf8_percent_encode(value, RESERVED));
        }
        if !query.is_empty() {
            path.push('?');
            path.push_str(&query);
        }
        if path.len() > TARGET_BYTES_MAX {
            return Err(FillError::TargetTooLong { bytes: path.len() });
        }
        Ok(path)
    }

    /// No value may empty a segment or make it one of dots.
    fn check_filled(&self, path: &str) -> Result<(), FillError> {
        for (segment, written) in path.split('/').zip(self.written.split('/')) {
            if is_dot_segment(segment) {
                return Err(FillError::DotSegment { segment: segment.to_owned() });
            }
            if segment.is_empty() && !written.is_empty() {
                let name = written.trim_matches(['{', '}']).to_owned();
                return Err(FillError::Empty { name });
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written)
    }
}

impl TryFrom<String> for PathTemplate {
    type Error = TemplateError;
    fn try_from(text: String) -> Result<Self, TemplateError> {
        PathTemplate::parse(&text)
    }
}

impl From<PathTemplate> for String {
    fn from(template: PathTemplate) -> String {
        template.written
    }
}

fn push_literal(pieces: &mut Vec<Piece>, literal: &str) -> Result<(), TemplateError> {
    if let Some(found) = literal.chars().find(|c| !is_path_char(*c)) {
        return Err(TemplateError::BadCharacter { found });
    }
    if !escapes_are_whole(literal) {
        return Err(TemplateError::BadEscape);
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal.to_owned()));
    }
    Ok(())
}

fn check_placeholder(before: &[Piece], name: &str) -> Result<(), TemplateError> {
    let shaped = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(shaped) {
        return Err(TemplateError::BadPlaceholder { name: name.chars().take(64).collect() });
    }
    if before.iter().any(|piece| matches!(piece, Piece::Placeholder(known) if known == name)) {
        return Err(TemplateError::Twice { name: name.to_owned() });
    }
    Ok(())
}

/// The path and the query of a request's own path, both checked.
fn read_extra(extra: &str) -> Result<(&str, &str), FillError> {
    if extra.len() > PATH_BYTES_MAX {
        return Err(FillError::TooLong { bytes: extra.len() });
    }
    let (path, query) = extra.split_once('?').unwrap_or((extra, ""));
    let bad = path.chars().find(|c| !is_path_char(*c)).or_else(|| query.chars().find(|c| !is_query_char(*c)));
    if let Some(found) = bad {
        return Err(FillError::BadCharacter { found });
    }
    if !escapes_are_whole(path) {
        return Err(FillError::BadEscape);
    }
    match path.split('/').find(|segment| hides_dot_segment(segment)) {
        Some(segment) => Err(FillError::DotSegment { segment: segment.to_owned() }),
        None => Ok((path, query)),
    }
}

fn append(path: &mut String, extra: &str) {
    if !extra.is_empty() {
        path.truncate(path.trim_end_matches('/').len());
        path.push('/');
        path.push_str(extra.trim_start_matches('/'));
    }
    if path.is_empty() {
        path.push('/');
    }
}

fn is_dot_segment(segment: &str) -> bool {
    matches!(percent_decode_str(segment).collect::<Vec<u8>>().as_slice(), b"." | b"..")
}

/// Some servers read an escaped slash, or a backslash, as a slash: what lies between them may not be dots either.
fn hides_dot_segment(segment: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(segment).collect();
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| matches!(part, b"." | b".."))
}

/// What stands in a path as itself, `%` included (RFC 3986, section 3.3).
fn is_path_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/%".contains(c)
}

/// Wider than RFC 3986: brackets and the like are common in queries and change nothing of where a request goes.
fn is_query_char(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '#' | '<' | '>' | '"')
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|after| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests;
