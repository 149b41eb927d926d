//! Answers in several parts (MTOM, RFC 2387): the root part, and attachments that it names.
//!
//! Linear in the bytes. This module must not know what an envelope is.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::Value;

use super::xml::Node;

/// Parts of one answer.
pub const PARTS_MAX: usize = 1000;
/// Header fields of one part.
const FIELDS_MAX: usize = 50;
const XOP_NS: &str = "http://www.w3.org/2004/08/xop/include";

#[derive(Debug)]
pub(super) struct Part<'b> {
    /// Without its brackets.
    pub(super) id: String,
    pub(super) content_type: String,
    pub(super) body: Cow<'b, [u8]>,
}

#[derive(Debug)]
pub(super) struct Parts<'b> {
    pub(super) root: Part<'b>,
    pub(super) others: Vec<Part<'b>>,
}

/// What elements may include. Each byte that an answer has comes out at most once, so that a part which is named often costs nothing more.
pub(super) struct Attachments<'p> {
    parts: &'p [Part<'p>],
    by_id: HashMap<&'p str, &'p Part<'p>>,
    /// Bytes that may still be given out.
    left: usize,
}

/// The value of a parameter of a content type.
pub(super) fn parameter(content_type: &str, name: &str) -> Option<String> {
    let mut rest = content_type.split_once(';')?.1;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, remaining) = match after.strip_prefix('"') {
            Some(quoted) => quoted_string(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = remaining;
    }
}

/// Up to the closing quote, and what is behind it.
fn quoted_string(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// The type without its parameters, in small letters.
pub(super) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// # Errors
/// In words that continue "the answer is …".
pub(super) fn read<'b>(content_type: &str, body: &'b [u8]) -> Result<Parts<'b>, String> {
    let boundary = parameter(content_type, "boundary").filter(|boundary| !boundary.is_empty());
    let boundary = boundary.ok_or("in parts, without the boundary that tells them apart")?;
    let mut parts = split(body, &boundary)?;
    let start = parameter(content_type, "start").map(|id| without_brackets(&id).to_owned());
    let root = start.and_then(|start| parts.iter().position(|part| part.id == start)).unwrap_or(0);
    let root = if parts.is_empty() { None } else { Some(parts.remove(root)) };
    Ok(Parts { root: root.ok_or("in parts, of which there is none")?, others: parts })
}

fn split<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<Part<'b>>, String> {
    let delimiter = format!("--{boundary}");
    let finder = memmem::Finder::new(delimiter.as_bytes());
    // A delimiter stands at the beginning of a line.
    let mut delimiters = finder.find_iter(body).filter(|at| *at == 0 || body[at - 1] == b'\n').peekable();
    let mut parts = Vec::new();
    while let Some(at) = delimiters.next() {
        let after = &body[at + delimiter.len()..];
        if after.starts_with(b"--") {
            break;
        }
        if parts.len() >= PARTS_MAX {
            return Err(format!("in more than {PARTS_MAX} parts"));
        }
        // What was cut off has no delimiter behind it.
        let end = delimiters.peek().copied().unwrap_or(body.len());
        let line_end = memchr::memchr(b'\n', after).ok_or("in parts, and cut within the first line of one")?;
        let whole = body.get(at + delimiter.len() + line_end + 1..end).unwrap_or_default();
        let whole = whole.strip_suffix(b"\n").map_or(whole, |whole| whole.strip_suffix(b"\r").unwrap_or(whole));
        parts.push(part(whole)?);
    }
    Ok(parts)
}

fn part(whole: &[u8]) -> Result<Part<'_>, String> {
    let (mut id, mut content_type, mut encoding) = (String::new(), String::new(), String::new());
    let mut rest = whole;
    for _ in 0..=FIELDS_MAX {
        let end = memchr::memchr(b'\n', rest).ok_or("in parts, one without a blank line behind its header")?;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        if line.is_empty() {
            return Ok(Part { id, content_type, body: decoded(rest, &encoding)? });
        }
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "content-id" => id = without_brackets(value).to_owned(),
            "content-type" => content_type = value.to_owned(),
            "content-transfer-encoding" => encoding = value.to_ascii_lowercase(),
            _ => {}
        }
    }
    Err(format!("in parts, one of more than {FIELDS_MAX} header fields"))
}

fn decoded<'b>(body: &'b [u8], encoding: &str) -> Result<Cow<'b, [u8]>, String> {
    match encoding {
        "" | "7bit" | "8bit" | "binary" => Ok(Cow::Borrowed(body)),
        "base64" => {
            let digits: Vec<u8> = body.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
            STANDARD.decode(digits).map(Cow::Owned).map_err(|_| "in parts, one with bad base64".to_owned())
        }
        other => {
            let shown: String = other.chars().filter(|c| !c.is_control()).take(40).collect();
            Err(format!("in parts, one in the transfer encoding `{shown}`"))
        }
    }
}

fn without_brackets(id: &str) -> &str {
    id.trim().strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id.trim())
}

impl<'p> Attachments<'p> {
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Attachments::of(&[])
    }

    pub(super) fn of(parts: &'p [Part<'p>]) -> Self {
        let by_id = parts.iter().map(|part| (part.id.as_str(), part)).collect();
        Attachments { parts, by_id, left: parts.iter().map(|part| part.body.len()).sum() }
    }

    /// In base64, if `node` includes a part that is there (XOP, section 2).
    pub(super) fn included(&mut self, node: Node<'_>) -> Option<String> {
        if self.parts.is_empty() || !node.is(XOP_NS, "Include") {
            return None;
        }
        let id = node.attribute("", "href")?.strip_prefix("cid:")?;
        let id = percent_encoding::percent_decode_str(id).decode_utf8().ok()?;
        let part = self.by_id.get(&*id)?;
        self.left = self.left.checked_sub(part.body.len())?;
        Some(STANDARD.encode(&part.body))
    }

    /// What each is, for people and callers: id, content type and length.
    pub(super) fn listed(&self) -> Vec<Value> {
        let shown = |part: &Part<'_>| serde_json::json!({"id": part.id, "content_type": part.content_type, "bytes": part.body.len()});
        self.parts.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/related; type=\"application/xop+xml\"; start=\"<root@x>\"; boundary=\"b;=1\"";

    fn body(text: &str) -> Vec<u8> {
        text.replace('\n', "\r\n").into_bytes()
    }

    #[test]
    fn s11_the_root_part_is_the_one_that_start_names() {
        let bytes = body(
            "preamble\n--b;=1\nContent-ID: <a%b>\nContent-Type: image/png\n\n\u{1}\n--b;=\n--b;=1  \ncontent-id:<root@x>\n\n<a/>\n--b;=1--\nend",
        );
        let parts = read(TYPE, &bytes).unwrap();
        assert_eq!((&*parts.root.body, parts.others.len()), (&b"<a/>"[..], 1));
        assert_eq!((parts.others[0].id.as_str(), &*parts.others[0].body), ("a%b", &b"\x01\r\n--b;="[..]));
        let bytes = body("--x\n\n1\n--x\n\n2\n--x--");
        let first = read("multipart/related; boundary=x", &bytes).unwrap();
        assert_eq!(&*first.root.body, b"1");
    }

    #[test]
    fn what_is_no_answer_in_parts_says_so() {
        for (content_type, text, why) in [
            ("multipart/related", "--x\n\n1\n--x--", "boundary"),
            ("multipart/related; boundary=x", "", "there is none"),
            ("multipart/related; boundary=x", "--x", "cut within"),
            ("multipart/related; boundary=x", "--x\nA: b\n--x--", "blank line"),
            ("multipart/related; boundary=x", "--x\nContent-Transfer-Encoding: x-uu\n\n1\n--x--", "x-uu"),
            ("multipart/related; boundary=x", "--x\nContent-Transfer-Encoding: base64\n\n*\n--x--", "bad base64"),
        ] {
            let refused = read(content_type, &body(text)).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let many = "--x\n\n\n".repeat(PARTS_MAX + 1);
        assert!(read("multipart/related; boundary=x", many.as_bytes()).unwrap_err().contains("more than"));
        assert!(read("multipart/related; boundary=x", &b"--x\n".repeat(100_000)).is_err());
    }

    #[test]
    fn parameters_are_read_in_quotes_and_without() {
        let text = "text/xml; a=1; Charset = \"ut\\f-8\" ;b=\";\"; start-info=";
        assert_eq!(parameter(text, "charset").as_deref(), Some("utf-8"));
        assert_eq!(parameter(text, "b").as_deref(), Some(";"));
        assert_eq!(parameter(text, "start-info").as_deref(), Some(""));
        assert_eq!(parameter(text, "nothing"), None);
        assert_eq!(parameter("text/xml", "charset"), None);
        assert_eq!(essence(" Text/XML ; charset=x"), "text/xml");
    }
}
