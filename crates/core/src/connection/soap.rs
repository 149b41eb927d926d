//! Where a SOAP connection's requests go, and how its envelopes are made.
//!
//! It must not know what an envelope looks like.

use super::RestTarget;
use crate::soap::SoapVersion;
use crate::success_if::SuccessIf;

#[derive(Clone, Debug, PartialEq)]
pub struct SoapTarget {
    /// The way there: SOAP goes over HTTP.
    pub http: RestTarget,
    pub version: SoapVersion,
    /// Of operations that have none of their own; may be empty.
    pub action: String,
    /// Whether the content type of SOAP 1.2 has the parameter `action`, which some servers demand and others refuse.
    pub action_in_type: bool,
    /// Of the elements of operations that have none of their own; may be empty.
    pub namespace: String,
    pub element_form: ElementForm,
    /// Prefixes that messages may use, and their namespaces.
    pub namespaces: Vec<(String, String)>,
    /// Header blocks of every request, as XML that declares what it uses.
    pub headers: String,
    pub addressing: Option<WsAddressing>,
    pub operations: Vec<SoapOperation>,
    /// What an answer has to say beside its status, for services that say 200 to everything.
    pub success_if: Option<SuccessIf>,
}

/// Whether the elements inside an operation's element are in its namespace; the schema of the service says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementForm {
    Qualified,
    Unqualified,
}

/// Header blocks of WS-Addressing. Empty texts stand for what follows from the rest: the action of the operation, the address of the connection,
/// and an answer on the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WsAddressing {
    pub action: String,
    pub to: String,
    pub reply_to: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoapOperation {
    pub name: String,
    /// Empty for none.
    pub action: String,
    /// The element of its request, where it is not the operation's name in the connection's namespace.
    pub element: Option<ElementName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementName {
    /// Empty for none.
    pub namespace: String,
    pub local: String,
}

impl SoapOperation {
    /// Reads what is written for one operation: an action, an element as `{namespace}name`, or both with a space between.
    pub fn parse(name: &str, text: &str) -> Option<Self> {
        let (action, element) = match text.find('{') {
            Some(0) => ("", Some(text)),
            Some(at) => (text[..at].strip_suffix(' ')?, Some(&text[at..])),
            None => (text, None),
        };
        let element = match element {
            Some(element) => Some(ElementName::parse(element)?),
            None => None,
        };
        is_action(action).then(|| SoapOperation { name: name.to_owned(), action: action.to_owned(), element })
    }

    /// The other way round.
    pub fn written(&self) -> String {
        let element = self.element.as_ref().map(|name| format!("{{{}}}{}", name.namespace, name.local));
        match (self.action.is_empty(), element) {
            (true, Some(element)) => element,
            (false, Some(element)) => format!("{} {element}", self.action),
            (_, None) => self.action.clone(),
        }
    }
}

impl ElementName {
    fn parse(text: &str) -> Option<Self> {
        let (namespace, local) = text.strip_prefix('{')?.split_once('}')?;
        let fits = is_namespace(namespace) && is_local_name(local);
        fits.then(|| ElementName { namespace: namespace.to_owned(), local: local.to_owned() })
    }
}

/// Visible ASCII characters without quotes and braces, as addresses are; or nothing.
pub fn is_action(text: &str) -> bool {
    text.len() <= 2048 && text.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\{}".contains(&b))
}

/// May be empty.
pub fn is_namespace(text: &str) -> bool {
    text.len() <= 2048 && text.chars().all(|c| !c.is_control() && !c.is_whitespace() && !matches!(c, '{' | '}'))
}

/// A name that XML takes in any case; the codec has the last word on letters of other scripts.
pub fn is_local_name(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = |c: char| c.is_alphabetic() || c == '_';
    text.len() <= 512
        && chars.next().is_some_and(starts)
        && chars.all(|c| starts(c) || c.is_numeric() || matches!(c, '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_written_as_it_is_read() {
        for (text, action, element) in [
            ("", "", None),
            ("urn:submit", "urn:submit", None),
            ("{urn:r}Submit", "", Some(("urn:r", "Submit"))),
            ("http://x/y#z {}Submit", "http://x/y#z", Some(("", "Submit"))),
        ] {
            let read = SoapOperation::parse("op", text).unwrap();
            assert_eq!(read.action, action);
            let name = element.map(|(namespace, local): (&str, &str)| ElementName {
                namespace: namespace.to_owned(),
                local: local.to_owned(),
            });
            assert_eq!(read.element, name);
            assert_eq!(read.written(), text);
        }
        for bad in ["a b", "urn:a{urn:r}Submit", "{urn:r}", "{urn:r", "{urn:r}1", "{u}a b", "\"urn:a\""] {
            assert_eq!(SoapOperation::parse("op", bad), None, "{bad}");
        }
    }
}
