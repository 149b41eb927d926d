//! `completions`: what a shell completes, from the command line's own definition. It asks no server.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Args;
use crate::exit::Exit;
use crate::output;

pub fn run(shell: Shell) -> Exit {
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "postrider", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end());
    Exit::Done
}
