//! JSON without the spaces between its tokens, numbers and strings left exactly as they were written.
//!
//! Parsing into values would round large numbers and drop repeated keys; a body is to arrive as it was meant.

use postrider_core::json_text::has_lone_surrogate;

/// Levels of arrays and objects, at most; readers with a recursion limit take this much.
pub const NESTING_MAX: usize = 100;

/// Why a value is not taken as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untaken {
    TooDeep,
    LoneSurrogate,
}

impl Untaken {
    /// What is wrong with the field, and what is allowed.
    pub fn told(self, field: &str) -> (String, String) {
        match self {
            Untaken::TooDeep => (
                format!("`{field}` is nested too deeply"),
                format!("at most {NESTING_MAX} levels of arrays and objects"),
            ),
            Untaken::LoneSurrogate => (
                format!("`{field}` is not valid Unicode"),
                "JSON whose strings have no lone surrogates, such as \"\\ud800\"".to_owned(),
            ),
        }
    }
}

/// The text must be valid JSON.
///
/// # Errors
/// Nested deeper than `NESTING_MAX`, or with half a surrogate pair in a string.
pub fn compact(json: &str) -> Result<String, Untaken> {
    if has_lone_surrogate(json) {
        return Err(Untaken::LoneSurrogate);
    }
    let mut compacted = String::with_capacity(json.len());
    let (mut in_string, mut escaped, mut depth) = (false, false, 0usize);
    for c in json.chars() {
        if in_string {
            compacted.push(c);
            (in_string, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => continue,
            '"' => in_string = true,
            '{' | '[' => {
                depth += 1;
                if depth > NESTING_MAX {
                    return Err(Untaken::TooDeep);
                }
            }
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        compacted.push(c);
    }
    Ok(compacted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_between_tokens_go() {
        let json = "{ \"a b\" : [ 1.50, 12345678901234567890123 ],\n\"q\\\" \\\\\" : \" \\\\\", \"a b\": null }";
        let expected = "{\"a b\":[1.50,12345678901234567890123],\"q\\\" \\\\\":\" \\\\\",\"a b\":null}";
        assert_eq!(compact(json).as_deref(), Ok(expected));
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(compact(&nested(NESTING_MAX)).is_ok());
        assert_eq!(compact(&nested(NESTING_MAX + 1)), Err(Untaken::TooDeep));
        assert!(compact(&format!("[{}]", vec!["[]"; 200].join(","))).is_ok());
    }
}
