//! `Env.NAME` as a value: what it names is handed in from outside (D18). It must not read the environment itself.

use std::collections::BTreeSet;

use crate::document::{Content, Node, Style, read};

/// For callers that have no environment to offer.
pub const NO_ENVIRONMENT: &(dyn Fn(&str) -> Option<String> + Sync) = &|_| None;

/// The platform's prefix, and its short form.
const PREFIXES: [&str; 2] = ["Zato_Enmasse_Env.", "Env."];
const NAME_BYTES_MAX: usize = 200;

/// The variable that a value names as a whole, if it names one.
pub fn variable(text: &str) -> Option<&str> {
    let name = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = begins_well && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_name && name.len() <= NAME_BYTES_MAX).then_some(name)
}

/// The variables that a file names, so that a caller can send them along. Nothing where the file cannot be read: then it is refused anyway.
pub fn names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let (Some(root), _) = read(text) {
        collect(&root, &mut names);
    }
    names
}

fn collect(node: &Node, names: &mut BTreeSet<String>) {
    match &node.content {
        Content::Scalar(scalar) if scalar.style == Style::Literal => {}
        Content::Scalar(scalar) => names.extend(variable(&scalar.text).map(str::to_owned)),
        Content::List(nodes) => nodes.iter().for_each(|node| collect(node, names)),
        Content::Map(entries) => entries.iter().for_each(|entry| collect(&entry.value, names)),
    }
}

/// What export writes for the secret `key` of the object `name`: `Env.LAB_SEC_PASSWORD` for the password of `lab.sec`.
pub fn placeholder(name: &str, key: &str) -> String {
    let word = |text: &str| -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        text.chars().map(letter).take(NAME_BYTES_MAX / 2 - 4).collect()
    };
    let joined = format!("{}_{}", word(name), word(key));
    let digit_first = joined.starts_with(|c: char| c.is_ascii_digit());
    format!("Env.{}{joined}", if digit_first { "_" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d18_a_value_names_a_variable_as_a_whole_or_not_at_all() {
        for text in ["Env.Lab_Password", "Zato_Enmasse_Env.Lab_Password"] {
            assert_eq!(variable(text), Some("Lab_Password"));
        }
        for text in ["Env.", "Env.1a", "Env.a-b", "env.A", "xEnv.A", "Env.A ", "a Env.B", "Env.é", "Env"] {
            assert_eq!(variable(text), None, "{text}");
        }
        let file = "a: [Env.A, {b: 'Env.B'}]\nc: !!str Env.C\nEnv.D: x\n";
        assert_eq!(names(file).into_iter().collect::<Vec<_>>(), ["A", "B"]);
        assert!(names("a: [").is_empty());
    }

    #[test]
    fn d18_the_placeholder_of_a_secret_is_a_variable() {
        let cases =
            [("lab.sec", "Env.LAB_SEC_PASSWORD"), ("2fa", "Env._2FA_PASSWORD"), ("größe", "Env.GR__E_PASSWORD")];
        for (name, wanted) in cases {
            assert_eq!(placeholder(name, "password"), wanted);
            assert!(variable(&placeholder(name, "password")).is_some());
        }
        assert!(variable(&placeholder(&"x".repeat(1000), &"y".repeat(1000))).is_some());
    }
}
