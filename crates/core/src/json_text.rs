//! JSON kept as text and never read as values: what a reader of JSON that only skips over it lets through.
//!
//! It must not know what the text is for.

/// Whether a string in it has half a surrogate pair (`"\ud800"`): JSON by its grammar, and no text (RFC 8259, section 8.2). Most readers refuse
/// the whole document for it, so that whoever is sent it could read nothing. The text must be valid JSON.
pub fn has_lone_surrogate(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut at = 0;
    // A backslash stands in strings only.
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        at += found;
        match unit(bytes, at) {
            None => at += 2,
            Some(0xd800..=0xdbff) if matches!(unit(bytes, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => return true,
            Some(_) => at += 6,
        }
    }
    false
}

/// Of the escape `\uXXXX` that begins here, if one does.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_a_pair_is_found_and_a_whole_one_is_text() {
        for json in [
            r#""\ud800""#,
            r#"{"\udfff": 1}"#,
            r#"["\ud83d\ud83d\ude00"]"#,
            r#""\ud83dx""#,
            r#""\\\ud800""#,
            r#""\uDC00\uD800""#,
        ] {
            assert!(has_lone_surrogate(json), "{json}");
        }
        for json in [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""\u00e9\n""#, r#""é\"\\""#, "1", r#""\\\\ud800""#] {
            assert!(!has_lone_surrogate(json), "{json}");
        }
    }

    proptest! {
        /// Held against a reader that decodes.
        #[test]
        fn it_says_what_a_strict_reader_says(parts in prop::collection::vec(prop_oneof![
            Just("\\ud83d"), Just("\\ude00"), Just("\\\\"), Just("\\n"), Just("u"), Just("d800"), Just("\\u0041"), Just("é"),
        ], 0..8)) {
            let json = format!("\"{}\"", parts.concat());
            prop_assert_eq!(has_lone_surrogate(&json), serde_json::from_str::<String>(&json).is_err());
        }
    }
}
