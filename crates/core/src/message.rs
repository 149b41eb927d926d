//! What is to be delivered: a request's head (method, path, params, headers) and its body, exactly as they were accepted.
//!
//! This module must not know where the request goes: address, credentials and timeouts belong to the connection.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::soap::SoapCall;
use crate::trace::TraceContext;

/// A request as it was accepted. The body stays bytes all the way (law 6, oracle 8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub head: RequestHead,
    pub body: Bytes,
}

/// Everything of a request but its body; stored as JSON beside the delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHead {
    pub method: Method,
    /// Goes behind the connection's own path; empty for most calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Fill the placeholders of the connection's path; what is left over becomes the query string.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "HeaderList::is_empty")]
    pub headers: HeaderList,
    /// The trace that it belongs to, if its caller or this server traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// What a SOAP call names beside its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soap: Option<Box<SoapCall>>,
}

/// An HTTP method: an RFC 9110 token, in capitals. Never CONNECT: it opens a tunnel and carries no request, so it could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(std::borrow::Cow<'static, str>);

/// Why a method, header or path is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("`{0}` is not an HTTP method: allowed are letters, digits and -")]
    Method(String),
    #[error("the method CONNECT cannot be delivered: it opens a tunnel")]
    Tunnel,
    #[error("`{0}` is not a header name: allowed are letters, digits and !#$%&'*+-.^_`|~")]
    HeaderName(String),
    #[error("the value of header `{0}` has a control character: CR, LF, NUL and the like are not allowed")]
    HeaderValue(String),
}

impl Method {
    pub const POST: Method = Method(std::borrow::Cow::Borrowed("POST"));
    pub const GET: Method = Method(std::borrow::Cow::Borrowed("GET"));

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Requests that only read never queue (Z12).
    pub fn only_reads(&self) -> bool {
        matches!(self.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

impl Default for Method {
    fn default() -> Self {
        Method::POST
    }
}

impl TryFrom<String> for Method {
    type Error = MessageError;
    fn try_from(text: String) -> Result<Self, MessageError> {
        let shaped =
            !text.is_empty() && text.len() <= 32 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !shaped {
            return Err(MessageError::Method(text.chars().take(64).collect()));
        }
        match text.to_ascii_uppercase().as_str() {
            "POST" => Ok(Method::POST),
            "GET" => Ok(Method::GET),
            "CONNECT" => Err(MessageError::Tunnel),
            other => Ok(Method(std::borrow::Cow::Owned(other.to_owned()))),
        }
    }
}

impl std::str::FromStr for Method {
    type Err = MessageError;
    fn from_str(text: &str) -> Result<Self, MessageError> {
        Method::try_from(text.to_owned())
    }
}

impl From<Method> for String {
    fn from(method: Method) -> String {
        method.0.into_owned()
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a header is one that only we may write. Servers that hand headers on as variables take `_` for `-`, so both count.
pub fn is_ours(name: &str) -> bool {
    const OURS: &str = "x-postrider-";
    name.len() >= OURS.len()
        && name
            .bytes()
            .zip(OURS.bytes())
            .all(|(given, ours)| given.to_ascii_lowercase() == ours || given == b'_' && ours == b'-')
}

/// Header fields in their order, each name a token and each value free of control characters, so that no value can smuggle a line.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(String, String)>", into = "Vec<(String, String)>")]
pub struct HeaderList(Vec<(String, String)>);

/// Whether a header's value is, by its name, a secret of somebody's: it is masked wherever people look.
pub fn is_secret_header(name: &str) -> bool {
    const NAMES: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-postrider-key"];
    const PARTS: [&str; 7] = ["api-key", "apikey", "api_key", "subscription-key", "token", "secret", "password"];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part))
}

impl std::fmt::Debug for HeaderList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.iter().map(|(name, value)| (name, if is_secret_header(name) { crate::MASK } else { value }));
        f.debug_list().entries(shown).finish()
    }
}

impl HeaderList {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of a field, its name compared without regard to case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn push(&mut self, name: String, value: String) -> Result<(), MessageError> {
        if name.is_empty() || name.len() > 256 || !name.bytes().all(is_token_byte) {
            return Err(MessageError::HeaderName(name.chars().take(64).collect()));
        }
        if value.chars().any(|c| c != '\t' && c.is_control()) {
            return Err(MessageError::HeaderValue(name));
        }
        self.0.push((name, value));
        Ok(())
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }
}

impl TryFrom<Vec<(String, String)>> for HeaderList {
    type Error = MessageError;
    fn try_from(fields: Vec<(String, String)>) -> Result<Self, MessageError> {
        let mut list = HeaderList::default();
        for (name, value) in fields {
            list.push(name, value)?;
        }
        Ok(list)
    }
}

impl From<HeaderList> for Vec<(String, String)> {
    fn from(list: HeaderList) -> Self {
        list.0
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: Z12
    #[test]
    fn d14_a_header_of_ours_is_known_however_it_is_written() {
        for name in [
            "x-postrider-cid",
            "X-Postrider-Verified",
            "X_Postrider_Verified",
            "x-postrider_authenticated",
            "x-postrider-",
        ] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["x-postrider", "x-postriders-x", "x-post-rider-x", "authorization", ""] {
            assert!(!is_ours(name), "{name}");
        }
    }

    #[test]
    fn d46_what_is_a_secret_by_its_name_is_in_no_debug_output() {
        let pairs = ["Authorization", "COOKIE", "X-API-Key", "Ocp-Apim-Subscription-Key", "X-Auth-Token", "X-Lab"];
        let pairs: Vec<_> = pairs.iter().map(|name| ((*name).to_owned(), "hunter2".to_owned())).collect();
        let shown = format!("{:?}", HeaderList::try_from(pairs).unwrap());
        assert_eq!((shown.matches("hunter2").count(), shown.matches("***").count()), (1, 5), "{shown}");
    }

    #[test]
    fn z12_only_get_head_and_options_read() {
        for (method, reads) in
            [("get", true), ("HEAD", true), ("Options", true), ("POST", false), ("DELETE", false), ("PATCH", false)]
        {
            assert_eq!(method.parse::<Method>().unwrap().only_reads(), reads, "{method}");
        }
    }

    #[test]
    fn a_header_cannot_smuggle_a_line() {
        let mut list = HeaderList::default();
        assert!(list.push("X-A".into(), "1\r\nX-B: 2".into()).is_err());
        assert!(list.push("X A".into(), "1".into()).is_err());
        assert!(list.push("X-Nul".into(), "a\0b".into()).is_err());
        assert!(list.push("X-Tab".into(), "a\tb".into()).is_ok());
        assert!(serde_json::from_str::<HeaderList>(r#"[["a","b\nc"]]"#).is_err());
    }

    #[test]
    fn a_method_is_a_token_in_capitals() {
        assert_eq!("connect".parse::<Method>(), Err(MessageError::Tunnel));
        assert_eq!("purge".parse::<Method>().unwrap().as_str(), "PURGE");
        assert!("GET /".parse::<Method>().is_err());
        assert!("".parse::<Method>().is_err());
    }
}
