//! From an operation and a message to an envelope.
//!
//! A body may be a message in JSON, the element of an operation in XML, or a whole envelope; what it begins with tells. The same arguments make the
//! same bytes. This module must not know how requests are sent.

use std::borrow::Cow;

use postrider_core::connection::{ElementForm, SoapOperation, SoapTarget};
use postrider_core::soap::{SoapCall, SoapVersion};

use super::envelope::{self, EnvelopeError};
use super::json::{self, Json};
use super::mapping::{KNOWN_PREFIXES, MappingError, Writer};
use super::xml::{self, XmlError, is_name};

/// A request that was understood, before its header blocks are known.
#[derive(Debug)]
pub struct Request<'a> {
    target: &'a SoapTarget,
    content: Content<'a>,
    blocks: String,
    /// Of [`KNOWN_PREFIXES`].
    used: Vec<&'static str>,
    /// Empty where nothing says it.
    pub operation: String,
    pub action: String,
}

#[derive(Debug)]
enum Content<'a> {
    /// The element inside the body.
    Element(Cow<'a, str>),
    Envelope(&'a str),
}

/// Why no envelope can be made of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is empty, and no operation is named")]
    Empty,
    #[error("it is neither an object of JSON nor XML")]
    Neither,
    #[error("it is {0}")]
    Json(String),
    #[error("{0}")]
    Mapping(#[from] MappingError),
    #[error("it is no XML that can be read: {0}")]
    Xml(XmlError),
    #[error("it is no envelope: {0}")]
    Envelope(EnvelopeError),
    #[error("it is an envelope of SOAP {found}, and the connection speaks SOAP {wanted}")]
    Version { found: &'static str, wanted: &'static str },
    #[error("the operation of a message in JSON has to be named")]
    NoOperation,
    #[error("the operation `{0}` cannot be the name of an element")]
    Operation(String),
    #[error("a whole envelope has header blocks of its own, so none can be given beside it")]
    HeadersTwice,
    #[error("the header blocks cannot be used: {0}")]
    Headers(Box<RequestError>),
}

/// Understands a request.
pub fn read<'a>(target: &'a SoapTarget, call: &SoapCall, body: &'a [u8]) -> Result<Request<'a>, RequestError> {
    let text = std::str::from_utf8(body).map_err(|_| RequestError::NotUtf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    let mut request = Request {
        target,
        content: Content::Element(Cow::Borrowed("")),
        blocks: target.headers.clone(),
        used: Vec::new(),
        operation: call.operation.clone(),
        action: String::new(),
    };
    match text.as_bytes().first() {
        None if call.operation.is_empty() => return Err(RequestError::Empty),
        None => request.take_json(Json::Object(Vec::new()))?,
        Some(b'{') => request.take_json(json::read(text).map_err(RequestError::Json)?)?,
        Some(b'<') => request.take_xml(text)?,
        Some(_) => return Err(RequestError::Neither),
    }
    request.take_headers(call)?;
    let operation = target.operations.iter().find(|known| known.name == request.operation);
    let own = operation.map_or("", |operation| operation.action.as_str());
    request.action = if own.is_empty() { target.action.clone() } else { own.to_owned() };
    Ok(request)
}

/// Whether the header blocks of a connection can be used.
pub fn check_blocks(blocks: &str) -> Result<(), XmlError> {
    xml::read(&format!("<h>{blocks}</h>")).error.map_or(Ok(()), Err)
}

impl<'a> Request<'a> {
    fn take_json(&mut self, message: Json<'_>) -> Result<(), RequestError> {
        if self.operation.is_empty() {
            return Err(RequestError::NoOperation);
        }
        let operation = self.target.operations.iter().find(|known| known.name == self.operation);
        let (namespace, local) = self.element_name(operation);
        if !is_name(local) {
            let shown = local.chars().take(200).collect();
            return Err(RequestError::Operation(shown));
        }
        let mut writer = Writer::new(&self.target.namespaces);
        let says_itself =
            |name: &str| matches!(&message, Json::Object(members) if members.iter().any(|(n, _)| n == name));
        let (name, own, prefix) = if namespace.is_empty() || says_itself("@xmlns") {
            (local.to_owned(), String::new(), String::new())
        } else {
            let mut declared = String::from(" xmlns");
            let mut prefix = String::new();
            if self.target.element_form == ElementForm::Unqualified {
                let is_free = |prefix: &String| {
                    !says_itself(&format!("@xmlns:{prefix}"))
                        && !self.target.namespaces.iter().any(|(known, _)| known == prefix)
                };
                prefix = (0..).map(|n| format!("ns{n}")).find(is_free).unwrap_or_default();
                declared.push(':');
                declared.push_str(&prefix);
            }
            declared.push_str("=\"");
            xml::escape_into(&mut declared, namespace);
            declared.push('"');
            let name = if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") };
            (name, declared, prefix)
        };
        writer.element(&name, (&own, &prefix), &message)?;
        self.used.extend(writer.used);
        self.content = Content::Element(Cow::Owned(writer.out));
        Ok(())
    }

    fn element_name<'o>(&'o self, operation: Option<&'o SoapOperation>) -> (&'o str, &'o str) {
        match operation.and_then(|operation| operation.element.as_ref()) {
            Some(element) => (&element.namespace, &element.local),
            None => (&self.target.namespace, &self.operation),
        }
    }

    fn take_xml(&mut self, text: &'a str) -> Result<(), RequestError> {
        let document = xml::read(text);
        if let Some(error) = document.error {
            return Err(RequestError::Xml(error));
        }
        let Some(root) = document.root() else { return Err(RequestError::Xml(XmlError::Empty)) };
        let mut first = root.local();
        if first == "Envelope" {
            let read = envelope::read(&document).map_err(RequestError::Envelope)?;
            if read.version != self.target.version {
                let (found, wanted) = (read.version.as_str(), self.target.version.as_str());
                return Err(RequestError::Version { found, wanted });
            }
            first = read.body.children().next().map_or("", |element| element.local());
            self.content = Content::Envelope(text);
        } else {
            self.content = Content::Element(Cow::Borrowed(without_declaration(text)));
        }
        if self.operation.is_empty() {
            self.operation = self.named_by_element(root.namespace(), first).to_owned();
        }
        Ok(())
    }

    /// The operation whose request is this element, or its name.
    fn named_by_element<'o>(&'o self, namespace: &str, local: &'o str) -> &'o str {
        let is_this = |operation: &&SoapOperation| {
            let element = operation.element.as_ref();
            element.is_some_and(|name| name.local == local && (name.namespace == namespace || namespace.is_empty()))
        };
        self.target.operations.iter().find(is_this).map_or(local, |operation| &operation.name)
    }

    fn take_headers(&mut self, call: &SoapCall) -> Result<(), RequestError> {
        let text = call.headers.trim();
        if text.is_empty() {
            return Ok(());
        }
        if matches!(self.content, Content::Envelope(_)) {
            return Err(RequestError::HeadersTwice);
        }
        let blamed = |error: RequestError| RequestError::Headers(Box::new(error));
        match text.as_bytes().first() {
            Some(b'<') => {
                check_blocks(text).map_err(|error| blamed(RequestError::Xml(error)))?;
                self.blocks.push_str(text);
            }
            Some(b'{') => {
                let headers = json::read(text).map_err(|error| blamed(RequestError::Json(error)))?;
                let mut writer = Writer::new(&self.target.namespaces);
                if let Json::Object(members) = &headers {
                    for (name, value) in members {
                        writer.element(name, ("", ""), value).map_err(|error| blamed(error.into()))?;
                    }
                }
                self.used.extend(writer.used);
                self.blocks.push_str(&writer.out);
            }
            _ => return Err(blamed(RequestError::Neither)),
        }
        Ok(())
    }

    /// The envelope. `computed`: header blocks made for this attempt, which declare all that they use.
    pub fn envelope(&self, computed: &str) -> Cow<'_, str> {
        let element = match &self.content {
            Content::Element(element) => element,
            Content::Envelope(text) => {
                let blocks = format!("{computed}{}", self.blocks);
                return match blocks.is_empty() {
                    true => Cow::Borrowed(*text),
                    false => envelope::with_blocks(text, &blocks).map_or(Cow::Borrowed(*text), Cow::Owned),
                };
            }
        };
        let own = self.target.namespaces.iter().map(|(prefix, namespace)| (prefix.as_str(), namespace.as_str()));
        let is_own = |prefix: &str| self.target.namespaces.iter().any(|(known, _)| known == prefix);
        let known = KNOWN_PREFIXES.into_iter().filter(|(prefix, _)| self.used.contains(prefix) && !is_own(prefix));
        let blocks = format!("{computed}{}", self.blocks);
        Cow::Owned(envelope::write(self.target.version, own.chain(known), &blocks, element))
    }

    pub fn version(&self) -> SoapVersion {
        self.target.version
    }
}

/// It has its place at the beginning of a document and nowhere else.
fn without_declaration(text: &str) -> &str {
    match text.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest.trim_start(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};
    use serde_json::{Value, json};

    fn target(settings: Value) -> SoapTarget {
        let mut written = json!({"host": "http://registry.example.org", "url_path": "/iis"});
        written.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let spec = ConnectionSpec::parse(ConnectionKind::Soap, written.as_object().unwrap()).unwrap();
        spec.target.soap().unwrap().clone()
    }

    fn body_of(envelope: &str) -> &str {
        let inside = envelope.split_once("<soap:Body>").unwrap().1;
        inside.strip_suffix("</soap:Body></soap:Envelope>").unwrap()
    }

    fn made(target: &SoapTarget, operation: &str, body: &str) -> Result<String, RequestError> {
        let call = SoapCall { operation: operation.to_owned(), headers: String::new() };
        Ok(read(target, &call, body.as_bytes())?.envelope("").into_owned())
    }

    // proves: Z34
    #[test]
    fn z34_a_message_becomes_the_element_of_its_operation() {
        for (settings, operation, body, element) in [
            (json!({}), "Submit", r#"{"a": 1}"#, "<Submit><a>1</a></Submit>"),
            (json!({"namespace": "urn:r"}), "Submit", r#"{"a": 1}"#, r#"<Submit xmlns="urn:r"><a>1</a></Submit>"#),
            (
                json!({"namespace": "urn:r", "element_form": "unqualified"}),
                "Submit",
                r#"{"a": 1, "@xmlns:ns0": "urn:x"}"#,
                r#"<ns1:Submit xmlns:ns1="urn:r" xmlns:ns0="urn:x"><a>1</a></ns1:Submit>"#,
            ),
            (json!({"namespace": "urn:r"}), "Submit", "", r#"<Submit xmlns="urn:r"/>"#),
            (json!({"namespace": "urn:r"}), "Submit", r#"{"@xmlns": "urn:own"}"#, r#"<Submit xmlns="urn:own"/>"#),
            (
                json!({"namespace": "urn:r", "operations": {"Submit": "{urn:q}SubmitRequest"}}),
                "Submit",
                "{}",
                r#"<SubmitRequest xmlns="urn:q"/>"#,
            ),
            (
                json!({"namespaces": {"q": "urn:q"}}),
                "Submit",
                r#"{"q:a": null}"#,
                r#"<Submit><q:a xsi:nil="true"/></Submit>"#,
            ),
            (
                json!({}),
                "",
                "<?xml version='1.0'?>\n<x:Submit xmlns:x='urn:x'>1</x:Submit>",
                "<x:Submit xmlns:x='urn:x'>1</x:Submit>",
            ),
        ] {
            let target = target(settings);
            let envelope = made(&target, operation, body).unwrap();
            assert_eq!(body_of(&envelope), element);
            assert_eq!(xml::read(&envelope).error, None, "{envelope}");
            assert_eq!(made(&target, operation, body).unwrap(), envelope, "the same again");
        }
    }

    #[test]
    fn the_action_is_that_of_the_operation_whoever_names_it() {
        let target =
            target(json!({"soap_action": "urn:any", "operations": {"Submit": "urn:submit {urn:q}SubmitRequest"}}));
        let envelope = "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><SubmitRequest/></e:Body></e:Envelope>";
        for (operation, body, action) in [
            ("Submit", "{}", "urn:submit"),
            ("Query", "{}", "urn:any"),
            ("", "<SubmitRequest xmlns='urn:q'/>", "urn:submit"),
            ("", "<SubmitRequest xmlns='urn:other'/>", "urn:any"),
            ("Submit", "<x/>", "urn:submit"),
            ("Submit", envelope, "urn:submit"),
        ] {
            let call = SoapCall { operation: operation.to_owned(), headers: String::new() };
            assert_eq!(read(&target, &call, body.as_bytes()).unwrap().action, action, "{operation} {body}");
        }
    }

    #[test]
    fn a_whole_envelope_goes_as_it_is_and_takes_computed_blocks_only() {
        let target = target(json!({"soap_version": "1.2"}));
        let text = "<e:Envelope xmlns:e='http://www.w3.org/2003/05/soap-envelope'><e:Body/></e:Envelope>";
        assert_eq!(made(&target, "", text).unwrap(), text);
        let read_one = read(&target, &SoapCall::default(), text.as_bytes()).unwrap();
        assert!(read_one.envelope("<b xmlns='urn:b'/>").contains("<e:Header><b xmlns='urn:b'/></e:Header><e:Body/>"));
        let headers = SoapCall { operation: String::new(), headers: "<h/>".to_owned() };
        assert_eq!(read(&target, &headers, text.as_bytes()).unwrap_err(), RequestError::HeadersTwice);
        let old = text.replace("http://www.w3.org/2003/05/soap-envelope", "http://schemas.xmlsoap.org/soap/envelope/");
        let told = made(&target, "", &old).unwrap_err().to_string();
        assert!(told.contains("SOAP 1.1") && told.contains("SOAP 1.2"), "{told}");
    }

    #[test]
    fn header_blocks_come_from_the_connection_the_request_and_the_attempt() {
        let settings = json!({"soap_headers": "<t:Tenant xmlns:t='urn:t'>7</t:Tenant>", "namespaces": {"q": "urn:q"}});
        let target = target(settings);
        let call =
            SoapCall { operation: "Op".to_owned(), headers: r##"{"q:Trace": {"@q:k": 1, "#text": "x"}}"##.to_owned() };
        let request = read(&target, &call, b"{}").unwrap();
        let envelope = request.envelope("<c/>");
        let blocks = "<c/><t:Tenant xmlns:t='urn:t'>7</t:Tenant><q:Trace q:k=\"1\">x</q:Trace>";
        assert!(envelope.contains(&format!("xmlns:q=\"urn:q\"><soap:Header>{blocks}</soap:Header>")), "{envelope}");
    }

    #[test]
    fn what_no_envelope_can_be_made_of_says_why() {
        let target = target(json!({}));
        for (operation, body, why) in [
            ("", "", "no operation is named"),
            ("", "{}", "has to be named"),
            ("a b", "{}", "`a b`"),
            ("Op", "[1]", "neither"),
            ("Op", "text", "neither"),
            ("Op", "{\"a\":", "no JSON"),
            ("Op", "{\"a b\": 1}", "`Op.a b`"),
            ("Op", "<a>", "ends inside"),
            ("Op", "<!DOCTYPE a><a/>", "DTD"),
            ("Op", "<Envelope/>", "no envelope"),
        ] {
            let told = made(&target, operation, body).unwrap_err().to_string();
            assert!(told.contains(why), "{body}: {told}");
        }
        let call = SoapCall { operation: "Op".to_owned(), headers: "<a>".to_owned() };
        assert!(read(&target, &call, b"{}").unwrap_err().to_string().contains("header blocks"));
        assert_eq!(read(&target, &SoapCall::default(), b"\xff").unwrap_err(), RequestError::NotUtf8);
    }
}
