//! `cargo xtask check`: everything that can be wrong without running a test.

use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::steps::{Outcome, Steps};
use crate::workspace::cargo;
use crate::{install, tidy};

const ADVISORIES_LIMIT: Duration = Duration::from_secs(60);

pub fn run() -> Result<(), String> {
    let mut steps = Steps::default();
    steps.step("formatting", || done(cargo().args(["fmt", "--all", "--check"])));
    steps.step("formatting of fuzz targets", || {
        done(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check", "--package", "postrider-fuzz"]))
    });
    steps.step("tidy", || tidy::run().map(|()| Outcome::Done));
    steps.step("clippy", || {
        let mut clippy = cargo();
        clippy.args(["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--"]);
        // The budget of a function; its number stands in clippy.toml.
        done(clippy.args(["-D", "warnings", "-D", "clippy::too_many_lines"]))
    });
    steps.step("documentation", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"]);
        done(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.step("dependencies", || {
        install::cargo_deny()?;
        done(deny().args(["check", "--hide-inclusion-graph", "licenses", "bans", "sources"]))
    });
    steps.step("advisories", advisories);
    steps.finish()
}

/// Known vulnerabilities of dependencies. The list lives on another server: without it this step is skipped, aloud.
fn advisories() -> Result<Outcome, String> {
    install::cargo_deny()?;
    if !process::succeeds_within(deny().args(["fetch", "db"]), ADVISORIES_LIMIT) {
        return Ok(Outcome::Skipped("the advisory database cannot be fetched from here".to_owned()));
    }
    done(deny().args(["check", "--disable-fetch", "advisories"]))
}

fn deny() -> Command {
    let mut command = cargo();
    command.args(["deny", "--all-features", "--workspace"]);
    command
}

fn done(command: &mut Command) -> Result<Outcome, String> {
    process::run(command).map(|()| Outcome::Done)
}
