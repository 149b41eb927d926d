//! `cargo xtask bench` and `cargo xtask soak`: build the release binary and the benchmark, and run the one with the other.
//!
//! It must not know the rows; arguments go to the benchmark as they are.

use std::process::Command;

use crate::process;
use crate::workspace::{cargo, root, target};

pub fn run(args: &[String]) -> Result<(), String> {
    with(&[], args)
}

/// The long run under faults is a part of the same program.
pub fn soak(args: &[String]) -> Result<(), String> {
    with(&["soak"], args)
}

fn with(first: &[&str], args: &[String]) -> Result<(), String> {
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "--quiet", "-p", "postrider", "-p", "postrider-bench"]);
    process::run(&mut build)?;
    let bench = target()?.join("release/postrider-bench");
    process::run(Command::new(bench).current_dir(root()).args(first).args(args))
}
