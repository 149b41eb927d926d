//! Rules about Rust source that clippy has no lint for.

use super::{Finding, Source};

/// Every module says what it does before it does it.
pub fn module_doc(source: &Source) -> Vec<Finding> {
    const REASON: &str = "a module that cannot say in a sentence what it does, and must not know, is no module";
    if !source.is_rust() || source.text.lines().find(|line| !line.is_empty()).is_some_and(is_module_doc) {
        return Vec::new();
    }
    vec![Finding::new(source, 1, "the module does not begin with `//!`", REASON)]
}

fn is_module_doc(line: &str) -> bool {
    line.starts_with("//! ")
}

/// Law 1: core decides, shell acts.
pub fn core_is_pure(source: &Source) -> Vec<Finding> {
    const REASON: &str = "core is pure: no async, no I/O, no clock, no random source (law 1)";
    const IMPURE: &[&str] = &[
        "async fn",
        "async move",
        ".await",
        "std::fs",
        "std::net",
        "std::io",
        "std::env",
        "std::process",
        "std::thread",
        "Instant::now",
        "SystemTime::now",
        "rand::",
    ];
    if !source.path.starts_with("crates/core/src/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let code = without_comment(line);
        for word in IMPURE.iter().filter(|word| code.contains(*word)) {
            findings.push(Finding::new(source, index + 1, format!("`{word}` in core"), REASON));
        }
    }
    findings
}

/// R14: one way out, so that one guard judges all of it.
pub fn one_way_out(source: &Source) -> Vec<Finding> {
    const REASON: &str = "every socket of the product goes through the egress guard: open it with `Egress::open`, or resolve with its resolver";
    /// The way out itself; the client of our own server; and a program that measures it from outside.
    const EXCEPT: &[&str] = &[
        "crates/wire/src/egress/mod.rs",
        "crates/wire/src/resolve.rs",
        "crates/postrider/src/client/transport.rs",
        "crates/bench/",
        "xtask/",
    ];
    const OPENERS: &[&str] = &[
        "TcpStream::connect",
        "TcpSocket",
        "UdpSocket",
        "UnixStream::connect",
        "UnixDatagram",
        "Socket::new(",
        "HttpConnector",
        "lookup_host",
        "to_socket_addrs",
        "reqwest::",
        "ureq::",
    ];
    if !source.is_rust() || source.is_test() || EXCEPT.iter().any(|path| source.path.starts_with(path)) {
        return Vec::new();
    }
    // Tests stand at the end of a file.
    let product = source.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut findings = Vec::new();
    for (index, line) in product.lines().enumerate() {
        let code = without_comment(line);
        for word in OPENERS.iter().filter(|word| code.contains(*word)) {
            findings.push(Finding::new(source, index + 1, format!("`{word}` beside the one way out"), REASON));
        }
    }
    findings
}

/// A lint of ours is set aside only for a reason, and `unwrap` only in tests.
pub fn allowances(source: &Source) -> Vec<Finding> {
    const REASON: &str = "an exception without a reason becomes the rule";
    const PANICS: &str = "a server answers bad input with an error, not by falling over";
    if !source.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, attribute) in attributes(&source.text) {
        let line = source.text[..at].matches('\n').count() + 1;
        let allows = |lint: &str| attribute.contains(lint);
        if allows("clippy::unwrap_used") && !source.is_test() && !attribute.contains("test") {
            findings.push(Finding::new(source, line, "`unwrap` outside tests", PANICS));
        }
        let house = allows("clippy::disallowed_") || allows("clippy::too_many_lines");
        if house && !attribute.contains("reason") {
            findings.push(Finding::new(source, line, "a lint is set aside without a `reason`", REASON));
        }
    }
    findings
}

/// Where an attribute that allows or expects something stands, and its text up to the closing bracket.
fn attributes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = from;
        from += line.len();
        let start = line.trim_start();
        let opens = start.starts_with("#[") || start.starts_with("#![");
        let names = ["allow(", "expect("].iter().any(|word| start.contains(word));
        if !(opens && names) {
            return None;
        }
        let rest = &text[at..];
        let end = rest.find(")]").map_or(rest.len(), |end| end + 2);
        Some((at, &rest[..end]))
    })
}

/// A `select!` picks in the written order.
pub fn select_is_biased(source: &Source) -> Vec<Finding> {
    const REASON: &str = "a select that rolls a die of its own cannot be replayed from a seed";
    if !source.is_rust() || source.is_test() || !source.path.starts_with("crates/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, opening) in source.text.match_indices("select! {") {
        let line_start = source.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let in_comment = source.text[line_start..at].contains("//");
        if !in_comment && first_code(&source.text[at + opening.len()..]) != "biased;" {
            let line = source.text[..at].matches('\n').count() + 1;
            findings.push(Finding::new(source, line, "a `select!` without `biased;`", REASON));
        }
    }
    findings
}

/// The first line that is neither empty nor a comment.
fn first_code(text: &str) -> &str {
    text.lines().map(|line| without_comment(line).trim()).find(|line| !line.is_empty()).unwrap_or_default()
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{lines, source};
    use super::*;

    #[test]
    fn a_module_without_its_opening_sentence_is_found() {
        assert!(module_doc(&source("a.rs", "//! Does it.\nfn a() {}\n")).is_empty());
        assert_eq!(lines(&module_doc(&source("a.rs", "fn a() {}\n//! late\n"))), [1]);
        assert_eq!(lines(&module_doc(&source("a.rs", ""))), [1]);
        assert!(module_doc(&source("a.py", "x = 1\n")).is_empty());
    }

    #[test]
    fn core_may_speak_of_the_world_but_not_touch_it() {
        let text = "//! no std::fs here\nuse std::fs;\nasync fn a() {}\nlet x = 1; // rand::rng\nfn b(now: SystemTime) {}\nSystemTime::now();\n";
        assert_eq!(lines(&core_is_pure(&source("crates/core/src/a.rs", text))), [2, 3, 6]);
        assert!(core_is_pure(&source("crates/wire/src/a.rs", text)).is_empty());
    }

    #[test]
    fn r14_a_socket_beside_the_one_way_out_is_found() {
        let text = "let a = TcpStream::connect(b).await;\n// TcpStream::connect\nlookup_host(a);\n#[cfg(test)]\nmod tests {\n    TcpStream::connect(a);\n}\n";
        assert_eq!(lines(&one_way_out(&source("crates/engine/src/a.rs", text))), [1, 3]);
        assert!(one_way_out(&source("crates/engine/tests/a.rs", text)).is_empty());
        assert!(one_way_out(&source("crates/wire/src/egress/mod.rs", text)).is_empty());
    }

    #[test]
    fn exceptions_need_a_reason_and_unwrap_needs_a_test() {
        let bare = "#![allow(clippy::disallowed_methods)]\n";
        let with_reason = "#![allow(\n    clippy::disallowed_methods,\n    reason = \"reads time\"\n)]\n";
        assert_eq!(lines(&allowances(&source("crates/a/src/a.rs", bare))), [1]);
        assert!(allowances(&source("crates/a/src/a.rs", with_reason)).is_empty());
        let unwrap = "\n#[allow(clippy::unwrap_used)]\n";
        assert_eq!(lines(&allowances(&source("crates/a/src/a.rs", unwrap))), [2]);
        assert!(allowances(&source("crates/a/tests/a.rs", unwrap)).is_empty());
        let in_tests = "#![cfg_attr(test, allow(clippy::unwrap_used))]\n";
        assert!(allowances(&source("crates/a/src/lib.rs", in_tests)).is_empty());
    }

    #[test]
    fn a_select_without_bias_is_found() {
        let text =
            "tokio::select! {\n    // in order\n    biased;\n}\n//! a select! { in words\nselect! {\n    a => {}\n}\n";
        assert_eq!(lines(&select_is_biased(&source("crates/a/src/a.rs", text))), [6]);
        assert!(select_is_biased(&source("crates/a/tests/a.rs", text)).is_empty());
    }
}
