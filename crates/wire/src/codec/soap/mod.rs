//! SOAP 1.1 and 1.2: requests become envelopes, answers become values, and nothing here sends or waits.
//!
//! | file | what it knows |
//! |---|---|
//! | `request` | from operation and message to an envelope |
//! | `answer` | from the bytes of an answer to data or a fault |
//! | `mapping` | JSON and XML for each other |
//! | `envelope`, `fault`, `action`, `addressing`, `username_token` | one part of the protocol each |
//! | `channel` | the other side: what a channel reads and answers |
//! | `multipart` | answers in parts (MTOM) |
//! | `wsdl` | what a service offers |
//! | `xml`, `json` | the texts themselves, within limits |

pub mod action;
pub mod addressing;
pub mod answer;
pub mod channel;
pub mod envelope;
pub mod fault;
mod json;
pub mod mapping;
mod multipart;
pub mod request;
pub mod username_token;
pub mod wsdl;
pub mod xml;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::answer;

    /// Megabytes of what would take hours if anything looked back over what it has read. The bound is generous: a loaded machine reads them in seconds.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "how long reading takes is the point")]
    fn no_answer_takes_more_than_linear_time() {
        const BYTES: usize = 2 << 20;
        let envelope = |inside: &str| {
            format!(
                "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body>{inside}</e:Body></e:Envelope>"
            )
        };
        let many = |piece: &str| piece.repeat(BYTES / piece.len());
        let attributes: String = (0..250).map(|at| format!(" k{at}='1'")).collect();
        let namespaces: String = (0..250).map(|at| format!(" xmlns:p{at}='urn:{at}'")).collect();
        let answers = [
            ("text/xml", envelope(&format!("<r>{}</r>", many("&amp;")))),
            ("text/xml", envelope(&format!("<r>{}</r>", many("<![CDATA[x]]>")))),
            ("text/xml", envelope(&format!("<r>{}</r>", many("<a/>t")))),
            ("text/xml", envelope(&many(&format!("<r{attributes}/>")))),
            ("text/xml", envelope(&many(&format!("<r{namespaces}/>")))),
            ("text/xml", envelope(&many("<!-- - - -->"))),
            ("text/xml", many("<a>")),
            ("text/xml", many("<a ")),
            ("text/xml", format!("<a k='{}'/>", many("&#x41;"))),
            ("multipart/related; boundary=x", many("--x\r\n")),
            ("multipart/related; boundary=x", many("--")),
            ("multipart/related; boundary=x", format!("--x\r\n{}", many("A: b\r\n"))),
        ];
        let started = std::time::Instant::now();
        for (content_type, body) in &answers {
            answer::read(Some(content_type), body.as_bytes(), false);
        }
        let took = started.elapsed();
        assert!(took < Duration::from_secs(120), "{took:?}");
    }
}
