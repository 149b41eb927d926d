//! Rules about log lines: each has its name from the one catalogue, and the level that stands there.

use super::{Finding, Source};

const CATALOGUE: &str = "crates/core/src/log.rs";
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Every line has an `event` first, and it is logged under its own level; every event of the catalogue is logged somewhere.
pub fn named(sources: &[Source]) -> Vec<Finding> {
    const REASON: &str =
        "whoever searches or counts log lines goes by `event`, whose names and levels stand in crates/core/src/log.rs";
    let Some(catalogue) = sources.iter().find(|source| source.path == CATALOGUE) else { return Vec::new() };
    let known = entries(&catalogue.text);
    let mut used = Vec::new();
    let mut findings = Vec::new();
    let product = sources.iter().filter(|source| {
        source.is_rust() && source.path.starts_with("crates/") && source.path.contains("/src/") && !source.is_test()
    });
    for source in product {
        for (line, level, event) in lines(&source.text) {
            let entry = event.as_deref().and_then(|event| known.iter().find(|(name, _)| name == event));
            let message = match (&event, entry) {
                (None, _) => format!("`tracing::{level}!` does not begin with `event = log::NAME`"),
                (Some(event), None) => format!("`log::{event}` is not in the catalogue"),
                (Some(event), Some((_, wanted))) if wanted != level => {
                    format!("`log::{event}` is logged as {level}, and the catalogue says {wanted}")
                }
                (Some(event), Some(_)) => {
                    used.push(event.clone());
                    continue;
                }
            };
            findings.push(Finding::new(source, line, message, REASON));
        }
    }
    for (name, _) in known.iter().filter(|(name, _)| !used.contains(name)) {
        findings.push(Finding::new(catalogue, 0, format!("`{name}` is never logged"), REASON));
    }
    findings
}

/// `NAME: "name", Level, …` of the catalogue.
fn entries(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("    ")?.split_once(": \"")?;
        let level = rest.split(',').nth(1)?.trim();
        let is_constant = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        is_constant.then(|| (name.to_owned(), level.to_lowercase()))
    });
    rows.collect()
}

/// Each call of a logging macro: its line, its level, and the constant that it begins with.
fn lines(text: &str) -> Vec<(usize, &'static str, Option<String>)> {
    let mut found = Vec::new();
    for level in LEVELS {
        let call = format!("tracing::{level}!(");
        for (at, _) in text.match_indices(&call) {
            let line = text[..at].lines().count().max(1);
            let rest = text[at + call.len()..].trim_start();
            let path = rest.strip_prefix("event = ").unwrap_or_default();
            let path = path.strip_prefix("postrider_core::").unwrap_or(path);
            let event = path
                .strip_prefix("log::")
                .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>());
            found.push((line, level, event));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::source;

    fn messages(code: &str) -> Vec<String> {
        let catalogue = source(CATALOGUE, "    A_B: \"a.b\", Warn, \"When.\";\n");
        named(&[catalogue, source("crates/x/src/lib.rs", code)]).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_line_has_its_name_and_its_level() {
        assert_eq!(messages("tracing::warn!(event = log::A_B, \"x\");"), Vec::<String>::new());
        assert_eq!(messages("tracing::warn!(\n    event = log::A_B,\n    \"x\"\n);"), Vec::<String>::new());
        let told = messages("tracing::warn!(\"x\");");
        assert!(told[0].contains("does not begin with") && told[1].contains("never logged"), "{told:?}");
        assert!(messages("tracing::info!(event = log::A_B, \"x\");")[0].contains("the catalogue says warn"));
        assert!(messages("tracing::warn!(event = log::C, \"x\");")[0].contains("not in the catalogue"));
    }
}
