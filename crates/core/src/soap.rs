//! What is said over SOAP: what a call names, and what an answer says about the outcome (Z34).
//!
//! This module must not know what any of it looks like in XML.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoapVersion {
    V11,
    V12,
}

impl SoapVersion {
    pub const fn as_str(self) -> &'static str {
        match self {
            SoapVersion::V11 => "1.1",
            SoapVersion::V12 => "1.2",
        }
    }
}

/// What a request names beside its body; stored with its head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoapCall {
    /// Empty where the body itself says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// Header blocks of this request alone, in JSON or in XML; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub headers: String,
}

/// What the envelope of an answer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoapAnswer {
    /// The local name of the first element of the body.
    pub element: Option<String>,
    /// What is in that element, as JSON. Null for a fault.
    pub data: Value,
    /// The header blocks, as JSON; null without any.
    pub header: Value,
    pub fault: Option<SoapFault>,
    /// Of an answer in several parts: what came beside the envelope.
    pub attachments: Vec<Value>,
    /// Why the envelope could not be read, or not to its end. After a 2xx that is no failure (D24), and still worth a word.
    pub remark: Option<String>,
}

/// A fault of SOAP 1.1 or 1.2; what the versions call differently has one name here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SoapFault {
    /// Without its prefix, such as `Client`, `Server.Busy`, `Sender`.
    pub code: String,
    /// SOAP 1.2 only, outermost first.
    pub subcodes: Vec<String>,
    pub reason: String,
    pub actor: Option<String>,
    /// As JSON; null without any.
    pub detail: Value,
}

impl SoapFault {
    /// `SOAP fault Client: unknown patient`.
    pub fn shown(&self) -> String {
        let codes: Vec<&str> = [&self.code].into_iter().chain(&self.subcodes).map(String::as_str).collect();
        let codes = codes.join("/");
        match (codes.is_empty(), self.reason.is_empty()) {
            (true, true) => "SOAP fault".to_owned(),
            (true, false) => format!("SOAP fault: {}", self.reason),
            (false, true) => format!("SOAP fault {codes}"),
            (false, false) => format!("SOAP fault {codes}: {}", self.reason),
        }
    }

    /// The other side speaks another version of SOAP.
    pub fn is_version_mismatch(&self) -> bool {
        self.code == "VersionMismatch"
    }
}
