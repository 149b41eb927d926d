//! `cargo xtask tidy`: the rules of the house that no other tool checks, each with its reason.
//!
//! This module collects what is to be read and prints what was found. The rules are in the modules below it; they are pure functions
//! from text to findings and must not know of files or of git.

mod arrows;
mod cases;
mod layout;
mod logs;
mod requirements;
mod rust;
mod words;

use std::process::Command;

use crate::{process, workspace};

/// A text file of the project.
pub struct Source {
    /// Relative to the root, with `/` between folders.
    pub path: String,
    pub text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Test code lives by looser rules: it may stop at the first surprise.
    fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "benches" || part == "tests.rs")
    }
}

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// From 1; 0 for the file as a whole.
    pub line: usize,
    pub message: String,
    /// Why the rule is there.
    pub reason: &'static str,
    /// A warning is shown and breaks nothing.
    pub is_warning: bool,
}

impl Finding {
    fn new(source: &Source, line: usize, message: impl Into<String>, reason: &'static str) -> Self {
        Finding { path: source.path.clone(), line, message: message.into(), reason, is_warning: false }
    }
}

/// The rules that look at one file at a time.
const FILE_RULES: &[fn(&Source) -> Vec<Finding>] = &[
    layout::size,
    layout::name,
    layout::whitespace,
    words::forbidden,
    words::registry_hosts,
    rust::module_doc,
    rust::core_is_pure,
    rust::one_way_out,
    rust::allowances,
    rust::select_is_biased,
];

pub fn run() -> Result<(), String> {
    let sources = sources()?;
    let metadata = workspace::metadata()?;
    let mut findings: Vec<Finding> =
        sources.iter().flat_map(|source| FILE_RULES.iter().flat_map(|rule| rule(source))).collect();
    findings.extend(arrows::manifests(&metadata, &sources));
    findings.extend(logs::named(&sources));
    findings.extend(requirements::named_ones_exist(&sources));
    findings.extend(cases::named_tests_exist(&sources));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    report(&findings, sources.len())
}

fn report(findings: &[Finding], files: usize) -> Result<(), String> {
    for finding in findings {
        let kind = if finding.is_warning { "warning" } else { "error" };
        eprintln!("{}:{}: {kind}: {}", finding.path, finding.line, finding.message);
        eprintln!("    because {}", finding.reason);
    }
    let errors = findings.iter().filter(|finding| !finding.is_warning).count();
    eprintln!("    {files} files, {errors} errors, {} warnings", findings.len() - errors);
    if errors == 0 { Ok(()) } else { Err(format!("{errors} rules of the house are broken")) }
}

/// Every text file that is in the project or about to be: tracked, or neither tracked nor ignored.
fn sources() -> Result<Vec<Source>, String> {
    let root = workspace::root();
    let mut git = Command::new("git");
    git.current_dir(&root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = process::output(&mut git)?;
    let mut sources = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        // A tracked file may just have been removed, and a picture is no text: neither is ours to judge.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    Ok(sources)
}

#[cfg(test)]
pub mod fixture {
    //! Shorthands for the tests of the rules.

    use super::{Finding, Source};

    pub fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// The lines on which a rule found something.
    pub fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }
}
