//! The only front door: `cargo xtask check`, `cargo xtask test` and what belongs to them.
//!
//! Each command is a file of its own. This one only chooses; it must not know how any of them works.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "times real builds and real processes, which no simulation runs")]

mod bench;
mod check;
mod crash;
mod fuzz;
mod install;
mod peers;
mod postgres;
mod process;
mod steps;
mod tally;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  check            formatting, clippy, tidy, documentation, licences and sources of dependencies
  test [ARGS…]     every test, with the peer lab; ARGS go to `cargo test` in place of --workspace
  fuzz [TARGET…] [--seconds N]
                   every parser against what nobody thought of, 60 s each; needs a C++ compiler
  crash            kill -9 of the real binary, checked: [--rounds 200] [--seed N], or --postgres [--messages 1000000]; another seed each time
  tidy             only the rules of the house: sizes, arrows between crates, names, words
  peers            installs the peer lab and prints where it is
  bench [ARGS…]    measures the release binary: [ROW…] [--runs N] [--json FILE] [--quick] [--docs]
  soak [ARGS…]     an hour under faults, memory, files and disk watched: [--minutes 60] [--rate 1000] [--json FILE]

check, test and fuzz install what they need.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first().map(|(command, rest)| (command.as_str(), rest)) {
        Some(("check", [])) => check::run(),
        Some(("test", rest)) => test::run(rest),
        Some(("fuzz", rest)) => fuzz::run(rest),
        Some(("crash", rest)) => crash::run(rest),
        Some(("tidy", [])) => tidy::run(),
        Some(("peers", [])) => peers::run(),
        Some(("bench", rest)) => bench::run(rest),
        Some(("soak", rest)) => bench::soak(rest),
        Some(("help" | "--help" | "-h", _)) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
