//! The `postrider` program: reads the command line, runs one command, ends with its exit code.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod demo;
mod exit;
mod output;
mod serve;

use clap::Parser;

/// A fifth of the server's CPU at full load went into the system's allocator; this one takes less of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Clap itself ends with 2 on a wrong command line, and with 0 after --help.
    let args = args::Args::parse();
    let is_server = matches!(args.command, args::Command::Serve(_));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("the threads to run on cannot be started: {error}"));
            return exit::Exit::Failure.into();
        }
    };
    let ended = runtime.block_on(commands::run(args));
    // A task that is still busy must not keep the program from ending.
    runtime.shutdown_background();
    match ended {
        // An export to a full disk is no export; a server's output is only words about it.
        Ok(exit::Exit::Done) if output::is_cut_short() && !is_server => exit::Exit::Failure.into(),
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.show();
            failure.exit.into()
        }
    }
}
