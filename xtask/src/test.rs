//! `cargo xtask test`: every test there is, with the peer lab beside it.
//!
//! Arguments narrow the Rust tests: `cargo xtask test -p postrider-core z04`. nextest runs them where it is installed, else `cargo test`.

use std::process::Command;
use std::time::Duration;

use crate::peers;
use crate::postgres;
use crate::process::{self, Stream};
use crate::steps::{Outcome, Steps};
use crate::tally::Tally;
use crate::workspace::{cargo, root, target};

pub fn run(args: &[String]) -> Result<(), String> {
    let mut steps = Steps::default();
    let mut tally = Tally::default();
    let mut lab = None;
    steps.step("peer lab", || {
        lab = Some(peers::install()?);
        Ok(Outcome::Done)
    });
    // Without the lab the tests that need it would fail one by one, which says less than the failed step does.
    let Some(lab) = lab else { return steps.finish() };
    let mut server = None;
    steps.step("PostgreSQL", || {
        server = Some(postgres::ready()?);
        Ok(Outcome::Done)
    });
    let Some(server) = server else { return steps.finish() };
    if args.is_empty() {
        steps.step("peers' own tests", || peer_tests(&lab, &mut tally));
    }
    if has_nextest() {
        // nextest cannot run these, and arguments meant for it need not fit them.
        if args.is_empty() {
            steps.step("documentation tests", || {
                watch(&mut rust_tests(&lab, &server, &["test", "--doc"], args), Stream::Stdout, &mut tally)
            });
        }
        steps.step("tests", || {
            let mut command = rust_tests(&lab, &server, &["nextest", "run", "--no-tests=pass", "--no-fail-fast"], args);
            watch(&mut command, Stream::Stderr, &mut tally)
        });
    } else {
        steps.step("tests", || {
            watch(&mut rust_tests(&lab, &server, &["test", "--no-fail-fast"], args), Stream::Stdout, &mut tally)
        });
    }
    if args.is_empty() {
        steps.step("Python SDK", || python_tests(&lab, &mut tally));
    }
    if tally.passed + tally.failed == 0 && !steps.has_failed() {
        steps.step("count", || Err("no test has run".to_owned()));
    }
    let result = steps.finish();
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    result
}

fn peer_tests(lab: &peers::Lab, tally: &mut Tally) -> Result<Outcome, String> {
    watch(&mut pytest(lab, "tests/peers"), Stream::Stdout, tally)
}

/// The SDK against the server as it is now, and its types.
fn python_tests(lab: &peers::Lab, tally: &mut Tally) -> Result<Outcome, String> {
    process::run(cargo().args(["build", "--locked", "--package", "postrider", "--bin", "postrider"]))?;
    let mut pytest = pytest(lab, "sdk/python/tests");
    pytest.env("POSTRIDER_BIN", target()?.join("debug/postrider"));
    watch(&mut pytest, Stream::Stdout, tally)
}

fn pytest(lab: &peers::Lab, folder: &str) -> Command {
    let mut command = Command::new(lab.python());
    command.current_dir(root()).args(["-m", "pytest", "-q", "-p", "no:cacheprovider", folder]);
    command.env("PYTHONDONTWRITEBYTECODE", "1").envs(lab.variables());
    command
}

fn rust_tests(lab: &peers::Lab, server: &postgres::Server, words: &[&str], args: &[String]) -> Command {
    let mut command = cargo();
    command.args(words).arg("--locked").envs(lab.variables()).envs(server.variables());
    if args.is_empty() {
        command.arg("--workspace");
    }
    command.args(args);
    command
}

fn watch(command: &mut Command, stream: Stream, tally: &mut Tally) -> Result<Outcome, String> {
    process::run_watching(command, stream, |line| tally.add_line(line)).map(|()| Outcome::Done)
}

fn has_nextest() -> bool {
    process::succeeds_within(cargo().args(["nextest", "--version"]), Duration::from_secs(30))
}
