//! What a transaction that is sent holds, for the words about a refusal of it: a server may say that a condition failed and not of which entry.

use serde_json::Value;

/// The entries that have a condition, from 1. Empty for what is no transaction in JSON.
pub fn conditional(body: &[u8]) -> Vec<usize> {
    let Ok(bundle) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    if bundle["resourceType"] != "Bundle" || bundle["type"] != "transaction" {
        return Vec::new();
    }
    let entries = bundle["entry"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_conditional = |entry: &&Value| {
        let request = &entry["request"];
        let has = |name: &str| request[name].is_string();
        has("ifNoneExist")
            || has("ifMatch")
            || has("ifNoneMatch")
            || request["url"].as_str().is_some_and(|url| url.contains('?'))
    };
    let numbered = entries.iter().enumerate().filter(|(_, entry)| is_conditional(entry));
    numbered.map(|(at, _)| at + 1).collect()
}

/// How many entries a batch or a transaction has; 0 for what is none in JSON.
pub fn entries(body: &[u8]) -> usize {
    let Ok(bundle) = serde_json::from_slice::<Value>(body) else { return 0 };
    let is_asked = bundle["resourceType"] == "Bundle" && (bundle["type"] == "transaction" || bundle["type"] == "batch");
    if is_asked { bundle["entry"].as_array().map_or(0, Vec::len) } else { 0 }
}

/// Entries that would write one resource twice, from 1: some servers keep one of them and say nothing (F14).
pub fn repeated(body: &[u8]) -> Option<(usize, usize)> {
    let bundle: Value = serde_json::from_slice(body).ok()?;
    if bundle["resourceType"] != "Bundle" || bundle["type"] != "transaction" {
        return None;
    }
    let mut seen = std::collections::HashMap::new();
    for (at, entry) in bundle["entry"].as_array()?.iter().enumerate() {
        let request = &entry["request"];
        let method = request["method"].as_str().unwrap_or_default();
        let identity = match (method, request["ifNoneExist"].as_str()) {
            ("POST", Some(search)) => format!("{} {search}", request["url"].as_str().unwrap_or_default()),
            ("PUT" | "PATCH" | "DELETE", _) => request["url"].as_str().unwrap_or_default().to_owned(),
            _ => continue,
        };
        if let Some(first) = seen.insert(identity, at + 1) {
            return Some((first, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f22_f14_entries_are_told_by_their_number() {
        let body = serde_json::json!({"resourceType": "Bundle", "type": "transaction", "entry": [
            {"request": {"method": "POST", "url": "Patient"}},
            {"request": {"method": "POST", "url": "Patient", "ifNoneExist": "identifier=1"}},
            {"request": {"method": "PUT", "url": "Patient?identifier=1"}},
            {"request": {"method": "PUT", "url": "Patient/7", "ifMatch": "W/\"1\""}},
            {"request": {"method": "DELETE", "url": "Patient/7"}},
        ]});
        assert_eq!(conditional(body.to_string().as_bytes()), [2, 3, 4]);
        assert_eq!(repeated(body.to_string().as_bytes()), Some((4, 5)));
        for nothing in [
            "",
            "[]",
            "{}",
            "<Bundle/>",
            r#"{"resourceType": "Bundle", "type": "batch", "entry": [{"request": {"ifMatch": "1"}}]}"#,
        ] {
            assert_eq!((conditional(nothing.as_bytes()), repeated(nothing.as_bytes())), (Vec::new(), None));
        }
    }
}
