//! The rule that the tests which docs/healthcare-cases.md names are there.

use super::{Finding, Source};

const PAGE: &str = "docs/healthcare-cases.md";

pub fn named_tests_exist(sources: &[Source]) -> Vec<Finding> {
    const REASON: &str = "a case whose test has gone or has another name is one that nobody looks after";
    let code: Vec<&str> =
        sources.iter().filter(|source| source.path.ends_with(".rs")).map(|source| &*source.text).collect();
    let mut findings = Vec::new();
    for page in sources.iter().filter(|source| source.path == PAGE) {
        for (index, line) in page.text.lines().enumerate() {
            for name in named(line) {
                // One that ends in `…` stands further up in full.
                let opening = match name.strip_suffix('…') {
                    Some(beginning) => format!("fn {beginning}"),
                    None => format!("fn {name}("),
                };
                if !code.iter().any(|text| text.contains(&opening)) {
                    findings.push(Finding::new(page, index + 1, format!("there is no test `{name}`"), REASON));
                }
            }
        }
    }
    findings
}

/// The tests in a row of a table: code that is written as a test's name is, in the last column.
fn named(line: &str) -> Vec<&str> {
    let Some(column) = line.strip_prefix("| ").and_then(|row| row.trim_end_matches([' ', '|']).rsplit(" | ").next())
    else {
        return Vec::new();
    };
    let is_name = |text: &&str| {
        let mut letters = text.bytes();
        let is_numbered = letters.next().is_some_and(|first| first.is_ascii_lowercase())
            && letters.next().is_some_and(|second| second.is_ascii_digit());
        is_numbered || text.starts_with("what_")
    };
    column.split('`').skip(1).step_by(2).filter(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{lines, source};
    use super::*;

    #[test]
    fn a_test_that_has_gone_is_found() {
        let page = "# Cases\n\n| | behaviour | tests |\n|---|---|---|\n| M01 | `x1_y` is | `m01_late`, `m01_…` (wire) |\n| M02 | x | `m02_gone` (wire), `mllp` |\n";
        let tests = source("crates/wire/tests/a.rs", "async fn m01_late() {}\n");
        assert_eq!(lines(&named_tests_exist(&[source(PAGE, page), tests])), [6]);
    }
}
