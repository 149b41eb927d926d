//! Headers that somebody adds to every request. This module must not know who adds them.

use serde_json::Value;

use super::reader::Reader;
use crate::message::HeaderList;

/// Headers of one list, at most.
pub const HEADERS_MAX: usize = 32;
/// Bytes of one value, at most.
pub const HEADER_BYTES_MAX: usize = 4096;

/// What frames a request, belongs to one hop, or is ours to say, in small letters.
const RESERVED: [&str; 13] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-connection",
    "proxy-authorization",
    "idempotency-key",
];
const RESERVED_FAMILIES: [&str; 2] = ["webhook-", "x-postrider-"];

/// Whether a header is ours to write, so that nobody else's can shadow it.
pub fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED.contains(&name.as_str()) || RESERVED_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// An object of names and texts. Values are not repeated in a refusal: one may be a secret.
pub(super) fn read_headers(reader: &mut Reader<'_>, key: &'static str) -> HeaderList {
    let Some(value) = reader.value(key) else { return HeaderList::default() };
    match read(value) {
        Ok(headers) => headers,
        Err(given) => {
            let allowed = reader.allowed(key);
            reader.refuse(key, given, allowed);
            HeaderList::default()
        }
    }
}

/// `Err`: what was given, without values.
fn read(value: &Value) -> Result<HeaderList, String> {
    let Some(given) = value.as_object() else { return Err("no object".to_owned()) };
    if given.len() > HEADERS_MAX {
        return Err(format!("{} headers", given.len()));
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (name, value) in given {
        let shown = name.escape_debug();
        if is_reserved_header(name) {
            return Err(format!("the header {shown}, which is written by Postrider"));
        }
        if pairs.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            return Err(format!("the header {shown} twice"));
        }
        let Some(text) = value.as_str().filter(|text| text.len() <= HEADER_BYTES_MAX) else {
            return Err(format!("the header {shown} with a value that is no text of at most {HEADER_BYTES_MAX} bytes"));
        };
        pairs.push((name.clone(), text.to_owned()));
    }
    HeaderList::try_from(pairs).map_err(|error| error.to_string().replace('`', ""))
}
