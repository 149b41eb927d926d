//! SOAP over the HTTP sender: a stored request becomes an envelope, and an answer is read for what it says.
//!
//! Credentials that go into the envelope are made anew for every attempt (D32); all else of it is the same each time, the message id of WS-Addressing
//! included. It must not know of sockets.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::connection::SoapTarget;
use postrider_core::message::{Message, Method, RequestHead};
use postrider_core::soap::{SoapCall, SoapVersion};
use postrider_core::{NoAnswerKind, Reply, Said, SettingError};

use super::{Outgoing, Stamp};
use crate::auth::UserPassword;
use crate::codec::soap::addressing::{self, Addressing};
use crate::codec::soap::request::{self, Request, RequestError};
use crate::codec::soap::username_token::{self, UsernameToken};
use crate::codec::soap::{action, answer};

const SOAP_ACTION: &str = "soapaction";
const CONTENT_TYPE: &str = "content-type";

/// What an answer that was kept says.
pub(super) fn said(headers_type: Option<&str>, body: &[u8], is_cut: bool) -> Said {
    Said::Soap(Box::new(answer::read(headers_type, body, is_cut)))
}

/// Reads the envelope of an answer, whatever its status.
pub(super) fn read(reply: Reply) -> Reply {
    match reply {
        Reply::Answered(mut answer) => {
            // One-way operations are answered with a status alone.
            let is_empty = answer.body.is_empty() && matches!(answer.status, Some(202 | 204));
            if !is_empty {
                answer.said = Some(said(answer.headers.get(CONTENT_TYPE), &answer.body, answer.incomplete));
            }
            Reply::Answered(answer)
        }
        none => none,
    }
}

/// # Errors
/// The key that is at fault, and what is allowed.
pub(super) fn check_target(target: &SoapTarget) -> Result<(), SettingError> {
    request::check_blocks(&target.headers).map_err(|error| {
        let allowed = format!("XML whose elements declare the namespaces that they use: {error}");
        SettingError::new("soap_headers", "not usable", allowed)
    })
}

/// # Errors
/// The part of the request that is at fault, and what is allowed.
pub(super) fn check(target: &SoapTarget, message: &Message) -> Result<(), SettingError> {
    let head = &message.head;
    if head.method != Method::POST {
        return Err(SettingError::new("method", &head.method, "POST: SOAP has no other"));
    }
    if is_in_parts(head) {
        return Ok(());
    }
    let refused = match request::read(target, &call_of(head), &message.body) {
        Ok(request) => return check_action(&request, head),
        Err(error) => error,
    };
    Err(match refused {
        RequestError::NoOperation => {
            SettingError::new("operation", "missing", "the name of an operation, where the message is JSON")
        }
        RequestError::Operation(name) => SettingError::new("operation", name, "the name of an element of XML"),
        RequestError::Headers(_) | RequestError::HeadersTwice => {
            let allowed = format!("an object of header blocks, or XML: {refused}");
            SettingError::new("soap_headers", "not usable", allowed)
        }
        error => {
            let allowed = format!("an object of JSON, the element of an operation, or an envelope: {error}");
            SettingError::new("message", "not usable", allowed)
        }
    })
}

fn check_action(request: &Request<'_>, head: &RequestHead) -> Result<(), SettingError> {
    let action = action_for(request, head);
    if action::is_action(&action) {
        return Ok(());
    }
    let allowed = "visible ASCII characters without quotes and backslashes";
    Err(SettingError::new("SOAPAction", action.escape_debug(), allowed))
}

/// The same attempt as one over HTTP, with its envelope.
pub(super) fn request(outgoing: Outgoing) -> Result<Outgoing, Reply> {
    let unsendable = |detail: String| Reply::unanswered(NoAnswerKind::Unsendable, detail);
    let connection = Arc::clone(&outgoing.connection);
    let Some(target) = connection.spec.target.soap() else {
        return Err(unsendable(format!("a connection of type `{}` does not speak SOAP", connection.kind().as_str())));
    };
    let user = outgoing.credentials.as_ref().and_then(|credentials| credentials.in_envelope());
    if is_in_parts(&outgoing.head) {
        return match (user, &target.addressing) {
            (None, None) => Ok(outgoing),
            _ => Err(unsendable(
                "a request in several parts is sent as it is, so nothing can be put into its envelope".to_owned(),
            )),
        };
    }
    let call = call_of(&outgoing.head);
    let request = request::read(target, &call, &outgoing.body);
    let request = request.map_err(|error| unsendable(format!("no envelope can be made of the message: {error}")))?;
    let action = action_for(&request, &outgoing.head);
    let mut blocks = String::new();
    if let Some(user) = user {
        let stamp =
            outgoing.stamp.ok_or_else(|| Reply::unanswered(NoAnswerKind::Internal, "an attempt without a stamp"))?;
        blocks.push_str(&security(target.version, user, stamp));
    }
    blocks.push_str(&addressed(target, &action, &outgoing));
    let head = head(target, &action, &outgoing.head).map_err(unsendable)?;
    let body = Bytes::from(request.envelope(&blocks).into_owned());
    // What is in the envelope is not sent a second time beside it.
    let credentials = if user.is_some() { None } else { outgoing.credentials.clone() };
    Ok(Outgoing { head: Arc::new(head), body, credentials, ..outgoing })
}

fn call_of(head: &RequestHead) -> SoapCall {
    head.soap.as_deref().cloned().unwrap_or_default()
}

/// What the caller said in a header goes before what the operation is known for.
fn action_for(request: &Request<'_>, head: &RequestHead) -> String {
    let given = action::read(head.headers.get(SOAP_ACTION), head.headers.get(CONTENT_TYPE));
    given.unwrap_or_else(|| request.action.clone())
}

fn security(version: SoapVersion, user: &UserPassword, stamp: Stamp) -> String {
    let token = UsernameToken {
        username: &user.username,
        password: user.password.expose(),
        kind: user.password_type,
        nonce: stamp.nonce.to_be_bytes(),
        created: stamp.at,
    };
    username_token::block(version, &token)
}

fn addressed(target: &SoapTarget, action: &str, outgoing: &Outgoing) -> String {
    let Some(wanted) = &target.addressing else { return String::new() };
    let or = |written: &str, other: &str| if written.is_empty() { other.to_owned() } else { written.to_owned() };
    // The same over all attempts, so that a receiver can tell a repeat (S16).
    let message_id = format!("urn:uuid:{}", uuid(outgoing.delivery_id.as_u128()));
    let path = target.http.url_path.fill(&outgoing.head.params, &outgoing.head.path).unwrap_or_default();
    addressing::blocks(&Addressing {
        action: &or(&wanted.action, action),
        to: &or(&wanted.to, &format!("{}{path}", target.http.host)),
        reply_to: &wanted.reply_to,
        message_id: &message_id,
    })
}

fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn head(target: &SoapTarget, action: &str, given: &RequestHead) -> Result<RequestHead, String> {
    let mut head = given.clone();
    head.soap = None;
    head.headers.remove(SOAP_ACTION);
    head.headers.remove(CONTENT_TYPE);
    let in_type = Some(action).filter(|_| target.action_in_type);
    let mut fields = vec![("Content-Type", action::content_type(target.version, in_type))];
    if target.version == SoapVersion::V11 {
        fields.push(("SOAPAction", action::header_value(action)));
    }
    for (name, value) in fields {
        head.headers.push(name.to_owned(), value).map_err(|error| error.to_string())?;
    }
    Ok(head)
}

/// An envelope with attachments, as a client of the raw proxy may send it.
fn is_in_parts(head: &RequestHead) -> bool {
    let is_multipart = |text: &str| text.trim_start().to_ascii_lowercase().starts_with("multipart/related");
    head.headers.get(CONTENT_TYPE).is_some_and(is_multipart)
}

#[cfg(test)]
mod tests {
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};
    use serde_json::json;

    use super::*;

    // proves: Z34
    #[test]
    fn z34_s08_the_action_of_soap_1_2_is_in_the_content_type_unless_the_connection_says_not() {
        for (setting, sent) in [
            ("param", "application/soap+xml; charset=utf-8; action=\"urn:a\""),
            ("none", "application/soap+xml; charset=utf-8"),
        ] {
            let written = json!({"host": "http://a", "url_path": "", "soap_version": "1.2", "soap12_action": setting});
            let spec = ConnectionSpec::parse(ConnectionKind::Soap, written.as_object().unwrap()).unwrap();
            let made = head(spec.target.soap().unwrap(), "urn:a", &RequestHead::default()).unwrap();
            assert_eq!((made.headers.get("content-type"), made.headers.get("soapaction")), (Some(sent), None));
        }
    }
}
