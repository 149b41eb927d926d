//! JSON without the spaces between its tokens, numbers and strings left exactly as they were written.
//!
//! Parsing into values would round large numbers and drop repeated keys; a body is to arrive as it was meant.

/// Levels of arrays and objects, at most; readers with a recursion limit take this much.
pub const NESTING_MAX: usize = 100;

/// The text must be valid JSON. `None`: nested deeper than `NESTING_MAX`.
pub fn compact(json: &str) -> Option<String> {
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
                    return None;
                }
            }
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        compacted.push(c);
    }
    Some(compacted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_between_tokens_go() {
        let json = "{ \"a b\" : [ 1.50, 12345678901234567890123 ],\n\"q\\\" \\\\\" : \" \\\\\", \"a b\": null }";
        let expected = "{\"a b\":[1.50,12345678901234567890123],\"q\\\" \\\\\":\" \\\\\",\"a b\":null}";
        assert_eq!(compact(json).as_deref(), Some(expected));
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(compact(&nested(NESTING_MAX)).is_some());
        assert!(compact(&nested(NESTING_MAX + 1)).is_none());
        assert!(compact(&format!("[{}]", vec!["[]"; 200].join(","))).is_some());
    }
}
