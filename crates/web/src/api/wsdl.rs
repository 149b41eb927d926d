//! `wsdl`, `wsdl_imports` and `wsdl_port` of a request for a SOAP connection: they fill its keys and are not kept.
//!
//! It must not know how a WSDL is read.

use postrider_core::connection::Connection;
use postrider_engine::Description;
use serde_json::{Map, Value};

use crate::problem::FieldError;
use crate::read::Fields;

/// Documents beside the WSDL itself.
const IMPORTS_MAX: usize = 100;

/// `None` when the request has no WSDL.
pub(super) fn read(fields: &mut Fields) -> Option<Description> {
    let document = fields.text("wsdl");
    let port = fields.text("wsdl_port");
    let imports = fields.take("wsdl_imports").map(|given| serde_json::from_str::<Vec<String>>(given.get()));
    let imports = match imports {
        None => Vec::new(),
        Some(Ok(imports)) if imports.len() <= IMPORTS_MAX => imports,
        Some(_) => {
            let allowed = format!("at most {IMPORTS_MAX} documents, each a string");
            fields.refuse("wsdl_imports", "`wsdl_imports` is no list of texts", allowed);
            Vec::new()
        }
    };
    if document.is_none() && (port.is_some() || !imports.is_empty()) {
        fields.refuse("wsdl", "`wsdl` is missing", "the WSDL that `wsdl_port` and `wsdl_imports` belong to");
    }
    document.map(|document| Description { document, imports, port })
}

/// What is given goes before what the WSDL says, and that before what was there.
pub(super) fn with_described(
    fields: &mut Fields,
    description: &Description,
    written: Map<String, Value>,
    known: Option<&Connection>,
) -> Map<String, Value> {
    let stored = known.and_then(|known| known.written.get("soap_version"));
    let version = match written.get("soap_version").or(stored) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    match description.settings(version.as_deref()) {
        Ok(mut described) => {
            described.extend(written);
            described
        }
        Err(error) => {
            let FieldError { field, message, allowed } = FieldError::from(&error);
            fields.refuse(field, message, allowed.unwrap_or_default());
            written
        }
    }
}
