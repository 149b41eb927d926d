//! The benchmark: drives the release binary over its public interface and measures the parts of the ceiling beside it, in one run.
//!
//! This file only goes through runs and rows and gathers what they show; the soak is a program of its own beside them. Everything happens
//! on the loopback interface.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "measures real processes in real time, which no simulation runs")]

mod args;
mod bench;
mod failure;
mod figure;
mod full_load;
mod gather;
mod lane;
mod load;
mod messages;
mod million;
mod parts;
mod peer;
mod postgres;
mod process;
mod progress;
mod receiver;
mod report;
mod rows;
mod server;
mod soak;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use args::Args;
use bench::Bench;
use failure::Failure;
use gather::Gathered;
use report::{Report, document, table};
use rows::Row;

fn main() -> ExitCode {
    let is_soak = std::env::args().nth(1).is_some_and(|word| word == soak::WORD);
    let done = if is_soak { soak::run(&soak::Args::parse_from(std::env::args().skip(1))) } else { run(&Args::parse()) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nerror: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let report = match &args.from {
        Some(file) => serde_json::from_str(&std::fs::read_to_string(file)?)
            .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?,
        None => measure(args)?,
    };
    println!("{}", table(&report));
    if args.from.is_none() {
        let file = args.json.clone().unwrap_or(beside("bench.json")?);
        let json = serde_json::to_string_pretty(&report).map_err(|error| Failure::new(error.to_string()))?;
        std::fs::write(&file, json + "\n")?;
        println!("written to {}", file.display());
    }
    if let Some(file) = &args.docs {
        std::fs::write(file, document(&report))?;
        println!("written to {}", file.display());
    }
    Ok(())
}

fn measure(args: &Args) -> Result<Report, Failure> {
    let binary = args.binary.clone().map_or_else(|| beside("postrider"), Ok)?;
    let scratch = beside("bench-data")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut bench = Bench::new(args.quick, binary, scratch).await?;
        let mut gathered = Gathered::default();
        unless_stopped(all(args, &mut bench, &mut gathered)).await?;
        Ok(gathered.report(args.quick, bench.cores))
    })
}

async fn all(args: &Args, bench: &mut Bench, gathered: &mut Gathered) -> Result<(), Failure> {
    let rows: Vec<Row> = match (&args.rows[..], args.parts) {
        (_, true) => Vec::new(),
        ([], false) => Row::ALL.to_vec(),
        (named, false) => Row::ALL.into_iter().filter(|row| named.contains(row)).collect(),
    };
    for run in 0..args.runs {
        // Parts and rows of one run stand close together, so that both see the same machine.
        bench.parts = None;
        if args.parts {
            bench.parts().await?;
        }
        for row in &rows {
            if run > 0 && row.is_run_once() {
                continue;
            }
            // One row that fails leaves the others their figures.
            let measured = row.measure(bench).await;
            bench.progress.done(&gathered.add(*row, measured));
        }
        if let Some(parts) = bench.parts {
            gathered.add_parts(parts);
        }
    }
    Ok(())
}

/// Runs `work` unless a signal comes first; dropping what is under way kills the server.
async fn unless_stopped<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Err(Failure::new("interrupted")),
        _ = terminated.recv() => Err(Failure::new("terminated")),
        done = work => done,
    }
}

/// A file in the folder of this program.
fn beside(name: &str) -> Result<PathBuf, Failure> {
    Ok(std::env::current_exe()?.with_file_name(name))
}
