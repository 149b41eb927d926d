//! WSDL 1.1, read for what a client needs: the address, the version of SOAP, the operations with their actions and elements.
//!
//! Nothing is fetched: what is imported has to be given along. Messages and schemas are looked up by their names in all the documents together. This
//! module must not know what a connection is.

use std::collections::BTreeMap;

use postrider_core::connection::{ElementForm, ElementName, SoapOperation};
use postrider_core::soap::SoapVersion;

use super::xml::{self, Document, Node, XmlError};

const WSDL_NS: &str = "http://schemas.xmlsoap.org/wsdl/";
const SOAP11_BINDING_NS: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
const SOAP12_BINDING_NS: &str = "http://schemas.xmlsoap.org/wsdl/soap12/";
const XSD_NS: &str = "http://www.w3.org/2001/XMLSchema";
const WSDL20_NS: &str = "http://www.w3.org/ns/wsdl";

/// A document longer than this is refused, and so are all of them together.
pub const WSDL_BYTES_MAX: usize = 4 << 20;

/// What one port of a service offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub service: String,
    pub name: String,
    pub version: SoapVersion,
    /// Where the service says that it is; empty where it does not say.
    pub location: String,
    /// Of the elements of its operations, where it is the same for all; else that of the document.
    pub namespace: String,
    pub element_form: ElementForm,
    pub operations: Vec<SoapOperation>,
}

/// Why a text is no WSDL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WsdlError {
    #[error("it has more than {WSDL_BYTES_MAX} bytes")]
    TooLong,
    #[error("it is no XML that can be read: {0}")]
    Xml(#[from] XmlError),
    #[error("it is WSDL 2.0, and only 1.1 can be read")]
    Version2,
    #[error("its root is `{0}`, which is no WSDL")]
    NoWsdl(String),
    #[error("it has no binding for SOAP over HTTP{0}")]
    NoBinding(String),
}

/// Reads the ports of the first document. `others` are those that it imports.
pub fn read(text: &str, others: &[&str]) -> Result<Vec<Port>, WsdlError> {
    if text.len() + others.iter().map(|other| other.len()).sum::<usize>() > WSDL_BYTES_MAX {
        return Err(WsdlError::TooLong);
    }
    let documents: Vec<Document> = [text].iter().chain(others).map(|text| xml::read(text)).collect();
    if let Some(error) = documents.iter().find_map(|document| document.error.clone()) {
        return Err(error.into());
    }
    let root = documents[0].root().ok_or(XmlError::Empty)?;
    if root.namespace() == WSDL20_NS {
        return Err(WsdlError::Version2);
    }
    if !root.is(WSDL_NS, "definitions") {
        return Err(WsdlError::NoWsdl(root.local().to_owned()));
    }
    let all = Definitions::of(&documents);
    let mut ports: Vec<Port> = all.ports();
    if ports.is_empty() {
        // A document of bindings alone, whose services are elsewhere.
        ports = all.bindings.values().filter_map(|binding| all.port("", "", *binding, "")).collect();
    }
    if ports.is_empty() {
        return Err(WsdlError::NoBinding(all.imports()));
    }
    Ok(ports)
}

/// All documents together, by name.
struct Definitions<'d> {
    roots: Vec<Node<'d>>,
    bindings: BTreeMap<&'d str, Node<'d>>,
    port_types: BTreeMap<&'d str, Node<'d>>,
    messages: BTreeMap<&'d str, Node<'d>>,
}

impl<'d> Definitions<'d> {
    fn of(documents: &'d [Document]) -> Self {
        let roots: Vec<Node<'d>> = documents.iter().filter_map(Document::root).collect();
        let named = |local: &str| -> BTreeMap<&'d str, Node<'d>> {
            let all = roots.iter().flat_map(|root| root.children());
            all.filter(|node| node.is(WSDL_NS, local)).filter_map(|node| Some((name_of(node)?, node))).collect()
        };
        Definitions { bindings: named("binding"), port_types: named("portType"), messages: named("message"), roots }
    }

    fn ports(&self) -> Vec<Port> {
        let services = self.roots.iter().flat_map(|root| root.children()).filter(|node| node.is(WSDL_NS, "service"));
        let mut ports = Vec::new();
        for service in services {
            for port in service.children().filter(|node| node.is(WSDL_NS, "port")) {
                let binding = port.attribute("", "binding").and_then(|name| self.bindings.get(local_of(name)));
                let location = soap_child(port, "address").and_then(|(address, _)| address.attribute("", "location"));
                let names = (name_of(service).unwrap_or_default(), name_of(port).unwrap_or_default());
                let read =
                    binding.and_then(|binding| self.port(names.0, names.1, *binding, location.unwrap_or_default()));
                ports.extend(read);
            }
        }
        ports
    }

    /// `None` for a binding that is not for SOAP.
    fn port(&self, service: &str, name: &str, binding: Node<'d>, location: &str) -> Option<Port> {
        let (soap, version) = soap_child(binding, "binding")?;
        let style = soap.attribute("", "style").unwrap_or("document");
        let port_type = binding.attribute("", "type").and_then(|name| self.port_types.get(local_of(name)));
        let mut is_rpc = style == "rpc";
        let mut found = Vec::new();
        for operation in binding.children().filter(|node| node.is(WSDL_NS, "operation")) {
            let Some(name) = name_of(operation) else { continue };
            let soap = soap_child(operation, "operation").map(|(soap, _)| soap);
            let action = soap.and_then(|soap| soap.attribute("", "soapAction")).unwrap_or_default();
            let own_style = soap.and_then(|soap| soap.attribute("", "style")).unwrap_or(style);
            is_rpc |= own_style == "rpc";
            let element = match own_style {
                "rpc" => body_namespace(operation).map(|namespace| (namespace, name)),
                _ => port_type.and_then(|port_type| self.element(*port_type, operation, name)),
            };
            found.push((name, action, element));
        }
        let target = self.target_namespace(binding);
        let namespace =
            found.iter().find_map(|(_, _, element)| element.map(|(namespace, _)| namespace)).unwrap_or(target);
        let is_usual = |name: &str, element: (&str, &str)| element == (namespace, name);
        let operation = |(name, action, element): &(&str, &str, Option<(&str, &str)>)| SoapOperation {
            name: (*name).to_owned(),
            action: (*action).to_owned(),
            element: element
                .filter(|element| !is_usual(name, *element))
                .map(|(namespace, local)| ElementName { namespace: namespace.to_owned(), local: local.to_owned() }),
        };
        let form = if is_rpc { ElementForm::Unqualified } else { self.element_form(namespace) };
        Some(Port {
            service: service.to_owned(),
            name: name.to_owned(),
            version,
            location: location.to_owned(),
            namespace: namespace.to_owned(),
            element_form: form,
            operations: found.iter().map(operation).collect(),
        })
    }

    /// Of the message that an operation of a document style takes.
    fn element(&self, port_type: Node<'d>, bound: Node<'d>, name: &str) -> Option<(&'d str, &'d str)> {
        let operations = port_type.children().filter(|node| node.is(WSDL_NS, "operation"));
        let input_of = |operation: Node<'d>| operation.child(WSDL_NS, "input");
        let mut named = operations.filter(|operation| name_of(*operation) == Some(name));
        // Overloaded operations are told apart by the names of their inputs.
        let wanted = input_of(bound).and_then(name_of);
        let first = named.next()?;
        let operation = match wanted {
            Some(_) if input_of(first).and_then(name_of) != wanted => {
                named.find(|operation| input_of(*operation).and_then(name_of) == wanted).unwrap_or(first)
            }
            _ => first,
        };
        let message = self.messages.get(local_of(input_of(operation)?.attribute("", "message")?))?;
        let part =
            message.children().find(|node| node.is(WSDL_NS, "part") && node.attribute("", "element").is_some())?;
        let element = part.attribute("", "element")?;
        let (prefix, local) = element.split_once(':').unwrap_or(("", element));
        Some((part.resolve(prefix)?, local))
    }

    fn target_namespace(&self, of: Node<'d>) -> &'d str {
        let holds = |root: &&Node<'d>| {
            root.children().any(|child| child.is(WSDL_NS, "binding") && name_of(child) == name_of(of))
        };
        let root = self.roots.iter().find(holds).or(self.roots.first());
        root.and_then(|root| root.attribute("", "targetNamespace")).unwrap_or_default()
    }

    /// What the schema of a namespace says; unqualified is the default of XML Schema. Where the schema was not given, nearly all are qualified.
    fn element_form(&self, namespace: &str) -> ElementForm {
        let schemas = self.roots.iter().flat_map(|root| {
            let inside = root.children().filter(|node| node.is(WSDL_NS, "types")).flat_map(|types| types.children());
            inside.chain([*root]).filter(|node| node.is(XSD_NS, "schema"))
        });
        let mut of_namespace = schemas.filter(|schema| schema.attribute("", "targetNamespace") == Some(namespace));
        // One without elements of its own only imports the others.
        let has_content =
            |schema: &Node<'d>| schema.children().any(|node| !matches!(node.local(), "import" | "annotation"));
        match of_namespace.find(has_content).map(|schema| schema.attribute("", "elementFormDefault")) {
            None | Some(Some("qualified")) => ElementForm::Qualified,
            Some(_) => ElementForm::Unqualified,
        }
    }

    /// What is imported, for people who have to give it along.
    fn imports(&self) -> String {
        let all = self.roots.iter().flat_map(|root| root.children()).filter(|node| node.is(WSDL_NS, "import"));
        let locations: Vec<&str> = all.filter_map(|import| import.attribute("", "location")).take(5).collect();
        if locations.is_empty() {
            String::new()
        } else {
            format!("; it imports {}, which was not given", locations.join(", "))
        }
    }
}

fn name_of(node: Node<'_>) -> Option<&str> {
    node.attribute("", "name")
}

fn local_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

/// An element of the binding for SOAP, and of which version it is.
fn soap_child<'d>(node: Node<'d>, local: &str) -> Option<(Node<'d>, SoapVersion)> {
    let of = |namespace, version| node.child(namespace, local).map(|child| (child, version));
    of(SOAP11_BINDING_NS, SoapVersion::V11).or_else(|| of(SOAP12_BINDING_NS, SoapVersion::V12))
}

fn body_namespace(operation: Node<'_>) -> Option<&str> {
    soap_child(operation.child(WSDL_NS, "input")?, "body")?.0.attribute("", "namespace")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"<?xml version="1.0"?>
<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
  xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/" xmlns:t="urn:r" xmlns:q="urn:q" targetNamespace="urn:r">
 <wsdl:types><xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:r" elementFormDefault="qualified">
   <xs:element name="Submit"/></xs:schema></wsdl:types>
 <wsdl:message name="SubmitIn"><wsdl:part name="p" element="t:Submit"/></wsdl:message>
 <wsdl:message name="AskIn"><wsdl:part name="p" element="q:AskRequest"/></wsdl:message>
 <wsdl:portType name="PT">
  <wsdl:operation name="Submit"><wsdl:input message="t:SubmitIn"/></wsdl:operation>
  <wsdl:operation name="Ask"><wsdl:input message="t:AskIn"/></wsdl:operation>
 </wsdl:portType>
 <wsdl:binding name="B11" type="t:PT"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
  <wsdl:operation name="Submit"><soap:operation soapAction="urn:submit"/></wsdl:operation>
  <wsdl:operation name="Ask"><soap:operation soapAction=""/></wsdl:operation>
 </wsdl:binding>
 <wsdl:binding name="B12" type="t:PT"><soap12:binding style="document"/>
  <wsdl:operation name="Submit"><soap12:operation soapAction="urn:submit"/></wsdl:operation></wsdl:binding>
 <wsdl:binding name="BH" type="t:PT"><http:binding xmlns:http="http://schemas.xmlsoap.org/wsdl/http/"/></wsdl:binding>
 <wsdl:service name="S">
  <wsdl:port name="P11" binding="t:B11"><soap:address location="http://r.example.org/iis"/></wsdl:port>
  <wsdl:port name="P12" binding="t:B12"><soap12:address location="http://r.example.org/iis12"/></wsdl:port>
  <wsdl:port name="PH" binding="t:BH"/>
 </wsdl:service>
</wsdl:definitions>"#;

    #[test]
    fn each_port_for_soap_has_its_operations() {
        let ports = read(DOCUMENT, &[]).unwrap();
        let names: Vec<_> =
            ports.iter().map(|port| (port.name.as_str(), port.version, port.location.as_str())).collect();
        assert_eq!(
            names,
            [
                ("P11", SoapVersion::V11, "http://r.example.org/iis"),
                ("P12", SoapVersion::V12, "http://r.example.org/iis12")
            ]
        );
        let written: Vec<_> = ports[0].operations.iter().map(|op| (op.name.as_str(), op.written())).collect();
        assert_eq!(written, [("Submit", "urn:submit".to_owned()), ("Ask", "{urn:q}AskRequest".to_owned())]);
        assert_eq!((ports[0].namespace.as_str(), ports[0].element_form), ("urn:r", ElementForm::Qualified));
    }

    #[test]
    fn rpc_operations_are_elements_of_their_own_name_with_unqualified_parts() {
        let rpc = DOCUMENT.replace("<soap:binding ", "<soap:binding style=\"rpc\" ").replace(
            "<soap:operation soapAction=\"urn:submit\"/>",
            "<soap:operation soapAction=\"urn:submit\"/><wsdl:input><soap:body namespace=\"urn:rpc\"/></wsdl:input>",
        );
        let port = &read(&rpc, &[]).unwrap()[0];
        assert_eq!((port.namespace.as_str(), port.element_form), ("urn:rpc", ElementForm::Unqualified));
        assert_eq!(port.operations[0].written(), "urn:submit");
    }

    #[test]
    fn what_is_imported_has_to_be_given_along() {
        let (head, types) = DOCUMENT.split_once(" <wsdl:types>").unwrap();
        let (types, rest) = types.split_once("</wsdl:types>").unwrap();
        let outer = format!("{head}<wsdl:import namespace=\"urn:r\" location=\"inner.wsdl\"/></wsdl:definitions>");
        let told = read(&outer, &[]).unwrap_err().to_string();
        assert!(told.contains("inner.wsdl"), "{told}");
        let inner = format!("{head}{rest}");
        let ports = read(&outer, &[&inner, types]).unwrap();
        assert_eq!(ports, read(DOCUMENT, &[]).unwrap());
    }

    #[test]
    fn what_is_no_wsdl_says_why() {
        for (text, why) in [
            ("", "empty"),
            ("<html/>", "`html`"),
            ("<!DOCTYPE a><definitions/>", "DTD"),
            ("<description xmlns='http://www.w3.org/ns/wsdl'/>", "2.0"),
            ("<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'/>", "no binding"),
        ] {
            let told = read(text, &[]).unwrap_err().to_string();
            assert!(told.contains(why), "{text}: {told}");
        }
        assert_eq!(read(&" ".repeat(WSDL_BYTES_MAX + 1), &[]), Err(WsdlError::TooLong));
    }
}
