//! Names of topics and the patterns that select them (P02).

use postrider_core::topic::{TopicName, TopicPattern};

/// The input is a pattern, a line end and a name.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, text));
    let read_pattern = TopicPattern::new(pattern);
    let read_name = TopicName::new(name);
    let is_literal = |segment: &str| {
        !segment.is_empty() && segment.chars().all(|c| matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-'))
    };
    let fits = |text: &str| (1..=200).contains(&text.chars().count());
    let is_pattern = fits(pattern) && pattern.split('.').all(|part| part == "*" || part == "**" || is_literal(part));
    assert_eq!(read_pattern.is_ok(), is_pattern, "{pattern:?}");
    assert_eq!(read_name.is_ok(), fits(name) && name.split('.').all(is_literal), "{name:?}");
    if let Err(error) = &read_name {
        assert!(!error.to_string().is_empty());
    }
    let (Ok(pattern), Ok(name)) = (read_pattern, read_name) else { return };
    let expected = selects(pattern.as_str(), name.as_str());
    assert_eq!(pattern.matches(&name), expected, "{pattern} on {name}");
    let itself = TopicPattern::new(name.as_str()).expect("a name is a pattern too");
    assert!(itself.matches(&name), "{name} selects itself");
    assert_eq!(pattern.to_string().parse(), Ok(pattern));
    assert_eq!(name.to_string().parse(), Ok(name));
}

/// A table instead of a search: whether the first `i` segments of the pattern can be the first `j` of the name.
fn selects(pattern: &str, name: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('.').collect();
    let name: Vec<&str> = name.split('.').collect();
    let mut can = vec![vec![false; name.len() + 1]; pattern.len() + 1];
    can[0][0] = true;
    for i in 1..=pattern.len() {
        for j in 0..=name.len() {
            can[i][j] = match pattern[i - 1] {
                "**" => can[i - 1][j] || (j > 0 && can[i][j - 1]),
                "*" => j > 0 && can[i - 1][j - 1],
                literal => j > 0 && literal == name[j - 1] && can[i - 1][j - 1],
            };
        }
    }
    can[pattern.len()][name.len()]
}
