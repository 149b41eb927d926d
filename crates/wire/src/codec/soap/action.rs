//! Where a message says what is asked: the header `SOAPAction` in SOAP 1.1 (section 6.1.1), the parameter `action` of the content type in SOAP 1.2
//! (RFC 3902).
//!
//! This module must not know of bodies.

use postrider_core::soap::SoapVersion;

use super::multipart::{essence, parameter};

/// The content type of a request; `action` is left out for `None`.
pub fn content_type(version: SoapVersion, action: Option<&str>) -> String {
    match (version, action.filter(|action| !action.is_empty())) {
        (SoapVersion::V11, _) => "text/xml; charset=utf-8".to_owned(),
        (SoapVersion::V12, None) => "application/soap+xml; charset=utf-8".to_owned(),
        (SoapVersion::V12, Some(action)) => format!("application/soap+xml; charset=utf-8; action={}", quoted(action)),
    }
}

/// The value of `SOAPAction`: always in quotes, also when it is empty.
pub fn header_value(action: &str) -> String {
    quoted(action)
}

fn quoted(action: &str) -> String {
    format!("\"{}\"", action.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What is asked, as a request says it: from the header first, then from the content type. The first body element says it where this is `None`.
pub fn read(header: Option<&str>, content_type: Option<&str>) -> Option<String> {
    let of_header = header.map(|value| {
        let value = value.trim();
        value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value).to_owned()
    });
    let of_type = || content_type.filter(|text| essence(text) != "text/xml").and_then(|text| parameter(text, "action"));
    of_header.filter(|action| !action.is_empty()).or_else(of_type).filter(|action| !action.is_empty())
}

/// Whether an action can be sent: visible ASCII without quotes, as addresses are.
pub fn is_action(text: &str) -> bool {
    text.len() <= 2048 && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s06_s07_s14_the_action_is_where_its_version_has_it() {
        assert_eq!(content_type(SoapVersion::V11, Some("urn:a")), "text/xml; charset=utf-8");
        let with = "application/soap+xml; charset=utf-8; action=\"urn:a\"";
        assert_eq!(content_type(SoapVersion::V12, Some("urn:a")), with);
        assert_eq!(content_type(SoapVersion::V12, Some("")), "application/soap+xml; charset=utf-8");
        assert_eq!((header_value("urn:a"), header_value("")), ("\"urn:a\"".to_owned(), "\"\"".to_owned()));
    }

    #[test]
    fn s09_the_action_is_read_from_either_place() {
        let new = "application/soap+xml;action=\"urn:b\"";
        assert_eq!(read(Some("\"urn:a\""), Some(new)).as_deref(), Some("urn:a"));
        assert_eq!(read(Some("urn:a"), None).as_deref(), Some("urn:a"));
        assert_eq!(read(Some("\"\""), Some(new)).as_deref(), Some("urn:b"));
        assert_eq!(read(None, Some("text/xml; action=\"urn:b\"")), None);
        assert_eq!(read(None, None), None);
    }
}
