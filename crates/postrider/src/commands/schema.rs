//! `schema`: what a configuration file may hold, for editors and for people. It asks no server.

use postrider_config::SECTIONS;

use crate::args::SchemaArgs;
use crate::exit::{Exit, Failed};
use crate::output;

pub fn run(args: SchemaArgs) -> Result<Exit, Failed> {
    if args.markdown {
        // It ends with its own line.
        output::print(postrider_config::reference(SECTIONS).trim_end());
    } else {
        output::print_json(&postrider_config::schema(SECTIONS));
    }
    Ok(Exit::Done)
}
