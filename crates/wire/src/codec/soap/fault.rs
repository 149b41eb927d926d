//! Both shapes of a fault: SOAP 1.1, section 4.4, and SOAP 1.2, section 5.4.
//!
//! Some servers answer in another version than they were asked in, and some mix the two, so both are looked for. This module must not know of statuses.

use postrider_core::soap::{SoapFault, SoapVersion};
use serde_json::Value;

use super::envelope::{SOAP11_NS, SOAP12_NS, namespace};
use super::mapping::value_of;
use super::multipart::Attachments;
use super::xml::Node;

/// Of a reason or a code, kept of a fault.
const TEXT_CHARS_MAX: usize = 2000;
const SUBCODES_MAX: usize = 10;

pub(super) fn is_fault(node: Node<'_>) -> bool {
    node.local() == "Fault" && [SOAP11_NS, SOAP12_NS].contains(&node.namespace())
}

/// What a fault says, as far as it came.
pub(super) fn read(fault: Node<'_>, attachments: &mut Attachments<'_>) -> SoapFault {
    // Children of 1.1 are in no namespace; some servers put them into that of the envelope.
    let child = |names: [&str; 2]| fault.children().find(|child| names.contains(&child.local()));
    let code = child(["faultcode", "Code"]);
    let value = |code: Node<'_>| {
        let value = code.children().find(|child| child.local() == "Value").unwrap_or(code);
        without_prefix(value.text().trim())
    };
    let mut subcodes = Vec::new();
    let mut inner = code;
    while let Some(subcode) = inner.and_then(|code| code.children().find(|child| child.local() == "Subcode")) {
        if subcodes.len() >= SUBCODES_MAX {
            break;
        }
        subcodes.push(value(subcode));
        inner = Some(subcode);
    }
    let detail = child(["detail", "Detail"]).map(|detail| value_of(detail, attachments));
    let actor = child(["faultactor", "Role"]).or_else(|| child(["Node", "node"]));
    SoapFault {
        code: code.map_or_else(String::new, value),
        subcodes,
        reason: child(["faultstring", "Reason"]).map_or_else(String::new, reason),
        actor: actor.map(|actor| shortened(actor.text().trim())).filter(|actor| !actor.is_empty()),
        detail: detail.filter(|detail| *detail != Value::String(String::new())).unwrap_or(Value::Null),
    }
}

/// In English if it is there in several languages, and otherwise the first.
fn reason(reason: Node<'_>) -> String {
    const XML_NS: &str = "http://www.w3.org/XML/1998/namespace";
    let is_english = |text: &Node<'_>| text.attribute(XML_NS, "lang").is_some_and(|lang| lang.starts_with("en"));
    let texts = || reason.children().filter(|child| child.local() == "Text");
    let text = texts().find(is_english).or_else(|| texts().next()).unwrap_or(reason);
    shortened(text.text().trim())
}

/// `soap:Client.Bad` and `Client.Bad` are one code.
fn without_prefix(code: &str) -> String {
    shortened(code.split_once(':').map_or(code, |(_, local)| local))
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// Writes a fault as the content of a body. `detail` is XML that is known to be well-formed, or empty.
pub fn write(version: SoapVersion, code: &str, reason: &str, detail: &str) -> String {
    use super::xml::escape_into;
    let mut out = format!("<soap:Fault xmlns:soap=\"{}\">", namespace(version));
    match version {
        SoapVersion::V11 => {
            out.push_str("<faultcode>soap:");
            escape_into(&mut out, code);
            out.push_str("</faultcode><faultstring>");
            escape_into(&mut out, reason);
            out.push_str("</faultstring>");
            if !detail.is_empty() {
                out.push_str(&format!("<detail>{detail}</detail>"));
            }
        }
        SoapVersion::V12 => {
            out.push_str("<soap:Code><soap:Value>soap:");
            escape_into(&mut out, code);
            out.push_str("</soap:Value></soap:Code><soap:Reason><soap:Text xml:lang=\"en\">");
            escape_into(&mut out, reason);
            out.push_str("</soap:Text></soap:Reason>");
            if !detail.is_empty() {
                out.push_str(&format!("<soap:Detail>{detail}</soap:Detail>"));
            }
        }
    }
    out.push_str("</soap:Fault>");
    out
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;
    use serde_json::json;

    fn fault(text: &str) -> SoapFault {
        let document = xml::read(text);
        let root = document.root().unwrap();
        assert!(is_fault(root), "{text}");
        read(root, &mut Attachments::none())
    }

    #[test]
    fn s15_both_shapes_are_read() {
        let old = fault(&format!(
            "<s:Fault xmlns:s='{SOAP11_NS}'><faultcode>s:Client.Bad</faultcode><faultstring>Né en 2090 ?</faultstring>\
             <faultactor/><detail><e:x xmlns:e='u'>7</e:x></detail></s:Fault>"
        ));
        assert_eq!((old.code.as_str(), old.reason.as_str(), old.actor), ("Client.Bad", "Né en 2090 ?", None));
        assert_eq!((old.detail, old.subcodes.len()), (json!({"x": "7"}), 0));
        let new = fault(&format!(
            "<s:Fault xmlns:s='{SOAP12_NS}'><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>m:A</s:Value>\
             <s:Subcode><s:Value>B</s:Value></s:Subcode></s:Subcode></s:Code><s:Reason><s:Text xml:lang='de'>schlecht</s:Text>\
             <s:Text xml:lang='en-GB'>bad</s:Text></s:Reason><s:Role>urn:r</s:Role></s:Fault>"
        ));
        assert_eq!((new.code.as_str(), new.reason.as_str(), new.actor.as_deref()), ("Sender", "bad", Some("urn:r")));
        assert_eq!((new.subcodes, new.detail), (vec!["A".to_owned(), "B".to_owned()], Value::Null));
    }

    #[test]
    fn a_fault_that_was_cut_says_what_came() {
        let cut = fault(&format!("<s:Fault xmlns:s='{SOAP11_NS}'><faultcode>s:Server</faultcode><faultstring>no bed"));
        assert_eq!((cut.code.as_str(), cut.reason.as_str()), ("Server", "no bed"));
        let empty = fault(&format!("<s:Fault xmlns:s='{SOAP12_NS}'/>"));
        assert_eq!((empty.code.as_str(), empty.reason.as_str()), ("", ""));
    }

    #[test]
    fn what_is_written_is_read() {
        for (version, code) in [(SoapVersion::V11, "Client"), (SoapVersion::V12, "Sender")] {
            let read = fault(&write(version, code, "a <b> & c", "<x>1</x>"));
            assert_eq!((read.code.as_str(), read.reason.as_str(), read.detail), (code, "a <b> & c", json!({"x": "1"})));
        }
    }
}
