//! Rules about files as such: how long, under which name, with which white space.

use super::{Finding, Source};

const LINES_WANTED: usize = 400;
const LINES_MAX: usize = 600;
const NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"];
const CODE: &[&str] = &[".rs", ".py", ".js", ".mjs", ".ts", ".sql", ".css", ".html"];
/// Written by tools or by lawyers, not by us.
const NOT_OURS: &[&str] = &["Cargo.lock", "package-lock.json", "LICENSE"];
/// Bytes that a fuzzer made up.
const CORPUS: &str = "fuzz/corpus/";

pub fn is_ours(source: &Source) -> bool {
    !source.path.starts_with(CORPUS) && !source.path.rsplit('/').next().is_some_and(|name| NOT_OURS.contains(&name))
}

/// At most 600 lines of code a file, better 400.
pub fn size(source: &Source) -> Vec<Finding> {
    const REASON: &str = "a long file is a place where a second idea has moved in";
    let lines = source.text.lines().count();
    if lines <= LINES_WANTED || !CODE.iter().any(|ending| source.path.ends_with(ending)) {
        return Vec::new();
    }
    let message = format!("{lines} lines; about {LINES_WANTED} are wanted, {LINES_MAX} allowed");
    let is_warning = lines <= LINES_MAX;
    vec![Finding { is_warning, ..Finding::new(source, 0, message, REASON) }]
}

/// No file or folder is named after having no idea of its own.
pub fn name(source: &Source) -> Vec<Finding> {
    const REASON: &str = "such a name says nothing, so everything ends up there";
    source
        .path
        .split(['/', '.', '_', '-'])
        .find(|part| NAMES.contains(part))
        .map(|part| Finding::new(source, 0, format!("`{part}` in the name of a file"), REASON))
        .into_iter()
        .collect()
}

/// No white space at the ends of lines, no carriage returns, a line end at the end.
pub fn whitespace(source: &Source) -> Vec<Finding> {
    const REASON: &str = "what cannot be seen should not show up in a diff";
    if !is_ours(source) || source.text.is_empty() {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = source
        .text
        .split('\n')
        .enumerate()
        .filter(|(_, line)| line.ends_with([' ', '\t', '\r']))
        .map(|(index, _)| Finding::new(source, index + 1, "white space at the end of the line", REASON))
        .collect();
    if !source.text.ends_with('\n') || source.text.ends_with("\n\n") {
        findings.push(Finding::new(source, 0, "the file does not end in exactly one line end", REASON));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{lines, source};
    use super::*;

    #[test]
    fn size_warns_over_400_lines_and_fails_over_600() {
        let of = |count: usize| size(&source("a.rs", &"x\n".repeat(count)));
        assert!(of(400).is_empty());
        assert!(of(401)[0].is_warning && of(600)[0].is_warning);
        assert!(!of(601)[0].is_warning);
        assert!(size(&source("a.md", &"x\n".repeat(900))).is_empty());
    }

    #[test]
    fn names_without_an_idea_are_found_in_any_part() {
        for bad in ["src/util.rs", "src/http_helpers.rs", "common/mod.rs", "tests/common/mod.rs"] {
            assert_eq!(name(&source(bad, "")).len(), 1, "{bad}");
        }
        for good in ["src/commons.rs", "src/futile.rs", "src/time.rs"] {
            assert!(name(&source(good, "")).is_empty(), "{good}");
        }
    }

    #[test]
    fn invisible_characters_are_found() {
        assert_eq!(lines(&whitespace(&source("a.md", "a\nb \nc\t\nd\r\n"))), [2, 3, 4]);
        assert_eq!(lines(&whitespace(&source("a.md", "a"))), [0]);
        assert_eq!(lines(&whitespace(&source("a.md", "a\n\n"))), [0]);
        assert!(whitespace(&source("a.md", "a\n\nb\n")).is_empty());
        assert!(whitespace(&source("LICENSE", "a \n\n")).is_empty());
        assert!(whitespace(&source("fuzz/corpus/id/1f", "a \r\n")).is_empty());
    }
}
