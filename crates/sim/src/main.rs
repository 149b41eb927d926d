//! `cargo run --release -p postrider-sim -- --seeds 1000`: runs seeds and prints how to replay one that fails.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use postrider_sim::{Plan, StoreKind, run_seed};

struct Options {
    first: u64,
    seeds: u64,
    store: StoreKind,
    trace: bool,
    /// Goes on after a failure.
    all: bool,
}

fn main() -> ExitCode {
    let options = match read_options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}");
            eprintln!(
                "usage: postrider-sim [--seeds N] [--first N] [--seed N] [--store memory|sqlite|postgres] [--trace] [--all]"
            );
            return ExitCode::from(2);
        }
    };
    let (mut receipts, mut failed) = (0, 0_u64);
    for seed in options.first..options.first + options.seeds {
        match run_one(seed, &options) {
            Some(received) => receipts += received,
            None if options.all => failed += 1,
            None => return ExitCode::FAILURE,
        }
        let done = seed - options.first + 1;
        if done.is_multiple_of(100) {
            println!("{done} of {} seeds, {receipts} requests received", options.seeds);
        }
    }
    if failed > 0 {
        println!("{failed} of {} seeds failed", options.seeds);
        return ExitCode::FAILURE;
    }
    println!("{} seeds, {receipts} requests received, no violation", options.seeds);
    ExitCode::SUCCESS
}

/// How many requests were received; `None`: it failed, and how to replay it is printed.
fn run_one(seed: u64, options: &Options) -> Option<usize> {
    let plan = Plan::of_seed(seed, options.store);
    if options.trace {
        println!("{plan:#?}");
    }
    let store = name(options.store);
    let report = match run_seed(&plan) {
        Ok(report) => report,
        Err(error) => {
            println!("seed {seed} could not run: {error}");
            return None;
        }
    };
    if options.trace {
        report.log.iter().for_each(|line| println!("{line}"));
    }
    if report.violations.is_empty() {
        return Some(report.receipts);
    }
    report.violations.iter().for_each(|violation| println!("{violation}"));
    println!("seed {seed} failed; replay it with: cargo run -p postrider-sim -- --seed {seed} --store {store} --trace");
    None
}

fn name(store: StoreKind) -> &'static str {
    match store {
        StoreKind::Memory => "memory",
        StoreKind::Sqlite => "sqlite",
        StoreKind::Postgres => "postgres",
    }
}

fn read_options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { first: 0, seeds: 1000, store: StoreKind::Memory, trace: false, all: false };
    while let Some(word) = words.next() {
        let mut number = |word: &str| -> Result<u64, String> {
            let value = words.next().ok_or(format!("{word} needs a number"))?;
            value.parse().map_err(|_| format!("{word} is `{value}`: allowed is a whole number"))
        };
        match word.as_str() {
            "--seeds" => options.seeds = number("--seeds")?,
            "--first" => options.first = number("--first")?,
            "--seed" => {
                options.first = number("--seed")?;
                options.seeds = 1;
            }
            "--all" => options.all = true,
            "--trace" => options.trace = true,
            "--store" => match words.next().as_deref() {
                Some("memory") => options.store = StoreKind::Memory,
                Some("sqlite") => options.store = StoreKind::Sqlite,
                Some("postgres") => options.store = StoreKind::Postgres,
                other => {
                    let given = other.unwrap_or("");
                    return Err(format!("--store is `{given}`: allowed are memory, sqlite and postgres"));
                }
            },
            other => return Err(format!("`{other}` is not an option")),
        }
    }
    Ok(options)
}
