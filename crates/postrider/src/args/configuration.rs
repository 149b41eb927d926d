//! `import`, `export` and `schema`.

use std::path::PathBuf;

use super::BodyArg;

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// A YAML file; `-` reads standard input
    #[arg(value_name = "FILE|-")]
    pub file: BodyArg,

    /// Show the difference and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Apply without asking
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Where to write to; else standard output
    pub file: Option<PathBuf>,

    /// All projects instead of the one that --project names
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// The reference of all sections and keys as Markdown instead
    #[arg(long)]
    pub markdown: bool,
}
