//! Logs on standard error, filtered by `POSTRIDER_LOG`. Bodies, keys and headers are never handed to them.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::exit::{Exit, Failed};

/// `filter` is a level or a list such as `info,postrider_engine=debug`.
pub fn begin(filter: &str) -> Result<(), Failed> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        let allowed = "error, warn, info, debug, trace, or a list such as info,postrider_engine=debug";
        Failed::new(Exit::Refused, format!("`POSTRIDER_LOG` is `{filter}`: {error}; allowed is {allowed}"))
    })?;
    let coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(coloured).init();
    Ok(())
}
