//! What a request for a SOAP connection has beside the fields of all requests: the operation, its message, header blocks (Z34).
//!
//! It must not know what an envelope is.

use postrider_core::connection::DataFormat;
use postrider_core::soap::SoapCall;

use crate::problem::clipped;
use crate::read::{Fields, compact};

/// In the order in which a refusal names them.
pub(super) const FIELDS: [&str; 3] = ["operation", "message", "soap_headers"];
const OPERATION_CHARS_MAX: usize = 512;

/// Takes the fields. `None` for other formats, to which these fields are unknown.
pub(super) fn read(fields: &mut Fields, format: DataFormat) -> Option<Box<SoapCall>> {
    if format != DataFormat::Soap {
        return None;
    }
    let operation = fields.text("operation").unwrap_or_default();
    if operation.chars().count() > OPERATION_CHARS_MAX || operation.chars().any(char::is_control) {
        let shown = clipped(&operation.escape_debug().to_string());
        let allowed = format!("the name of an operation, at most {OPERATION_CHARS_MAX} characters");
        fields.refuse("operation", format!("`operation` is `{shown}`"), allowed);
    }
    let headers = headers(fields);
    let call = SoapCall { operation, headers };
    (call != SoapCall::default()).then(|| Box::new(call))
}

/// An object goes on as its own text, so that its order and numbers stay.
fn headers(fields: &mut Fields) -> String {
    let Some(given) = fields.take("soap_headers") else { return String::new() };
    let text = match given.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(given.get()).ok(),
        Some(b'{') => compact(given.get()).ok(),
        _ => None,
    };
    text.unwrap_or_else(|| {
        let allowed = "an object of header blocks, or their XML as a string";
        fields.refuse("soap_headers", format!("`soap_headers` is `{}`", clipped(given.get())), allowed);
        String::new()
    })
}
