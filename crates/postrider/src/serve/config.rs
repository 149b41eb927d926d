//! `serve --config FILE`: a file applied before anything is delivered. A bad one refuses the start and changes nothing.
//!
//! It must not know what a file means.

use std::path::Path;

use postrider::FieldProblem;
use postrider_config::{Action, File, Refused, SECTIONS, State};
use postrider_core::log;
use postrider_engine::{Clock, Dice, Vault};
use postrider_store::{Store, StoreError};

use crate::exit::{Exit, Failed};

/// The file as it was read, with its name.
pub struct Config {
    name: String,
    file: File<'static>,
}

impl Config {
    /// Reads the file and checks all that can be checked without the store. `Env.NAME` is this process's environment.
    pub fn read(path: &Path) -> Result<Config, Failed> {
        let name = path.display().to_string();
        let text = std::fs::read(path)
            .map_err(|error| Failed::new(Exit::Failure, format!("{name} cannot be read: {error}")))?;
        let text =
            String::from_utf8(text).map_err(|_| Failed::new(Exit::Refused, format!("{name} is no text in UTF-8")))?;
        let file = postrider_config::read(&text, SECTIONS, &|name| std::env::var(name).ok());
        file.check().map_err(|refused| failed(&name, &refused))?;
        Ok(Config { name, file })
    }

    /// Makes it true, all of it or nothing.
    pub async fn apply(
        &self,
        store: &dyn Store,
        clock: &dyn Clock,
        dice: &dyn Dice,
        vault: &Vault,
    ) -> Result<(), Failed> {
        let unavailable = |error: StoreError| Failed::new(Exit::StoreUnavailable, error.to_string());
        postrider_engine::ensure_first_project(store, clock, dice).await.map_err(unavailable)?;
        let definitions = store.all_security().await.map_err(unavailable)?;
        let sources = store.all_sources().await.map_err(unavailable)?;
        let secrets = postrider_engine::opened_secrets(vault, &definitions, &sources);
        let push = store.all_push_subscriptions().await.map_err(unavailable)?;
        let mut state = State::load(store, definitions, push, sources).await.map_err(unavailable)?;
        state.know_secrets(secrets);
        let bits = || dice.bits();
        let plan = postrider_config::plan(&self.file, state, postrider_config::DEFAULT_PROJECT, clock.now(), &bits)
            .map_err(|refused| failed(&self.name, &refused))?;
        for warning in &plan.warnings {
            tracing::warn!(event = log::CONFIG_WARNING, "{}", warning.line(&self.name));
        }
        let (created, changed) = (plan.count(Action::Created), plan.count(Action::Changed));
        if !plan.changes.is_empty() {
            postrider_engine::configure_store(store, clock, dice, vault, plan.changes, &plan.secrets)
                .await
                .map_err(|refusal| Failed::new(Exit::StoreUnavailable, refusal.to_string()))?;
        }
        tracing::info!(
            event = log::CONFIG_APPLIED,
            file = self.name,
            created,
            changed,
            "the configuration file was applied"
        );
        Ok(())
    }
}

/// The same lines as `import` shows.
fn failed(name: &str, refused: &Refused) -> Failed {
    let fields = refused.0.iter().map(|finding| {
        let path = if finding.path.is_empty() { String::new() } else { format!(": {}", finding.path) };
        FieldProblem {
            field: format!("{name}:{}:{}{path}", finding.place.line, finding.place.column),
            message: finding.message.clone(),
            allowed: finding.allowed.clone(),
            ..FieldProblem::default()
        }
    });
    Failed { fields: fields.collect(), ..Failed::new(Exit::Refused, refused.to_string()) }
}
