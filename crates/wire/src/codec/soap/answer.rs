//! From the bytes of an answer to what its envelope says, whatever status they came with.
//!
//! An answer that cannot be read is no error here: it has a remark, and the status decides what it means (D24). This module must not know of statuses.

use std::borrow::Cow;

use postrider_core::soap::SoapAnswer;
use serde_json::{Map, Value};

use super::multipart::{self, Attachments, Parts, essence, parameter};
use super::{envelope, fault, mapping, xml};

/// Reads an answer. `is_cut`: it was longer than what is kept, or broke off.
pub fn read(content_type: Option<&str>, body: &[u8], is_cut: bool) -> SoapAnswer {
    let content_type = content_type.unwrap_or_default();
    let parts = if essence(content_type).starts_with("multipart/") {
        match multipart::read(content_type, body) {
            Ok(parts) => Some(parts),
            Err(why) => return unreadable(format!("the answer is {why}"), is_cut),
        }
    } else {
        None
    };
    let (root_type, root, others) = match &parts {
        Some(Parts { root, others }) => (root.content_type.as_str(), &*root.body, others.as_slice()),
        None => (content_type, body, [].as_slice()),
    };
    let text = match decoded(root_type, root) {
        Ok(text) => text,
        Err(why) => return unreadable(format!("the answer is {why}"), is_cut),
    };
    let document = xml::read(&text);
    let mut attachments = Attachments::of(others);
    let mut answer = match envelope::read(&document) {
        Ok(envelope) => of_envelope(&envelope, &mut attachments),
        Err(error) => return unreadable(format!("the answer is no envelope that can be read: {error}"), is_cut),
    };
    answer.attachments = attachments.listed();
    if let Some(error) = &document.error {
        answer.remark = unreadable(format!("the answer is not a whole envelope: {error}"), is_cut).remark;
    }
    answer
}

fn of_envelope(envelope: &envelope::Envelope<'_>, attachments: &mut Attachments<'_>) -> SoapAnswer {
    let first = envelope.body.children().next();
    let is_fault = first.filter(|first| fault::is_fault(*first));
    let mut header = Map::new();
    for block in envelope.header.into_iter().flat_map(|header| header.children()) {
        header.entry(block.local().to_owned()).or_insert_with(|| mapping::value_of(block, attachments));
    }
    SoapAnswer {
        element: first.map(|first| first.local().to_owned()),
        data: match (first, is_fault) {
            (Some(first), None) => mapping::value_of(first, attachments),
            _ => Value::Null,
        },
        header: if header.is_empty() { Value::Null } else { Value::Object(header) },
        fault: is_fault.map(|node| fault::read(node, attachments)),
        attachments: Vec::new(),
        remark: None,
    }
}

fn unreadable(why: String, is_cut: bool) -> SoapAnswer {
    let remark = if is_cut { format!("{why}; it was cut") } else { why };
    SoapAnswer { remark: Some(remark), ..SoapAnswer::default() }
}

/// The text: by its byte order mark, by the content type, or by its own declaration (RFC 7303, section 3).
///
/// # Errors
/// In words that continue "the answer is …".
fn decoded<'b>(content_type: &str, bytes: &'b [u8]) -> Result<Cow<'b, str>, String> {
    let label = parameter(content_type, "charset").or_else(|| declared_encoding(bytes)).unwrap_or_default();
    let label = label.trim();
    let encoding = match label {
        "" => encoding_rs::UTF_8,
        label => encoding_rs::Encoding::for_label(label.as_bytes()).ok_or_else(|| {
            let shown: String = label.chars().filter(|c| !c.is_control()).take(40).collect();
            format!("in the encoding `{shown}`, which is not known")
        })?,
    };
    let (text, used, has_errors) = encoding.decode(bytes);
    if has_errors {
        return Err(format!("not in the encoding {}, as it says it is", used.name()));
    }
    Ok(text)
}

/// `<?xml version="1.0" encoding="…"?>`, which is ASCII in all encodings that are found this way.
fn declared_encoding(bytes: &[u8]) -> Option<String> {
    const DECLARATION_BYTES_MAX: usize = 200;
    let start = &bytes[..bytes.len().min(DECLARATION_BYTES_MAX)];
    let declaration = start.strip_prefix(b"<?xml")?;
    let end = memchr::memmem::find(declaration, b"?>")?;
    let text = std::str::from_utf8(&declaration[..end]).ok()?;
    let value = text.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split_once(quote).map(|(label, _)| label.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{SOAP11_NS, SOAP12_NS};
    use super::*;
    use serde_json::json;

    fn envelope(namespace: &str, inside: &str) -> String {
        format!("<e:Envelope xmlns:e='{namespace}'>{inside}</e:Envelope>")
    }

    // proves: Z34
    #[test]
    fn z34_a_response_of_either_version_comes_out_as_json() {
        for namespace in [SOAP11_NS, SOAP12_NS] {
            let inside = "<e:Header><t xmlns='urn:t'>7</t></e:Header><e:Body>\n<r:SubmitResponse xmlns:r='urn:r'>\
                          <r:id>1</r:id></r:SubmitResponse></e:Body>";
            let answer = read(Some("text/html"), envelope(namespace, inside).as_bytes(), false);
            assert_eq!(answer.element.as_deref(), Some("SubmitResponse"));
            assert_eq!((answer.data, answer.header), (json!({"id": "1"}), json!({"t": "7"})));
            assert_eq!((answer.fault, answer.remark), (None, None));
        }
    }

    #[test]
    fn s02_a_fault_is_found_by_the_body_alone_even_when_it_is_cut() {
        let inside = "<e:Body><e:Fault><faultcode>e:Client</faultcode><faultstring>no";
        let cut = format!("<e:Envelope xmlns:e='{SOAP11_NS}'>{inside}");
        let answer = read(None, cut.as_bytes(), true);
        assert_eq!(answer.fault.unwrap().shown(), "SOAP fault Client: no");
        assert!(answer.remark.unwrap().ends_with("it was cut"));
        assert_eq!(answer.data, Value::Null);
    }

    #[test]
    fn s05_what_is_no_envelope_has_a_remark_and_nothing_else() {
        for (content_type, body, why) in [
            ("text/html", "<html><body>502 Bad Gateway</body></html>", "`html`"),
            ("text/plain", "oops", "no envelope"),
            ("text/xml", "", "it is empty"),
            ("text/xml", "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "DTD"),
            ("text/xml; charset=x-martian", "<a/>", "x-martian"),
            ("multipart/related", "--x", "boundary"),
        ] {
            let answer = read(Some(content_type), body.as_bytes(), false);
            let remark = answer.remark.clone().unwrap();
            assert!(remark.contains(why), "{body}: {remark}");
            assert_eq!(SoapAnswer { remark: None, ..answer }, SoapAnswer::default());
        }
    }

    #[test]
    fn encodings_are_those_of_the_content_type_or_of_the_declaration() {
        let declared = |label: &str| {
            format!("<?xml version='1.0' encoding='{label}'?>{}", envelope(SOAP11_NS, "<e:Body><r>\u{e4}</r></e:Body>"))
        };
        let latin: Vec<u8> = declared("ISO-8859-1").chars().map(|c| c as u8).collect();
        let wide: Vec<u8> =
            "\u{feff}".encode_utf16().chain(declared("UTF-16").encode_utf16()).flat_map(u16::to_le_bytes).collect();
        for (content_type, bytes) in [
            ("text/xml", latin.clone()),
            ("text/xml; charset=\"iso-8859-1\"", latin.clone()),
            ("text/xml", wide),
            ("text/xml; charset=utf-8", declared("ISO-8859-1").into_bytes()),
        ] {
            assert_eq!(read(Some(content_type), &bytes, false).data, json!("\u{e4}"), "{content_type}");
        }
        let wrong = read(Some("text/xml; charset=utf-8"), &latin, false);
        assert!(wrong.remark.unwrap().contains("not in the encoding UTF-8"));
    }

    // proves: Z34
    #[test]
    fn s11_s12_s13_an_answer_in_parts_is_read_by_its_root_and_its_attachments_come_inline() {
        let content_type =
            "multipart/related; type=\"application/xop+xml\"; start=\"<root>\"; boundary=x; start-info=\"text/xml\"";
        let body = |inside: &str| {
            format!(
                "--x\r\nContent-ID: <doc@x>\r\nContent-Type: image/png\r\n\r\nPNG!\r\n--x\r\nContent-ID: <root>\r\n\
                 Content-Type: application/xop+xml; charset=UTF-8\r\n\r\n{}\r\n--x--",
                envelope(SOAP11_NS, &format!("<e:Body>{inside}</e:Body>"))
            )
        };
        let include = "<xop:Include xmlns:xop='http://www.w3.org/2004/08/xop/include' href='cid:doc%40x'/>";
        let answer = read(
            Some(content_type),
            body(&format!("<r><d>{include}</d><again>{include}</again></r>")).as_bytes(),
            false,
        );
        assert_eq!(answer.data["d"], "UE5HIQ==");
        assert_eq!(answer.data["again"], json!({"Include": {"@href": "cid:doc%40x"}}), "each byte comes out once");
        assert_eq!(answer.attachments, [json!({"id": "doc@x", "content_type": "image/png", "bytes": 4})]);
        let fault = "<e:Fault><faultcode>e:Server</faultcode><faultstring>x</faultstring></e:Fault>";
        assert!(read(Some(content_type), body(fault).as_bytes(), false).fault.is_some());
    }
}
