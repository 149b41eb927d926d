//! The rule that a test names only requirements that exist (docs/requirements.md).

use std::collections::BTreeSet;

use super::{Finding, Source};

const PAGE: &str = "docs/requirements.md";
const CODE: &[&str] = &[".rs", ".py", ".js", ".mjs", ".ts"];
/// What stands before a test's name in the languages that tests are written in.
const OPENINGS: &[&str] = &["fn ", "def test_", "test('", "test(\"", "it('", "it(\""];

pub fn named_ones_exist(sources: &[Source]) -> Vec<Finding> {
    const REASON: &str = "a test that claims to prove what nobody asked for hides that something else is unproved";
    let known: BTreeSet<String> = sources
        .iter()
        .filter(|source| source.path == PAGE)
        .flat_map(|source| source.text.lines())
        .filter_map(|line| number(line.strip_prefix("- ")?))
        .collect();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| CODE.iter().any(|ending| source.path.ends_with(ending))) {
        for (index, line) in source.text.lines().enumerate() {
            for number in named(line).into_iter().filter(|number| !known.contains(number)) {
                let message = format!("there is no requirement {number} in {PAGE}");
                findings.push(Finding::new(source, index + 1, message, REASON));
            }
        }
    }
    findings
}

/// The requirements that a line names: by a test's own name, or in a comment `proves: Z04, Z05`.
fn named(line: &str) -> Vec<String> {
    let code = line.trim_start();
    let is_comment = code.starts_with("//") || code.starts_with('#');
    if is_comment {
        let list = code.split_once("proves: ").map_or("", |(_, list)| list);
        return list.split(", ").filter_map(number).collect();
    }
    OPENINGS
        .iter()
        .filter_map(|opening| code.split_once(opening))
        .filter(|(_, name)| name.as_bytes().get(3) == Some(&b'_'))
        .filter_map(|(_, name)| number(&name[..3].to_uppercase()))
        .collect()
}

/// The number that `text` begins with, such as `Z04`.
fn number(text: &str) -> Option<String> {
    let start = text.get(..3)?;
    let (letter, digits) = start.split_at_checked(1)?;
    let ends = !text[3..].starts_with(|c: char| c.is_ascii_alphanumeric());
    let fits = "ZRVP".contains(letter) && digits.bytes().all(|digit| digit.is_ascii_digit()) && ends;
    fits.then(|| start.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{lines, source};
    use super::*;

    #[test]
    fn a_number_that_nobody_asked_for_is_found() {
        let page = source(PAGE, "# Requirements\n\n- Z04 Retry-After.\n- R08 Later only.\n");
        let first = "// proves: Z04, Z99\n#[test]\nfn z04_waits() {}\nfn r09_caps() {}\nfn v8_engine() {}\n";
        let tests = source("crates/core/src/a.rs", first);
        assert_eq!(lines(&named_ones_exist(&[page, tests])), [1, 4]);
    }

    #[test]
    fn every_language_is_read() {
        assert_eq!(named("def test_z35_snippets():"), ["Z35"]);
        assert_eq!(named("  test('p05_shows_a_queue', () => {"), ["P05"]);
        assert_eq!(named("    pub async fn z13_resumes() {"), ["Z13"]);
        assert_eq!(named("    # proves: V01, D24"), ["V01"]);
        assert_eq!(named("fn zip_files() {}"), [""; 0]);
    }
}
