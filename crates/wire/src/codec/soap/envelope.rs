//! The envelope of SOAP 1.1 and 1.2: written around header blocks and a body, given more header blocks, and read.
//!
//! This module must not know what is in a body.

use postrider_core::soap::SoapVersion;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::xml::{Document, Node, escape_into};

pub const SOAP11_NS: &str = "http://schemas.xmlsoap.org/soap/envelope/";
pub const SOAP12_NS: &str = "http://www.w3.org/2003/05/soap-envelope";

pub(super) const fn namespace(version: SoapVersion) -> &'static str {
    match version {
        SoapVersion::V11 => SOAP11_NS,
        SoapVersion::V12 => SOAP12_NS,
    }
}

fn version_of(namespace: &str) -> Option<SoapVersion> {
    match namespace {
        SOAP11_NS => Some(SoapVersion::V11),
        SOAP12_NS => Some(SoapVersion::V12),
        _ => None,
    }
}

/// What an envelope has in it.
pub(super) struct Envelope<'d> {
    pub(super) version: SoapVersion,
    pub(super) header: Option<Node<'d>>,
    pub(super) body: Node<'d>,
}

/// Why a document is no envelope, in words that continue "it is no envelope: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    #[error("{0}")]
    Xml(#[from] super::xml::XmlError),
    #[error("its root is `{0}`")]
    Root(String),
    #[error("it has no Body")]
    NoBody,
}

/// Reads as far as there is an envelope, also where the document breaks off further on.
pub(super) fn read(document: &Document) -> Result<Envelope<'_>, EnvelopeError> {
    let Some(root) = document.root() else {
        return Err(document.error.clone().unwrap_or(super::xml::XmlError::Empty).into());
    };
    let version = version_of(root.namespace()).filter(|_| root.local() == "Envelope");
    let version = version.ok_or_else(|| EnvelopeError::Root(root.local().to_owned()))?;
    let namespace = namespace(version);
    match (root.child(namespace, "Body"), &document.error) {
        (Some(body), _) => Ok(Envelope { version, header: root.child(namespace, "Header"), body }),
        (None, Some(error)) => Err(error.clone().into()),
        (None, None) => Err(EnvelopeError::NoBody),
    }
}

/// Writes an envelope. `declarations` are prefixes and namespaces, blocks and body XML that is known to be well-formed within them.
pub(super) fn write<'n>(
    version: SoapVersion,
    declarations: impl Iterator<Item = (&'n str, &'n str)>,
    blocks: &str,
    body: &str,
) -> String {
    let mut out = String::with_capacity(blocks.len() + body.len() + 256);
    out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?><soap:Envelope xmlns:soap=\"");
    out.push_str(namespace(version));
    out.push('"');
    for (prefix, namespace) in declarations {
        out.push_str(" xmlns:");
        out.push_str(prefix);
        out.push_str("=\"");
        escape_into(&mut out, namespace);
        out.push('"');
    }
    out.push('>');
    if !blocks.is_empty() {
        out.push_str("<soap:Header>");
        out.push_str(blocks);
        out.push_str("</soap:Header>");
    }
    out.push_str("<soap:Body>");
    out.push_str(body);
    out.push_str("</soap:Body></soap:Envelope>");
    out
}

/// Puts header blocks, which declare all that they use, in front of those that a whole envelope has. Everything else stays byte for byte. `None`
/// where the text is not an envelope that [`read`] takes.
pub(super) fn with_blocks(envelope: &str, blocks: &str) -> Option<String> {
    let mut reader = Reader::from_str(envelope);
    let root = loop {
        match reader.read_event().ok()? {
            Event::Start(start) => break start,
            Event::Eof | Event::Empty(_) => return None,
            _ => {}
        }
    };
    let prefix = prefix_of(&root);
    let named = |local: &str| if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") };
    let after_root = usize::try_from(reader.buffer_position()).ok()?;
    let (at, replaced, text) = loop {
        let before = usize::try_from(reader.buffer_position()).ok()?;
        match reader.read_event().ok()? {
            Event::Start(start) if start.local_name().as_ref() == "Header" => {
                let after = usize::try_from(reader.buffer_position()).ok()?;
                break (after, 0, blocks.to_owned());
            }
            Event::Empty(start) if start.local_name().as_ref() == "Header" => {
                let after = usize::try_from(reader.buffer_position()).ok()?;
                let name: &str = start.name().0;
                let open = envelope.get(before..after)?.strip_suffix("/>")?;
                break (before, after - before, format!("{open}>{blocks}</{name}>"));
            }
            Event::Start(_) | Event::Empty(_) => {
                let name = named("Header");
                break (after_root, 0, format!("<{name}>{blocks}</{name}>"));
            }
            Event::Eof => return None,
            _ => {}
        }
    };
    let mut out = String::with_capacity(envelope.len() + text.len());
    out.push_str(envelope.get(..at)?);
    out.push_str(&text);
    out.push_str(envelope.get(at + replaced..)?);
    Some(out)
}

fn prefix_of(start: &BytesStart<'_>) -> String {
    let name: &str = start.name().0;
    name.split_once(':').map_or_else(String::new, |(prefix, _)| prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for version in [SoapVersion::V11, SoapVersion::V12] {
            let declared = [("p", "urn:a&b")];
            let text = write(version, declared.into_iter(), "<p:h/>", "<p:b>1</p:b>");
            let document = xml::read(&text);
            let envelope = read(&document).unwrap();
            assert_eq!((document.error.clone(), envelope.version), (None, version));
            assert!(envelope.header.unwrap().child("urn:a&b", "h").is_some());
            assert_eq!(envelope.body.children().next().unwrap().text(), "1");
            assert!(!write(version, std::iter::empty(), "", "<b/>").contains("Header"));
        }
    }

    #[test]
    fn what_is_no_envelope_says_why() {
        let ns = SOAP11_NS;
        for (text, why) in [
            (String::new(), "empty"),
            ("<html><body>502</body></html>".to_owned(), "`html`"),
            ("<Envelope><Body/></Envelope>".to_owned(), "`Envelope`"),
            (format!("<e:Envelope xmlns:e='{ns}'/>"), "no Body"),
            (format!("<e:Envelope xmlns:e='{ns}'><e:Header>"), "ends inside"),
            (format!("<e:Envelope xmlns:e='{ns}'><Body/></e:Envelope>"), "no Body"),
        ] {
            let document = xml::read(&text);
            let told = read(&document).err().unwrap().to_string();
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn blocks_go_in_front_of_those_that_are_there_and_nothing_else_changes() {
        let ns = SOAP12_NS;
        for (before, after) in [
            (format!("<?xml version='1.0'?>\n<e:Envelope xmlns:e='{ns}'>\n "), "<e:Body/></e:Envelope>".to_owned()),
            (format!("<Envelope xmlns='{ns}'><!-- x -->"), "<Body/></Envelope>".to_owned()),
        ] {
            let text = format!("{before}{after}");
            let whole = with_blocks(&text, "<x xmlns=''/>").unwrap();
            let document = xml::read(&whole);
            let header = read(&document).unwrap().header.unwrap();
            assert_eq!((document.error.clone(), header.children().count()), (None, 1), "{whole}");
            assert_eq!(
                whole.replace("<e:Header><x xmlns=''/></e:Header>", "").replace("<Header><x xmlns=''/></Header>", ""),
                text
            );
        }
        let own = format!("<e:Envelope xmlns:e='{ns}'><e:Header k='1'><y/></e:Header><e:Body/></e:Envelope>");
        assert_eq!(with_blocks(&own, "<x/>").unwrap(), own.replace("<y/>", "<x/><y/>"));
        let empty = format!("<e:Envelope xmlns:e='{ns}'><e:Header k='1' /><e:Body/></e:Envelope>");
        let filled = empty.replace("<e:Header k='1' />", "<e:Header k='1' ><x/></e:Header>");
        assert_eq!(with_blocks(&empty, "<x/>").unwrap(), filled);
        assert_eq!(with_blocks("<e/>", "<x/>"), None);
    }
}
