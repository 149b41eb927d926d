//! JSON and XML for each other, both ways by one rule:
//!
//! | JSON | XML |
//! |---|---|
//! | `{"name": value}` | an element, in the order of the members |
//! | text, number, `true`, `false` | its text, as written |
//! | `null` | an element with `xsi:nil="true"` |
//! | a list | the element once for each entry |
//! | `"@name"` | an attribute; `"@xmlns"` and `"@xmlns:p"` declare namespaces |
//! | `"#text"` | the text of an element that has attributes |
//! | `"p:name"` | a name in the namespace of the prefix `p` |
//!
//! What is read comes out by the same rule, with three differences: names lose their prefixes, all values are texts, and an element that comes once is
//! no list. This module must not know of envelopes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::json::Json;
use super::multipart::Attachments;
use super::xml::{Node, escape_into, is_char, is_name};

pub const XSI_NS: &str = "http://www.w3.org/2001/XMLSchema-instance";
pub const XSD_NS: &str = "http://www.w3.org/2001/XMLSchema";
/// Prefixes that are there without being declared; the envelope declares those that are used.
pub const KNOWN_PREFIXES: [(&str, &str); 2] = [("xsi", XSI_NS), ("xsd", XSD_NS)];
/// Of the XML that one message becomes. Short JSON can stand for much XML: the entries of a list share one name.
pub const XML_BYTES_MAX: usize = 64 << 20;

/// Why JSON cannot become XML; `at` is the way to it, such as `patient.name`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    #[error("`{at}` cannot be the name of an element or attribute")]
    Name { at: String },
    #[error(
        "the prefix of `{at}` is not declared: `@xmlns:…` in the message or `namespaces` of the connection does that"
    )]
    Prefix { at: String },
    #[error("`{at}` is a list in a list, which XML has no form for")]
    NestedList { at: String },
    #[error("`{at}` has to be a text, a number, true or false")]
    NotPlain { at: String },
    #[error("`{at}` has the character {c}, which XML cannot carry")]
    Character { at: String, c: String },
    #[error("`{at}` is given twice")]
    Twice { at: String },
    #[error("its XML would have more than {XML_BYTES_MAX} bytes")]
    TooLong,
}

/// Writes elements, and knows which prefixes are declared where it stands.
pub(super) struct Writer<'a> {
    pub(super) out: String,
    /// Declared by whatever is around.
    around: &'a [(String, String)],
    /// Declared by the elements that are open, innermost last.
    declared: Vec<String>,
    /// Of [`KNOWN_PREFIXES`].
    pub(super) used: BTreeSet<&'static str>,
    path: Vec<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(around: &'a [(String, String)]) -> Self {
        Writer { out: String::new(), around, declared: Vec::new(), used: BTreeSet::new(), path: Vec::new() }
    }

    /// One element, or as many as a list has entries. `own` is put into its start tag as it is, and declares the prefix `own_prefix`.
    pub(super) fn element(&mut self, name: &str, own: (&str, &str), value: &Json<'_>) -> Result<(), MappingError> {
        self.path.push(name.to_owned());
        match value {
            Json::List(entries) => {
                for entry in entries {
                    if matches!(entry, Json::List(_)) {
                        return Err(MappingError::NestedList { at: self.at() });
                    }
                    self.single(name, own, entry)?;
                }
            }
            other => self.single(name, own, other)?,
        }
        self.path.pop();
        Ok(())
    }

    fn single(&mut self, name: &str, (own, own_prefix): (&str, &str), value: &Json<'_>) -> Result<(), MappingError> {
        let before = self.declared.len();
        if !own_prefix.is_empty() {
            self.declared.push(own_prefix.to_owned());
        }
        let members: &[(Cow<'_, str>, Json<'_>)] = if let Json::Object(members) = value { members } else { &[] };
        // Declarations hold for the element that has them, so they are known before its name is looked at.
        let prefixes = members.iter().filter_map(|(name, _)| name.strip_prefix("@xmlns:"));
        self.declared.extend(prefixes.map(str::to_owned));
        self.check_name(name)?;
        self.out.push('<');
        self.out.push_str(name);
        self.out.push_str(own);
        self.attributes(members)?;
        if matches!(value, Json::Null) {
            self.used.insert("xsi");
            self.out.push_str(" xsi:nil=\"true\"");
        }
        let start = self.out.len();
        self.out.push('>');
        self.content(value, members)?;
        if self.out.len() == start + 1 {
            self.out.insert(start, '/');
        } else {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
        }
        self.declared.truncate(before);
        if self.out.len() > XML_BYTES_MAX { Err(MappingError::TooLong) } else { Ok(()) }
    }

    fn attributes(&mut self, members: &[(Cow<'_, str>, Json<'_>)]) -> Result<(), MappingError> {
        let mut names = BTreeSet::new();
        for (member, value) in members.iter().filter(|(member, _)| member.starts_with('@')) {
            let name = &member[1..];
            let at = || format!("{}.{member}", self.at());
            if !names.insert(name) {
                return Err(MappingError::Twice { at: at() });
            }
            let text = match value {
                Json::Null => continue,
                Json::Text(text) => &**text,
                Json::Bare(word) => word,
                Json::List(_) | Json::Object(_) => return Err(MappingError::NotPlain { at: at() }),
            };
            match name.strip_prefix("xmlns:") {
                // A prefix cannot be undeclared, and these two are not to be declared.
                Some(prefix) if !is_name(prefix) || text.is_empty() || ["xml", "xmlns"].contains(&prefix) => {
                    return Err(MappingError::Name { at: at() });
                }
                Some(_) => {}
                None if name == "xmlns" => {}
                None => {
                    self.path.push(member.clone().into_owned());
                    self.check_name(name)?;
                    self.path.pop();
                }
            }
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.text(text)?;
            self.out.push('"');
        }
        Ok(())
    }

    fn content(&mut self, value: &Json<'_>, members: &[(Cow<'_, str>, Json<'_>)]) -> Result<(), MappingError> {
        match value {
            Json::Text(text) => return self.text(text),
            Json::Bare(word) => return self.text(word),
            Json::Null | Json::List(_) | Json::Object(_) => {}
        }
        for (name, value) in members {
            match (&**name, value) {
                (name, _) if name.starts_with('@') => {}
                ("#text", Json::Null) => {}
                ("#text", Json::Text(text)) => self.text(text)?,
                ("#text", Json::Bare(word)) => self.text(word)?,
                ("#text", _) => return Err(MappingError::NotPlain { at: format!("{}.#text", self.at()) }),
                (name, value) => self.element(name, ("", ""), value)?,
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), MappingError> {
        if let Some(c) = text.chars().find(|c| !is_char(*c)) {
            return Err(MappingError::Character { at: self.at(), c: c.escape_unicode().to_string() });
        }
        escape_into(&mut self.out, text);
        Ok(())
    }

    /// Of an element or attribute, with its prefix.
    fn check_name(&mut self, name: &str) -> Result<(), MappingError> {
        let Some((prefix, local)) = name.split_once(':') else {
            return if is_name(name) { Ok(()) } else { Err(MappingError::Name { at: self.at() }) };
        };
        if !is_name(prefix) || !is_name(local) || prefix == "xmlns" {
            return Err(MappingError::Name { at: self.at() });
        }
        let is_declared = prefix == "xml"
            || self.declared.iter().any(|known| known == prefix)
            || self.around.iter().any(|(known, _)| known == prefix);
        if is_declared {
            return Ok(());
        }
        match KNOWN_PREFIXES.iter().find(|(known, _)| *known == prefix) {
            Some((known, _)) => {
                self.used.insert(known);
                Ok(())
            }
            None => Err(MappingError::Prefix { at: self.at() }),
        }
    }

    fn at(&self) -> String {
        const SHOWN_CHARS_MAX: usize = 200;
        self.path.join(".").escape_debug().to_string().chars().take(SHOWN_CHARS_MAX).collect()
    }
}

/// What an element comes to.
pub(super) fn value_of(node: Node<'_>, attachments: &mut Attachments<'_>) -> Value {
    let is_nil = node.attribute(XSI_NS, "nil").is_some_and(|value| matches!(value.trim(), "true" | "1"));
    let mut members = Map::new();
    for (namespace, name, value) in node.attributes() {
        if namespace != XSI_NS || name != "nil" {
            members.entry(format!("@{name}")).or_insert_with(|| value.into());
        }
    }
    let has_attributes = !members.is_empty();
    let mut has_children = false;
    let mut inlined = None;
    for child in node.children() {
        if let Some(encoded) = attachments.included(child) {
            inlined = Some(encoded);
            continue;
        }
        has_children = true;
        let value = value_of(child, attachments);
        match members.get_mut(child.local()) {
            None => drop(members.insert(child.local().to_owned(), value)),
            Some(Value::Array(entries)) => entries.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    let text = inlined.unwrap_or_else(|| node.text());
    if !has_attributes && !has_children {
        return if is_nil { Value::Null } else { Value::String(text) };
    }
    // Between elements it is indentation.
    if !text.trim().is_empty() || (!has_children && !text.is_empty()) {
        members.insert("#text".to_owned(), text.into());
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::super::{json, xml};
    use super::*;
    use serde_json::json;

    fn written(message: &str) -> Result<String, MappingError> {
        let around = [("lab".to_owned(), "urn:lab".to_owned())];
        let message = json::read(message).unwrap();
        let mut writer = Writer::new(&around);
        writer.element("m", ("", ""), &message)?;
        Ok(writer.out)
    }

    fn read(text: &str) -> Value {
        let document = xml::read(text);
        assert_eq!(document.error, None, "{text}");
        value_of(document.root().unwrap(), &mut Attachments::none())
    }

    // proves: Z34
    #[test]
    fn z34_json_becomes_the_elements_that_the_table_says() {
        for (message, xml) in [
            (r#"{"a": 1.50, "b": "x & y", "c": true, "d": ""}"#, "<m><a>1.50</a><b>x &amp; y</b><c>true</c><d/></m>"),
            (r#"{"a": [1, {"b": 2}, null]}"#, r#"<m><a>1</a><a><b>2</b></a><a xsi:nil="true"/></m>"#),
            (r#"{"a": [], "b": {}}"#, "<m><b/></m>"),
            (
                r##"{"@id": 7, "x": {"#text": "t", "@lab:k": "\"v\""}}"##,
                r#"<m id="7"><x lab:k="&quot;v&quot;">t</x></m>"#,
            ),
            (r#"{"@xmlns": "urn:d", "q:a": {"@xmlns:q": "urn:q"}}"#, r#"<m xmlns="urn:d"><q:a xmlns:q="urn:q"/></m>"#),
            (r##"{"lab:a": {"@xsi:type": "xsd:int", "#text": 5}}"##, r#"<m><lab:a xsi:type="xsd:int">5</lab:a></m>"#),
            (r#"{"a": 1, "b": 2, "a": 3}"#, "<m><a>1</a><b>2</b><a>3</a></m>"),
            (r#""plain""#, "<m>plain</m>"),
        ] {
            assert_eq!(written(message).as_deref(), Ok(xml), "{message}");
        }
    }

    #[test]
    fn what_xml_has_no_form_for_is_refused_with_the_way_to_it() {
        for (message, why) in [
            (r#"{"a": {"1b": 1}}"#, "`m.a.1b`"),
            (r#"{"a b": 1}"#, "`m.a b`"),
            (r#"{"a><b": 1}"#, "cannot be the name"),
            (r#"{"q:a": 1}"#, "prefix of `m.q:a`"),
            (r#"{"@q:a": 1}"#, "prefix of `m.@q:a`"),
            (r#"{"a": [[1]]}"#, "list in a list"),
            (r#"{"@a": {"b": 1}}"#, "has to be a text"),
            (r##"{"#text": [1]}"##, "has to be a text"),
            (r#"{"a": "\u0001"}"#, "\\u{1}"),
            (r#"{"@a": 1, "@a": 2}"#, "twice"),
            (r#"{"@xmlns:p": ""}"#, "cannot be the name"),
            (r#"{"@xmlns:xml": "urn:x"}"#, "cannot be the name"),
        ] {
            let refused = written(message).unwrap_err().to_string();
            assert!(refused.contains(why), "{message}: {refused}");
        }
        let amplified = format!("{{\"{}\": [{}0]}}", "n".repeat(500), "0,".repeat(100_000));
        assert_eq!(written(&amplified), Err(MappingError::TooLong));
    }

    // proves: Z34
    #[test]
    fn z34_elements_become_the_json_that_the_table_says() {
        for (xml, value) in [
            ("<r><a>1.50</a><b>x &amp; y</b><d/></r>", json!({"a": "1.50", "b": "x & y", "d": ""})),
            ("<s:r xmlns:s='u'>\n <s:a>1</s:a>\n <a>2</a>\n</s:r>", json!({"a": ["1", "2"]})),
            (
                "<r xmlns:i='http://www.w3.org/2001/XMLSchema-instance'><a i:nil='true'/><b i:nil='0'/></r>",
                json!({"a": null, "b": ""}),
            ),
            ("<r><a k='1'> t </a><b k='2'/></r>", json!({"a": {"@k": "1", "#text": " t "}, "b": {"@k": "2"}})),
            ("<r>  text </r>", json!("  text ")),
        ] {
            assert_eq!(read(xml), value, "{xml}");
        }
    }
}
