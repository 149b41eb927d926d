//! `worker`: delivers what waits in a store that several processes share, and answers nobody.
//!
//! It must not know how anything is delivered.

use std::path::Path;

use postrider_core::Wait;
use postrider_core::log;
use postrider_engine::{SystemClock, SystemDice};

use super::data_dir::DataDir;
use super::settings::Settings;
use super::signals::Signals;
use super::{close, engine, logs, part_of, store};
use crate::args::WorkerArgs;
use crate::exit::{Exit, Failed};
use crate::output;

/// Runs until a signal says stop; a second one ends it at once.
pub async fn run(data: &Path, args: WorkerArgs) -> Result<Exit, Failed> {
    let settings = Settings::from_env(false)?;
    let flood = logs::begin(&settings.log, settings.log_format)?;
    tokio::spawn(flood.clone().tell());
    let mut signals = Signals::listen()?;
    let data = DataDir::at(data)?;
    let opened = store::open(Some(&args.store), &data).await?;
    if !opened.is_shared {
        let message = "a worker needs a store that several processes share: --store postgres://USER@HOST/DATABASE";
        return Err(Failed::new(Exit::Refused, message));
    }
    let keyring = settings.secrets_key.keyring(&data)?;
    let (clock, dice) = (SystemClock::shared(), SystemDice::shared());
    let engine = engine(&opened, clock, dice, keyring, &settings).await?;
    output::print("delivering");
    tracing::info!(event = log::SERVER_LISTENING, "the worker delivers");
    signals.next().await;
    tracing::info!(event = log::SERVER_STOPPING, "stopping; a second signal stops at once");
    let within = settings.stop;
    let stopped = async {
        engine.stop(Wait::from(part_of(within, 60))).await;
        close(&*opened.store, within).await;
    };
    let exit = tokio::select! {
        biased;
        () = signals.next() => {
            output::remark("stopped at once; what was under way is sent again by another worker");
            Exit::Failure
        }
        () = stopped => Exit::Done,
    };
    flood.tell_once();
    Ok(exit)
}
