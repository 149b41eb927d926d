//! Rules about words that have no place in the project's text.

use super::layout::is_ours;
use super::{Finding, Source};

/// Each is put together here, so that this file does not contain it. Compared without regard to case.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), ONE_MACHINE),
    (concat!("/ro", "ot/"), ONE_MACHINE),
    (concat!("ai ", "assistant"), ABOUT_THE_PRODUCT),
    (concat!("ai-", "generated"), ABOUT_THE_PRODUCT),
    (concat!("language ", "model"), ABOUT_THE_PRODUCT),
    (concat!("co-authored", "-by"), ABOUT_THE_PRODUCT),
    (concat!("session ", "helper"), ABOUT_THE_PRODUCT),
    (concat!("session", "-helper"), ABOUT_THE_PRODUCT),
];
const ONE_MACHINE: &str = "a path of one machine is wrong on every other";
const ABOUT_THE_PRODUCT: &str = "the text is about the product, not about how it came to be written";

pub fn forbidden(source: &Source) -> Vec<Finding> {
    if !is_ours(source) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let line = line.to_lowercase();
        for (word, reason) in FORBIDDEN {
            if contains(&line, word) {
                findings.push(Finding::new(source, index + 1, format!("`{word}` in the text"), reason));
            }
        }
    }
    findings
}

/// Whether `word` begins at a boundary somewhere: the middle of a longer path or word is not it.
fn contains(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(|before: char| before.is_ascii_alphanumeric() || "._-}/".contains(before)))
}

/// Lock files and pins name packages, never the server that they came from.
pub fn registry_hosts(source: &Source) -> Vec<Finding> {
    const REASON: &str = "everybody fetches packages from the registry of their own setting";
    let name = source.path.rsplit('/').next().unwrap_or_default();
    let is_pin = name.starts_with("requirements") || name == "package-lock.json" || name == ".npmrc";
    if !is_pin {
        return Vec::new();
    }
    let names_host = |line: &str| line.contains("\"resolved\"") || line.contains("-url") || line.contains("registry=");
    source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| names_host(line))
        .map(|(index, _)| Finding::new(source, index + 1, "the address of a registry", REASON))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{lines, source};
    use super::*;

    #[test]
    fn machine_paths_are_found_and_longer_paths_are_not() {
        let text = format!("see {}a\ncargo {}\n", FORBIDDEN[0].0, "target/work/x and /frame/work/x and network/");
        assert_eq!(lines(&forbidden(&source("a.md", &text))), [1]);
        let quoted = format!("open(\"{}x\")\n", FORBIDDEN[1].0);
        assert_eq!(lines(&forbidden(&source("a.py", &quoted))), [1]);
    }

    #[test]
    fn words_are_found_whatever_their_case_and_the_dashboard_may_have_sessions() {
        let text = format!("{}\nthe session of a person\n", FORBIDDEN[2].0.to_uppercase());
        assert_eq!(lines(&forbidden(&source("a.md", &text))), [1]);
    }

    #[test]
    fn a_lock_file_with_addresses_is_found() {
        let lock = "{\n\"resolved\": \"https://example.org/a.tgz\",\n\"integrity\": \"x\"\n}\n";
        assert_eq!(lines(&registry_hosts(&source("tests/peers/package-lock.json", lock))), [2]);
        assert_eq!(lines(&registry_hosts(&source("requirements.txt", "--index-url x\na==1\n"))), [1]);
        assert!(registry_hosts(&source("a.json", lock)).is_empty());
    }
}
