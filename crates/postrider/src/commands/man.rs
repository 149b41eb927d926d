//! `man`: the manual pages, from the command line's own definition. It asks no server.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Args;
use crate::exit::{Exit, Failed};
use crate::output;

pub fn run(dir: Option<&Path>) -> Result<Exit, Failed> {
    let command = Args::command();
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| Failed::new(Exit::Failure, format!("the page cannot be written: {error}")))?;
        output::print(String::from_utf8_lossy(&page).trim_end());
        return Ok(Exit::Done);
    };
    let unwritten = |error| Failed::new(Exit::Failure, format!("{} cannot be written: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(unwritten)?;
    clap_mangen::generate_to(command, dir).map_err(unwritten)?;
    Ok(Exit::Done)
}
