//! What a resource in JSON says it is, without reading the rest. It must not know what resources have beside that.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Empty where the body is no JSON object or does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub resource_type: Option<String>,
    pub id: Option<String>,
    /// `type`, which a Bundle has.
    pub kind: Option<String>,
}

#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow, rename = "resourceType")]
    resource_type: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

/// Reads the top of a body.
pub fn outline(body: &[u8]) -> Outline {
    let Ok(top) = serde_json::from_slice::<Top<'_>>(body) else { return Outline::default() };
    let text = |value: Option<&RawValue>| value.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    Outline { resource_type: text(top.resource_type), id: text(top.id), kind: text(top.kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_top_is_looked_at() {
        let read = outline(br#"{"contained": [{"resourceType": "X", "id": "9"}], "resourceType": "Patient", "id": "1", "type": {"a": 1}}"#);
        assert_eq!((read.resource_type.as_deref(), read.id.as_deref(), read.kind), (Some("Patient"), Some("1"), None));
        for nothing in [&b""[..], b"[]", b"<Patient/>", b"{\"resourceType\": 5}", b"\xff", b"{\"id\": 1, \"id\": 2}"] {
            assert_eq!(outline(nothing), Outline::default());
        }
    }
}
