//! The other side of SOAP: what a channel needs of a request's envelope, and the envelopes that it answers with (Z42, Z43).
//!
//! This module must not know of HTTP but for what SOAP says about it.

use postrider_core::connection::{ElementName, SoapOperation};
use postrider_core::soap::SoapVersion;

use super::envelope;
use super::multipart::essence;
use super::xml::{self, escape_into};
use super::{action, fault};

/// The operation of a WSDL whose channel names none.
const ANY_OPERATION: &str = "submit";

/// What a request asks for: the first element of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub version: SoapVersion,
    /// Empty for none.
    pub namespace: String,
    pub local: String,
}

/// Why a request is not taken. Whose fault it is says the code of the fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    #[error("this is no envelope of SOAP: {0}")]
    NoEnvelope(String),
    #[error("SOAP {given} was spoken, and this address takes SOAP {taken}")]
    Version { given: &'static str, taken: &'static str },
    #[error("the body of the envelope has no element")]
    NoOperation,
    #[error("messages in parts are not taken here")]
    InParts,
    #[error("the envelope is not in UTF-8")]
    NotUtf8,
}

/// The action of a request, empty where it has none.
pub fn action_of(header: Option<&str>, content_type: Option<&str>) -> String {
    action::read(header, content_type).unwrap_or_default()
}

/// # Errors
/// Nothing may be stored of what cannot be read: its caller could not be told so later.
pub fn read(taken: SoapVersion, content_type: Option<&str>, body: &[u8]) -> Result<Asked, NotTaken> {
    if content_type.is_some_and(|text| essence(text).starts_with("multipart/")) {
        return Err(NotTaken::InParts);
    }
    let text = std::str::from_utf8(body).map_err(|_| NotTaken::NotUtf8)?;
    let document = xml::read(text.strip_prefix('\u{feff}').unwrap_or(text));
    if let Some(error) = &document.error {
        return Err(NotTaken::NoEnvelope(error.to_string()));
    }
    let envelope = envelope::read(&document).map_err(|error| NotTaken::NoEnvelope(error.to_string()))?;
    if envelope.version != taken {
        return Err(NotTaken::Version { given: envelope.version.as_str(), taken: taken.as_str() });
    }
    let operation = envelope.body.children().next().ok_or(NotTaken::NoOperation)?;
    let (namespace, local) = (operation.namespace().to_owned(), operation.local().to_owned());
    Ok(Asked { version: envelope.version, namespace, local })
}

/// The content type of an answer.
pub const fn content_type(version: SoapVersion) -> &'static str {
    match version {
        SoapVersion::V11 => "text/xml; charset=utf-8",
        SoapVersion::V12 => "application/soap+xml; charset=utf-8",
    }
}

/// `submitResponse` of `submit`, and of `SubmitRequest` what its service would answer with.
pub fn response_name(local: &str) -> String {
    let stem = local.strip_suffix("Request").filter(|stem| !stem.is_empty()).unwrap_or(local);
    format!("{stem}Response")
}

/// The default acknowledgment: the operation's response element with `is_ok` and `cid`.
pub fn acknowledgment(asked: &Asked, cid: &str) -> String {
    let mut body = String::with_capacity(160);
    let name = response_name(&asked.local);
    body.push('<');
    body.push_str(&name);
    body.push_str(" xmlns=\"");
    escape_into(&mut body, &asked.namespace);
    body.push_str("\"><is_ok>true</is_ok><cid>");
    escape_into(&mut body, cid);
    body.push_str("</cid></");
    body.push_str(&name);
    body.push('>');
    envelope::write(asked.version, std::iter::empty(), "", &body)
}

/// Whose fault it is that nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    Caller,
    Server,
    /// The envelope is of another version.
    Version,
}

/// An envelope with a fault.
pub fn fault(version: SoapVersion, blame: Blame, reason: &str) -> String {
    let code = match (blame, version) {
        (Blame::Version, _) => "VersionMismatch",
        (Blame::Caller, SoapVersion::V11) => "Client",
        (Blame::Caller, SoapVersion::V12) => "Sender",
        (Blame::Server, SoapVersion::V11) => "Server",
        (Blame::Server, SoapVersion::V12) => "Receiver",
    };
    envelope::write(version, std::iter::empty(), "", &fault::write(version, code, reason, ""))
}

/// What a channel offers, for its WSDL.
pub struct Offer<'o> {
    /// The channel's name.
    pub name: &'o str,
    pub version: SoapVersion,
    /// Empty: one is made of the name.
    pub namespace: &'o str,
    /// Of operations that have none of their own.
    pub action: &'o str,
    pub operations: &'o [SoapOperation],
    /// Where it is.
    pub address: &'o str,
    /// Whether it answers with its acknowledgment, and not with what the service says.
    pub is_queued: bool,
}

/// A WSDL 1.1 document, document/literal. Requests may have anything in them; what comes back is the acknowledgment, or anything.
pub fn wsdl(offer: &Offer<'_>) -> String {
    let made = format!("urn:postrider:channel:{}", plain(offer.name));
    let namespace = if offer.namespace.is_empty() { &made } else { offer.namespace };
    let any = [SoapOperation { name: ANY_OPERATION.to_owned(), action: String::new(), element: None }];
    let operations = if offer.operations.is_empty() { &any[..] } else { offer.operations };
    let wire = match offer.version {
        SoapVersion::V11 => "http://schemas.xmlsoap.org/wsdl/soap/",
        SoapVersion::V12 => "http://schemas.xmlsoap.org/wsdl/soap12/",
    };
    let mut out = Text(String::with_capacity(2048));
    out.put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<wsdl:definitions xmlns:wsdl=\"http://schemas.xmlsoap.org/wsdl/\" xmlns:wire=\"");
    out.put(wire);
    out.put("\" xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" xmlns:tns=\"");
    out.escaped(namespace);
    out.put("\" targetNamespace=\"");
    out.escaped(namespace);
    out.put("\">\n<wsdl:types>\n");
    types(&mut out, namespace, operations, offer.is_queued);
    out.put("</wsdl:types>\n");
    for (at, operation) in operations.iter().enumerate() {
        let (element, response) = names(operation, namespace);
        for (suffix, element) in [("Input", element), ("Output", response)] {
            out.put(&format!(
                "<wsdl:message name=\"m{at}{suffix}\"><wsdl:part name=\"parameters\" element=\"e:{}\" xmlns:e=\"",
                element.local
            ));
            out.escaped(&element.namespace);
            out.put("\"/></wsdl:message>\n");
        }
    }
    out.put("<wsdl:portType name=\"ChannelPort\">\n");
    for (at, operation) in operations.iter().enumerate() {
        out.put(&format!(
            "<wsdl:operation name=\"{}\"><wsdl:input message=\"tns:m{at}Input\"/><wsdl:output message=\"tns:m{at}Output\"/></wsdl:operation>\n",
            operation.name
        ));
    }
    out.put("</wsdl:portType>\n<wsdl:binding name=\"ChannelBinding\" type=\"tns:ChannelPort\">\n<wire:binding style=\"document\" transport=\"http://schemas.xmlsoap.org/soap/http\"/>\n");
    for operation in operations {
        let action = if operation.action.is_empty() { offer.action } else { &operation.action };
        out.put(&format!("<wsdl:operation name=\"{}\"><wire:operation soapAction=\"", operation.name));
        out.escaped(action);
        out.put("\"/><wsdl:input><wire:body use=\"literal\"/></wsdl:input><wsdl:output><wire:body use=\"literal\"/></wsdl:output></wsdl:operation>\n");
    }
    out.put("</wsdl:binding>\n<wsdl:service name=\"Channel\"><wsdl:port name=\"ChannelPort\" binding=\"tns:ChannelBinding\"><wire:address location=\"");
    out.escaped(offer.address);
    out.put("\"/></wsdl:port></wsdl:service>\n</wsdl:definitions>\n");
    out.0
}

/// One schema for each namespace that elements are in.
fn types(out: &mut Text, namespace: &str, operations: &[SoapOperation], is_queued: bool) {
    let mut namespaces: Vec<String> = Vec::new();
    for operation in operations {
        let (element, _) = names(operation, namespace);
        if !namespaces.contains(&element.namespace) {
            namespaces.push(element.namespace);
        }
    }
    for of in namespaces {
        out.put("<xsd:schema elementFormDefault=\"qualified\"");
        if !of.is_empty() {
            out.put(" targetNamespace=\"");
            out.escaped(&of);
            out.put("\"");
        }
        out.put(">\n");
        let mut written: Vec<String> = Vec::new();
        for operation in operations {
            let (element, response) = names(operation, namespace);
            if element.namespace != of {
                continue;
            }
            for (local, is_response) in [(element.local, false), (response.local, true)] {
                if written.contains(&local) {
                    continue;
                }
                let content = if is_response && is_queued { ACKNOWLEDGMENT } else { ANYTHING };
                out.put(&format!("<xsd:element name=\"{local}\"><xsd:complexType><xsd:sequence>{content}</xsd:sequence></xsd:complexType></xsd:element>\n"));
                written.push(local);
            }
        }
        out.put("</xsd:schema>\n");
    }
}

const ACKNOWLEDGMENT: &str =
    "<xsd:element name=\"is_ok\" type=\"xsd:boolean\"/><xsd:element name=\"cid\" type=\"xsd:string\"/>";
const ANYTHING: &str = "<xsd:any minOccurs=\"0\" maxOccurs=\"unbounded\" namespace=\"##any\" processContents=\"lax\"/>";

/// The elements of an operation's request and of its response.
fn names(operation: &SoapOperation, namespace: &str) -> (ElementName, ElementName) {
    let element = operation
        .element
        .clone()
        .unwrap_or_else(|| ElementName { namespace: namespace.to_owned(), local: operation.name.clone() });
    let response = ElementName { namespace: element.namespace.clone(), local: response_name(&element.local) };
    (element, response)
}

/// A name as the end of a URN.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

struct Text(String);

impl Text {
    fn put(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn escaped(&mut self, text: &str) {
        escape_into(&mut self.0, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: SoapVersion, body: &str) -> String {
        envelope::write(version, [("n", "urn:a&b")].into_iter(), "", body)
    }

    #[test]
    fn z43_the_acknowledgment_wraps_the_operations_response_element() {
        for version in [SoapVersion::V11, SoapVersion::V12] {
            let asked = read(version, None, request(version, "<n:submit><x/></n:submit>").as_bytes()).unwrap();
            assert_eq!((asked.namespace.as_str(), asked.local.as_str()), ("urn:a&b", "submit"));
            let text = acknowledgment(&asked, "20260312-120534-7301-7f2c0e51a");
            let document = xml::read(&text);
            let envelope = envelope::read(&document).unwrap();
            let response = envelope.body.child("urn:a&b", "submitResponse").unwrap();
            let told: Vec<_> = response.children().map(|child| (child.local(), child.text())).collect();
            assert_eq!(told, [("is_ok", "true".to_owned()), ("cid", "20260312-120534-7301-7f2c0e51a".to_owned())]);
            assert_eq!((envelope.version, document.error.is_none()), (version, true));
        }
        assert_eq!(response_name("SubmitRequest"), "SubmitResponse");
        assert_eq!(response_name("Request"), "RequestResponse");
        let without = Asked { version: SoapVersion::V11, namespace: String::new(), local: "a".to_owned() };
        assert!(acknowledgment(&without, "c").contains("<aResponse xmlns=\"\">"));
    }

    #[test]
    fn z42_what_is_no_envelope_is_told_why() {
        let v11 = |body: &[u8]| read(SoapVersion::V11, Some("text/xml"), body);
        assert!(matches!(v11(b"{}"), Err(NotTaken::NoEnvelope(_))));
        assert!(matches!(v11(b"<!DOCTYPE a []><a/>"), Err(NotTaken::NoEnvelope(_))));
        assert_eq!(v11(b"\xff"), Err(NotTaken::NotUtf8));
        assert_eq!(v11(request(SoapVersion::V11, "").as_bytes()), Err(NotTaken::NoOperation));
        assert!(matches!(v11(request(SoapVersion::V12, "<a/>").as_bytes()), Err(NotTaken::Version { .. })));
        let in_parts = read(SoapVersion::V11, Some("Multipart/Related; boundary=x"), b"--x");
        assert_eq!(in_parts, Err(NotTaken::InParts));
        let cut = request(SoapVersion::V11, "<n:a/>");
        assert!(v11(&cut.as_bytes()[..cut.len() - 3]).is_err(), "half an envelope is none");
    }

    #[test]
    fn z42_a_wsdl_reads_back_with_what_it_offers() {
        let operations = [
            SoapOperation::parse("submit", "urn:s").unwrap(),
            SoapOperation::parse("cancel", "{urn:other}CancelRequest").unwrap(),
        ];
        for is_queued in [true, false] {
            let offer = Offer {
                name: "Intake <1>",
                version: SoapVersion::V11,
                namespace: "urn:r&d",
                action: "urn:all",
                operations: &operations,
                address: "http://h:1/soap?a=b&c",
                is_queued,
            };
            let text = wsdl(&offer);
            let document = xml::read(&text);
            assert_eq!(document.error, None, "{text}");
            assert!(text.contains("soapAction=\"urn:s\"") && text.contains("soapAction=\"urn:all\""));
            assert!(text.contains("element=\"e:CancelResponse\" xmlns:e=\"urn:other\""));
            assert_eq!(text.contains("name=\"is_ok\""), is_queued);
            let described = super::super::wsdl::read(&text, &[]);
            assert!(described.is_ok(), "{described:?}");
        }
    }
}
