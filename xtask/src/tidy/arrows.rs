//! Rules about manifests: which crate may know which, what core may depend on, licence and lints.

use serde_json::Value;

use super::{Finding, Source};

/// Who may depend on whom: arrows point inward. A crate that is not listed may depend on none of ours and has to be added here first.
const ARROWS: &[(&str, &[&str])] = &[
    ("postrider-core", &[]),
    ("postrider-store", &["postrider-core"]),
    ("postrider-wire", &["postrider-core"]),
    ("postrider-config", &["postrider-core", "postrider-store"]),
    ("postrider-engine", &["postrider-core", "postrider-store", "postrider-wire"]),
    ("postrider-web", &["postrider-core", "postrider-store", "postrider-wire", "postrider-engine", "postrider-config"]),
    ("postrider-sim", &["postrider-core", "postrider-store", "postrider-wire", "postrider-engine"]),
    (
        "postrider",
        &[
            "postrider-core",
            "postrider-store",
            "postrider-wire",
            "postrider-engine",
            "postrider-config",
            "postrider-web",
        ],
    ),
    // It measures the binary from outside, as a child process; the crates are for the parts of the ceiling.
    ("postrider-bench", &["postrider-core", "postrider-store", "postrider-wire"]),
    // For tests and fuzzing only: nothing may depend on it.
    (
        "postrider-properties",
        &["postrider-core", "postrider-store", "postrider-wire", "postrider-config", "postrider-web"],
    ),
    ("xtask", &[]),
];

/// Pure crates only: they compute, and touch nothing outside the process.
const CORE_MAY_USE: &[&str] = &[
    "base64",
    "bytes",
    "hmac",
    "httpdate",
    "jiff",
    "percent-encoding",
    "serde",
    "serde_json",
    "sha2",
    "subtle",
    "thiserror",
];

const LICENCE: &str = "Apache-2.0";

/// Judges every manifest of the workspace, as cargo itself has read them.
pub fn manifests(metadata: &Value, sources: &[Source]) -> Vec<Finding> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut findings = Vec::new();
    for package in items(&metadata["packages"]) {
        let path = package["manifest_path"].as_str().unwrap_or_default();
        let path = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
        let text = sources.iter().find(|source| source.path == path).map_or("", |source| &source.text);
        let manifest = Source { path: path.to_owned(), text: text.to_owned() };
        findings.extend(dependencies(package, &manifest));
        findings.extend(licence_and_lints(package, &manifest));
        findings.extend(unsafe_code(package, root, sources));
    }
    findings
}

fn dependencies(package: &Value, manifest: &Source) -> Vec<Finding> {
    const ARROW: &str =
        "arrows point inward: postrider > web > engine > {store, wire} > core; web > config > store; sim > engine";
    const CORE: &str = "core is pure, and so is all that it stands on (law 1)";
    let name = package["name"].as_str().unwrap_or_default();
    let Some((_, inward)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        let message = format!("the crate `{name}` has no place among the arrows yet");
        return vec![Finding::new(manifest, 0, message, ARROW)];
    };
    let mut findings = Vec::new();
    for dependency in items(&package["dependencies"]) {
        let to = dependency["name"].as_str().unwrap_or_default();
        let is_ours = ARROWS.iter().any(|(from, _)| *from == to);
        if is_ours && !inward.contains(&to) {
            findings.push(Finding::new(manifest, 0, format!("`{name}` depends on `{to}`"), ARROW));
        }
        // Tests of core may use what they like: nothing of that is linked into it.
        let is_linked = dependency["kind"].as_str() != Some("dev");
        if name == "postrider-core" && !is_ours && is_linked && !CORE_MAY_USE.contains(&to) {
            findings.push(Finding::new(manifest, 0, format!("core depends on `{to}`"), CORE));
        }
    }
    findings
}

fn licence_and_lints(package: &Value, manifest: &Source) -> Vec<Finding> {
    const LICENCES: &str = "a crate without its licence cannot be passed on";
    const LINTS: &str = "a crate outside the shared lints is outside the rules, `unwrap` included";
    let mut findings = Vec::new();
    if package["license"].as_str() != Some(LICENCE) {
        findings.push(Finding::new(manifest, 0, format!("the licence is not {LICENCE}"), LICENCES));
    }
    let mut lines = manifest.text.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    if lines.next() != Some("workspace = true") {
        findings.push(Finding::new(manifest, 0, "`[lints] workspace = true` is missing", LINTS));
    }
    findings
}

fn unsafe_code(package: &Value, root: &str, sources: &[Source]) -> Vec<Finding> {
    const REASON: &str = "no unsafe code of our own; the attribute holds where lints are overridden";
    let mut findings = Vec::new();
    for target in items(&package["targets"]) {
        let is_part = items(&target["kind"]).any(|kind| matches!(kind.as_str(), Some("lib" | "bin")));
        let path = target["src_path"].as_str().unwrap_or_default();
        let path = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
        let Some(source) = sources.iter().find(|source| source.path == path) else { continue };
        if is_part && !source.text.contains("#![forbid(unsafe_code)]") {
            findings.push(Finding::new(source, 1, "`#![forbid(unsafe_code)]` is missing", REASON));
        }
    }
    findings
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture::source;
    use super::*;

    /// What is found about a crate with these dependencies, each a name and a kind.
    fn found(name: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        let package = json!({
            "name": name, "license": "Apache-2.0", "manifest_path": "/r/c/Cargo.toml", "dependencies": dependencies,
            "targets": [{"kind": ["lib"], "src_path": "/r/c/src/lib.rs"}]});
        let sources = [
            source("c/Cargo.toml", "[lints]\nworkspace = true\n"),
            source("c/src/lib.rs", "#![forbid(unsafe_code)]\n"),
        ];
        let metadata = json!({"workspace_root": "/r", "packages": [package]});
        manifests(&metadata, &sources).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn arrows_point_inward() {
        assert_eq!(found("postrider-engine", &[("postrider-core", None), ("tokio", None)]), [""; 0]);
        assert_eq!(
            found("postrider-store", &[("postrider-wire", None)]),
            ["`postrider-store` depends on `postrider-wire`"]
        );
        let outward = found("postrider-core", &[("postrider-sim", Some("dev"))]);
        assert_eq!(outward, ["`postrider-core` depends on `postrider-sim`"]);
        assert_eq!(found("stray", &[]), ["the crate `stray` has no place among the arrows yet"]);
    }

    #[test]
    fn core_stands_on_pure_crates() {
        assert_eq!(found("postrider-core", &[("serde", None), ("proptest", Some("dev"))]), [""; 0]);
        assert_eq!(found("postrider-core", &[("tokio", None)]), ["core depends on `tokio`"]);
        assert_eq!(found("postrider-core", &[("rand", Some("build"))]), ["core depends on `rand`"]);
    }

    #[test]
    fn licence_lints_and_the_ban_on_unsafe_code_are_asked_for() {
        let package = json!({
            "name": "xtask", "license": null, "manifest_path": "/r/c/Cargo.toml", "dependencies": [],
            "targets": [{"kind": ["bin"], "src_path": "/r/c/src/main.rs"}]});
        let sources = [source("c/Cargo.toml", "[package]\n"), source("c/src/main.rs", "//! Does it.\n")];
        let metadata = json!({"workspace_root": "/r", "packages": [package]});
        assert_eq!(manifests(&metadata, &sources).len(), 3);
    }
}
