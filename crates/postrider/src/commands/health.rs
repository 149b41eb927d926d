//! `health`: whether the server takes requests, for containers and scripts. It needs no key.

use crate::args::GlobalArgs;
use crate::exit::{Exit, Failed};
use crate::output;

use super::reach;

pub async fn run(global: &GlobalArgs) -> Result<Exit, Failed> {
    let client = reach::client_without_key(global)?;
    client.is_ready().await?;
    output::print("ready");
    Ok(Exit::Done)
}
