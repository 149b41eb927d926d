//! A body for people to look at: lines of pieces, each piece of one kind, every character that could mislead made visible.
//!
//! Bodies are hostile: nothing in one is resolved, followed or run, and whatever it is, a bounded number of bounded lines comes out. Pure. It must
//! not know of HTML, which is whoever shows the pieces, nor of deliveries.

mod form;
mod hex;
mod hl7;
mod hl7_names;
mod json;
mod text;
mod visible;
mod xml;

use postrider_core::message::HeaderList;

pub use text::decoded;

/// What a body is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Empty,
    Json,
    Xml,
    Hl7,
    Form,
    Text,
    Binary,
}

impl Kind {
    pub const fn label(self) -> &'static str {
        match self {
            Kind::Empty => "Empty",
            Kind::Json => "JSON",
            Kind::Xml => "XML",
            Kind::Hl7 => "HL7 v2",
            Kind::Form => "Form",
            Kind::Text => "Text",
            Kind::Binary => "Binary",
        }
    }

    /// By what the sender says it is, and where that says nothing, by how it begins.
    pub fn of(content_type: Option<&str>, bytes: &[u8]) -> Kind {
        if bytes.is_empty() {
            return Kind::Empty;
        }
        let said = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if said == "application/x-www-form-urlencoded" {
            return Kind::Form;
        }
        let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        if start.starts_with(b"MSH") && start.get(3).is_some_and(u8::is_ascii_punctuation) {
            return Kind::Hl7;
        }
        if text::is_binary(bytes) {
            return Kind::Binary;
        }
        match start.first() {
            Some(b'{' | b'[') => Kind::Json,
            Some(b'<') => Kind::Xml,
            _ if said.ends_with("/json") || said.ends_with("+json") => Kind::Json,
            _ if said.ends_with("/xml") || said.ends_with("+xml") => Kind::Xml,
            _ => Kind::Text,
        }
    }

    /// The same, of a request with these headers.
    pub fn of_request(headers: &HeaderList, bytes: &[u8]) -> Kind {
        Kind::of(headers.get("content-type"), bytes)
    }
}

/// What a piece of a line is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Plain,
    /// The name of a member, an element, a field.
    Name,
    Text,
    Number,
    Word,
    /// Brackets, commas, tags.
    Mark,
    /// What a name means, in our words.
    Note,
    /// A character that is not shown as it is: the text says which.
    Hidden,
}

impl Class {
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Plain => "plain",
            Class::Name => "name",
            Class::Text => "text",
            Class::Number => "number",
            Class::Word => "word",
            Class::Mark => "mark",
            Class::Note => "note",
            Class::Hidden => "hidden",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub class: Class,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Steps to the right.
    pub depth: usize,
    pub pieces: Vec<Piece>,
    /// Characters of the line that were left out.
    pub left_out: usize,
}

impl Line {
    pub fn indent(&self) -> String {
        "  ".repeat(self.depth)
    }

    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// How much of a body is shown at once, each limit with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `body_lines_max`
    pub lines_max: usize,
    /// `body_line_chars_max`: what is beyond is left out, and how much that is is said.
    pub line_chars_max: usize,
}

impl Limits {
    /// What a page shows first.
    pub const FIRST: Limits = Limits { lines_max: 400, line_chars_max: 2000 };
    /// When somebody asks for all of it; what is beyond is for the download.
    pub const MORE: Limits = Limits { lines_max: 20_000, line_chars_max: 10_000 };
    /// Deeper levels are not indented any further.
    pub const DEPTH_MAX: usize = 40;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub kind: Kind,
    pub lines: Vec<Line>,
    /// There is more than the lines show.
    pub is_cut: bool,
    /// Why it is not shown as what it should be.
    pub remark: Option<String>,
}

/// By kind: members and elements on lines of their own, segments with their fields, bytes in hexadecimal.
///
/// Digits, the order of members, and all text stay as they are. What cannot be read as what it should be is shown as text, with the reason.
pub fn pretty(kind: Kind, bytes: &[u8], limits: Limits) -> View {
    let made = match kind {
        Kind::Empty => Ok(Lines::new(limits)),
        Kind::Json => json::lines(bytes, limits),
        Kind::Xml => xml::lines(bytes, limits),
        Kind::Hl7 => Ok(hl7::lines(bytes, limits)),
        Kind::Form => Ok(form::lines(bytes, limits)),
        Kind::Text => Ok(text::lines(bytes, limits)),
        Kind::Binary => Ok(hex::lines(bytes, limits)),
    };
    match made {
        Ok(lines) => lines.into_view(kind, None),
        Err(why) => text::lines(bytes, limits).into_view(kind, Some(why)),
    }
}

/// As it is, line by line; what is no text in hexadecimal.
pub fn raw(kind: Kind, bytes: &[u8], limits: Limits) -> View {
    let lines = if kind == Kind::Binary { hex::lines(bytes, limits) } else { text::lines(bytes, limits) };
    lines.into_view(kind, None)
}

/// Lines as they are made, up to the limit.
struct Lines {
    limits: Limits,
    done: Vec<Line>,
    is_cut: bool,
}

impl Lines {
    fn new(limits: Limits) -> Self {
        Lines { limits, done: Vec::new(), is_cut: false }
    }

    /// `false`: no line fits any more, and nothing needs to be read on for.
    fn has_room(&mut self) -> bool {
        if self.done.len() >= self.limits.lines_max {
            self.is_cut = true;
        }
        !self.is_cut
    }

    /// A line of these pieces, cut to its length, hidden characters made visible.
    fn push<'t>(&mut self, depth: usize, pieces: impl IntoIterator<Item = (Class, &'t str)>) {
        if !self.has_room() {
            return;
        }
        let mut line = Line { depth: depth.min(Limits::DEPTH_MAX), ..Line::default() };
        let mut room = self.limits.line_chars_max;
        for (class, text) in pieces {
            visible::add(&mut line, class, text, &mut room);
        }
        self.done.push(line);
    }

    fn into_view(self, kind: Kind, remark: Option<String>) -> View {
        View { kind, lines: self.done, is_cut: self.is_cut, remark }
    }
}

#[cfg(test)]
mod tests;
