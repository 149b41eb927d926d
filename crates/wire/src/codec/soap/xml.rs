//! XML as SOAP has it, read into a flat tree with its namespaces resolved.
//!
//! There is no document type: one is refused, so no entity can be declared or expanded, and nothing is fetched. Depth, elements, attributes and
//! names are bounded, and the time is linear in the text. A text that is not well-formed gives what came before its fault, so that a fault which was
//! cut short is still known for one. This module must not know of SOAP.

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

/// Elements inside each other.
pub const DEPTH_MAX: usize = 100;
/// Elements of one document.
pub const ELEMENTS_MAX: usize = 250_000;
/// Attributes of one element, namespace declarations among them.
pub const ATTRIBUTES_MAX: usize = 256;
/// Bytes of a name, prefix included.
pub const NAME_BYTES_MAX: usize = 512;
/// Bytes of the name of a namespace.
pub const NAMESPACE_BYTES_MAX: usize = 2048;
/// Namespace declarations in force at one place.
pub const DECLARATIONS_MAX: usize = 512;

const XML_NS: &str = "http://www.w3.org/XML/1998/namespace";

/// What is wrong with a text, in words that continue "it is no XML that can be read: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    #[error("it is empty")]
    Empty,
    #[error("it has a document type (DTD), which SOAP forbids")]
    DocumentType,
    #[error("{0} (byte {1})")]
    Malformed(String, u64),
    #[error("its elements are more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error("it has more than {ELEMENTS_MAX} elements")]
    TooManyElements,
    #[error("an element has more than {ATTRIBUTES_MAX} attributes")]
    TooManyAttributes,
    #[error("it has a name of more than {NAME_BYTES_MAX} bytes or a namespace of more than {NAMESPACE_BYTES_MAX}")]
    LongName,
    #[error("it declares more than {DECLARATIONS_MAX} namespaces at one place")]
    TooManyDeclarations,
    #[error("the prefix `{0}` is not declared")]
    Prefix(String),
    #[error("the entity `{0}` is not one of the five that XML has")]
    Entity(String),
    #[error("it ends inside an element")]
    Unclosed,
    #[error("it has text or another element beside its root")]
    BesideRoot,
}

/// A document as far as it could be read.
#[derive(Debug, Default)]
pub struct Document {
    elements: Vec<Element>,
    namespaces: Vec<Box<str>>,
    /// Why it could not be read to its end.
    pub error: Option<XmlError>,
}

#[derive(Debug)]
struct Element {
    parent: Option<usize>,
    namespace: usize,
    local: Box<str>,
    attributes: Vec<Attribute>,
    content: Vec<Content>,
}

#[derive(Debug)]
struct Attribute {
    /// As written, prefix included.
    name: Box<str>,
    namespace: usize,
    value: Box<str>,
}

#[derive(Debug)]
enum Content {
    Element(usize),
    Text(String),
}

/// One element of a document.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document,
    at: usize,
}

/// No namespace at all.
const NONE: usize = 0;

/// Reads a text. What could be read is there even where `error` is set, but for a text with a document type: of that nothing is taken.
pub fn read(text: &str) -> Document {
    let mut builder = Builder::new();
    let error = builder.run(text).err();
    if error == Some(XmlError::DocumentType) {
        return Document { error, ..Document::default() };
    }
    Document { error, ..builder.document }
}

impl Document {
    pub fn root(&self) -> Option<Node<'_>> {
        (!self.elements.is_empty()).then_some(Node { document: self, at: 0 })
    }

    /// How many elements were read.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

impl<'d> Node<'d> {
    fn element(self) -> &'d Element {
        &self.document.elements[self.at]
    }

    /// Without its prefix.
    pub fn local(self) -> &'d str {
        &self.element().local
    }

    /// Empty for none.
    pub fn namespace(self) -> &'d str {
        &self.document.namespaces[self.element().namespace]
    }

    pub fn is(self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }

    /// The elements directly inside, in their order.
    pub fn children(self) -> impl Iterator<Item = Node<'d>> {
        self.element().content.iter().filter_map(move |content| match content {
            Content::Element(at) => Some(Node { document: self.document, at: *at }),
            Content::Text(_) => None,
        })
    }

    pub fn child(self, namespace: &str, local: &str) -> Option<Node<'d>> {
        self.children().find(|child| child.is(namespace, local))
    }

    /// The text directly inside, entities resolved, spaces as they are.
    pub fn text(self) -> String {
        self.element().content.iter().fold(String::new(), |mut all, content| {
            if let Content::Text(text) = content {
                all.push_str(text);
            }
            all
        })
    }

    /// An attribute in no namespace for an empty `namespace`.
    pub fn attribute(self, namespace: &str, local: &str) -> Option<&'d str> {
        let found = self.attributes().find(|(ns, name, _)| *name == local && *ns == namespace);
        found.map(|(_, _, value)| value)
    }

    /// Namespace, local name and value of each, without namespace declarations.
    pub fn attributes(self) -> impl Iterator<Item = (&'d str, &'d str, &'d str)> {
        let document = self.document;
        self.element().attributes.iter().filter(|attribute| declared(&attribute.name).is_none()).map(move |attribute| {
            let local = attribute.name.split_once(':').map_or(&*attribute.name, |(_, local)| local);
            (&*document.namespaces[attribute.namespace], local, &*attribute.value)
        })
    }

    /// What a prefix means here; an empty one stands for names without a prefix.
    pub fn resolve(self, prefix: &str) -> Option<&'d str> {
        let mut at = Some(self.at);
        while let Some(element) = at.map(|at| &self.document.elements[at]) {
            let found = element.attributes.iter().find(|attribute| declared(&attribute.name) == Some(prefix));
            if let Some(attribute) = found {
                return Some(&attribute.value);
            }
            at = element.parent;
        }
        prefix.is_empty().then_some("")
    }
}

/// The prefix that an attribute declares, if it is a declaration.
fn declared(name: &str) -> Option<&str> {
    match name {
        "xmlns" => Some(""),
        name => name.strip_prefix("xmlns:"),
    }
}

/// Whether XML 1.0 can carry this character at all, escaped or not.
pub fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether a text can be a name of XML without a colon (NCName).
pub fn is_name(text: &str) -> bool {
    let starts = |c: char| {
        matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}')
            || matches!(c, '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}' | '\u{200d}' | '\u{2070}'..='\u{218f}')
            || matches!(c, '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}')
            || matches!(c, '\u{10000}'..='\u{effff}')
    };
    let goes_on = |c: char| {
        starts(c) || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}' | '\u{2040}')
    };
    let mut chars = text.chars();
    text.len() <= NAME_BYTES_MAX && chars.next().is_some_and(starts) && chars.all(goes_on)
}

/// Writes a text so that it comes back as it is, inside an element or an attribute. Characters that XML cannot carry have to be refused before.
pub fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A reader would make spaces or line feeds of these.
            '\r' => out.push_str("&#13;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c => out.push(c),
        }
    }
}

struct Builder {
    document: Document,
    /// The elements that are open.
    open: Vec<usize>,
    /// Prefix and namespace of each declaration in force, and how many there were before each open element.
    declarations: Vec<(Box<str>, usize)>,
    before: Vec<usize>,
}

impl Builder {
    fn new() -> Self {
        let document = Document { namespaces: vec!["".into(), XML_NS.into()], ..Document::default() };
        Builder { document, open: Vec::new(), declarations: vec![("xml".into(), 1)], before: Vec::new() }
    }

    fn run(&mut self, text: &str) -> Result<(), XmlError> {
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_end_names = true;
        loop {
            let event = reader
                .read_event()
                .map_err(|error| XmlError::Malformed(shortened(&error.to_string()), reader.error_position()))?;
            match event {
                Event::Start(start) => self.start(&start)?,
                Event::Empty(start) => {
                    self.start(&start)?;
                    self.end();
                }
                Event::End(_) => self.end(),
                Event::Text(text) => self.text(&text.xml10_content())?,
                Event::CData(data) => self.text(&data.xml10_content())?,
                Event::GeneralRef(reference) => {
                    let name = reference.xml10_content();
                    let c = entity(&name).ok_or_else(|| XmlError::Entity(shortened(&name)))?;
                    self.text(c.encode_utf8(&mut [0; 4]))?;
                }
                Event::DocType(_) => return Err(XmlError::DocumentType),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
                Event::Eof => break,
            }
        }
        match (self.document.is_empty(), self.open.is_empty()) {
            (true, _) => Err(XmlError::Empty),
            (false, false) => Err(XmlError::Unclosed),
            (false, true) => Ok(()),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), XmlError> {
        if self.open.is_empty() && !self.document.is_empty() {
            return Err(XmlError::BesideRoot);
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(XmlError::TooDeep);
        }
        if self.document.len() >= ELEMENTS_MAX {
            return Err(XmlError::TooManyElements);
        }
        let before = self.declarations.len();
        let mut attributes = self.attributes(start)?;
        for attribute in &mut attributes {
            // A name without a prefix is in no namespace, whatever `xmlns` says.
            if let (None, Some((prefix, _))) = (declared(&attribute.name), attribute.name.split_once(':')) {
                attribute.namespace = self.lookup(prefix)?;
            }
        }
        let name = start.name();
        let name: &str = name.as_ref();
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        if name.len() > NAME_BYTES_MAX {
            return Err(XmlError::LongName);
        }
        let namespace = self.lookup(prefix)?;
        let (at, parent) = (self.document.len(), self.open.last().copied());
        if let Some(parent) = parent {
            self.document.elements[parent].content.push(Content::Element(at));
        }
        self.document.elements.push(Element {
            parent,
            namespace,
            local: local.into(),
            attributes,
            content: Vec::new(),
        });
        self.open.push(at);
        self.before.push(before);
        Ok(())
    }

    /// All of one element; those that declare a namespace are in force from here on.
    fn attributes(&mut self, start: &BytesStart<'_>) -> Result<Vec<Attribute>, XmlError> {
        let mut attributes = Vec::new();
        for read in start.attributes() {
            let read = read.map_err(|error| XmlError::Malformed(shortened(&error.to_string()), 0))?;
            if attributes.len() >= ATTRIBUTES_MAX {
                return Err(XmlError::TooManyAttributes);
            }
            let name: &str = read.key.as_ref();
            if name.len() > NAME_BYTES_MAX {
                return Err(XmlError::LongName);
            }
            let value = read.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| XmlError::Malformed(shortened(&error.to_string()), 0))?;
            if let Some(prefix) = declared(name) {
                if value.len() > NAMESPACE_BYTES_MAX {
                    return Err(XmlError::LongName);
                }
                if self.declarations.len() >= DECLARATIONS_MAX {
                    return Err(XmlError::TooManyDeclarations);
                }
                let namespace = self.namespace(&value);
                self.declarations.push((prefix.into(), namespace));
            }
            attributes.push(Attribute { name: name.into(), namespace: NONE, value: value.as_ref().into() });
        }
        Ok(attributes)
    }

    /// One number for one namespace, as far as it is in force or was declared last: enough to keep a name once and not once an element.
    fn namespace(&mut self, name: &str) -> usize {
        if name.is_empty() {
            return NONE;
        }
        let known = self.declarations.iter().rev().map(|(_, known)| *known);
        let last = self.document.namespaces.len() - 1;
        let same = known.chain([last]).find(|known| &*self.document.namespaces[*known] == name);
        same.unwrap_or_else(|| {
            self.document.namespaces.push(name.into());
            self.document.namespaces.len() - 1
        })
    }

    fn lookup(&self, prefix: &str) -> Result<usize, XmlError> {
        let found = self.declarations.iter().rev().find(|(known, _)| **known == *prefix);
        match found {
            Some((_, namespace)) => Ok(*namespace),
            None if prefix.is_empty() => Ok(NONE),
            None => Err(XmlError::Prefix(shortened(prefix))),
        }
    }

    fn end(&mut self) {
        self.open.pop();
        if let Some(before) = self.before.pop() {
            self.declarations.truncate(before);
        }
    }

    fn text(&mut self, text: &str) -> Result<(), XmlError> {
        let Some(at) = self.open.last() else {
            let is_space = text.chars().all(|c| c.is_ascii_whitespace() || c == '\u{feff}');
            return if is_space { Ok(()) } else { Err(XmlError::BesideRoot) };
        };
        if let Some(c) = text.chars().find(|c| !is_char(*c)) {
            return Err(XmlError::Malformed(format!("the character {} cannot be in XML", c.escape_unicode()), 0));
        }
        let content = &mut self.document.elements[*at].content;
        match content.last_mut() {
            Some(Content::Text(before)) => before.push_str(text),
            _ => content.push(Content::Text(text.to_owned())),
        }
        Ok(())
    }
}

/// The five of XML, and characters by their number.
fn entity(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        name => name.strip_prefix('#')?,
    };
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    code.ok().filter(|_| !number.starts_with('+')).and_then(char::from_u32).filter(|c| is_char(*c))
}

fn shortened(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 120;
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
