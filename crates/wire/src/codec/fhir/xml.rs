//! Resources in XML, as the same resources in JSON: only what an answer is asked for, narrative left out.

use serde_json::{Map, Value};

use crate::codec::soap::xml::{self, Node};

const NAMESPACE: &str = "http://hl7.org/fhir";
/// Elements that come several times, of those that are looked at.
const LISTS: [&str; 5] = ["issue", "entry", "link", "expression", "location"];

/// `None` for what is no resource of FHIR that can be read to its end.
pub(super) fn read(text: &str) -> Option<Value> {
    let document = xml::read(text);
    let root = document.root().filter(|root| document.error.is_none() && root.namespace() == NAMESPACE)?;
    Some(Value::Object(resource(root)))
}

fn resource(node: Node<'_>) -> Map<String, Value> {
    let mut members = members(node);
    members.insert("resourceType".to_owned(), node.local().into());
    members
}

fn members(node: Node<'_>) -> Map<String, Value> {
    let mut members = Map::new();
    for child in node.children().filter(|child| child.namespace() == NAMESPACE) {
        let name = child.local();
        let value = match name {
            // In JSON a resource inside of an entry is the object itself.
            "resource" | "outcome" => {
                child.children().next().map_or(Value::Null, |inner| Value::Object(resource(inner)))
            }
            _ => value(child),
        };
        // In an entry's response, `location` is one text.
        let is_list = LISTS.contains(&name) && node.local() != "response";
        match members.get_mut(name) {
            Some(Value::Array(list)) => list.push(value),
            Some(_) => {}
            None if is_list => drop(members.insert(name.to_owned(), Value::Array(vec![value]))),
            None => drop(members.insert(name.to_owned(), value)),
        }
    }
    members
}

fn value(node: Node<'_>) -> Value {
    match node.attribute("", "value") {
        Some(text) => text.into(),
        None => Value::Object(members(node)),
    }
}
