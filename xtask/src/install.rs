//! Installs what the commands need and the machine lacks, with the machine's own package tools.
//!
//! It must not know what the things are for.

use std::process::Command;
use std::time::Duration;

use crate::{process, workspace};

/// Pinned, so that two machines judge by the same rules. Built once for each machine, into cargo's own folder.
const CARGO_DENY_VERSION: &str = "0.20.2";
const CARGO_FUZZ_VERSION: &str = "0.13.2";

/// Debian packages, unless `present` says that they are not needed. An error says what to install by hand.
pub fn debian(packages: &[&str], present: impl Fn() -> bool) -> Result<(), String> {
    if present() {
        return Ok(());
    }
    let by_hand = format!("please install {} by hand", packages.join(" "));
    if process::find("apt-get").is_none() {
        return Err(format!("there is no apt-get here; {by_hand}"));
    }
    let install = || apt(&["install", "--yes", "--no-install-recommends"], packages);
    // A fresh machine has no package lists yet, an old one stale ones: refresh them only when needed.
    if install().is_err() {
        apt(&["update"], &[]).and_then(|()| install()).map_err(|error| format!("{error}; {by_hand}"))?;
    }
    if present() { Ok(()) } else { Err(format!("still missing after the installation; {by_hand}")) }
}

fn apt(words: &[&str], packages: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet").args(words).args(packages);
    process::run(&mut command)
}

pub fn chromium() -> Result<(), String> {
    debian(&["chromium"], || process::find("chromium").is_some())
}

pub fn java() -> Result<(), String> {
    // Looking for the file is not enough: some systems ship a stub that only says what to install.
    debian(&["openjdk-17-jre-headless"], || {
        process::succeeds_within(Command::new("java").arg("-version"), Duration::from_secs(30))
    })
}

pub fn python() -> Result<(), String> {
    // Debian ships Python without what `python3 -m venv` needs.
    debian(&["python3", "python3-venv"], || {
        let mut probe = Command::new("python3");
        process::succeeds_within(probe.args(["-c", "import ensurepip, venv"]), Duration::from_secs(30))
    })
}

pub fn npm() -> Result<(), String> {
    debian(&["npm"], || process::find("npm").is_some())
}

/// cargo-deny: any version that is there will do, otherwise the pinned one is built (about two minutes on two cores).
pub fn cargo_deny() -> Result<(), String> {
    cargo_tool("deny", CARGO_DENY_VERSION)
}

/// cargo-fuzz, and the C++ compiler that libFuzzer is built with.
pub fn cargo_fuzz() -> Result<(), String> {
    debian(&["g++"], || process::find("c++").is_some())?;
    cargo_tool("fuzz", CARGO_FUZZ_VERSION)
}

fn cargo_tool(verb: &str, version: &str) -> Result<(), String> {
    let present = || process::succeeds_within(workspace::cargo().args([verb, "--version"]), Duration::from_secs(30));
    if present() {
        return Ok(());
    }
    let name = format!("cargo-{verb}");
    eprintln!("    {name} is not installed; building it once, for this machine");
    let mut install = workspace::cargo();
    install.args(["install", "--locked", "--quiet", &name, "--version", version]);
    // The debug profile is ample for a tool that reads manifests, and builds in a fraction of the time.
    install.arg("--debug");
    process::run(&mut install)?;
    if present() { Ok(()) } else { Err(format!("{name} is installed but does not run")) }
}
