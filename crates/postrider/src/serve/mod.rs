//! `serve`: the store, the engine and the API in one process, brought up in order and put down without losing a decision.
//!
//! It must not know how any of them works.

pub mod config;
pub mod data_dir;
mod logs;
mod outside;
mod secrets_key;
pub mod server_file;
mod service;
mod services;
pub mod settings;
mod signals;
pub mod store;
mod transformer;
pub mod worker;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::Wait;
use postrider_core::log;
use postrider_engine::{Clock, Dice, Engine, EngineOptions, Keyring, SystemClock, SystemDice, Vault};
use postrider_store::Store;
use postrider_web::{AdminKey, ApiOptions, AppState, BindError, Entrance, KeyError, Server, ServerLimits};
use postrider_wire::{Egress, HttpOptions, Senders};

use crate::args::ServeArgs;
use crate::demo::Demo;
use crate::exit::{Exit, Failed};
use crate::output;
use config::Config;
use data_dir::DataDir;
use server_file::ServerFile;
use services::Services;
use settings::Settings;
use signals::Signals;
use store::Opened;

/// Runs until a signal says stop.
pub async fn run(data: &Path, args: ServeArgs) -> Result<Exit, Failed> {
    let mut settings = Settings::from_env(args.demo)?;
    settings.engine.hosts_services = args.services.is_some();
    let flood = logs::begin(&settings.log, settings.log_format)?;
    tokio::spawn(flood.clone().tell());
    // Before anything is opened: a bad file leaves nothing behind.
    let named = args.config.as_deref().filter(|file| !file.is_empty());
    let config = named.map(|file| Config::read(Path::new(file))).transpose()?;
    let mut signals = Signals::listen()?;
    let data = if args.demo { DataDir::temporary()? } else { DataDir::at(data)? };
    // The port first: a server that nobody can reach must not deliver, and one that opens a large store says so to those who ask.
    let front = Front::open(args.listen, settings.stop).await?;
    let opened = store::open(args.store.as_deref(), &data).await?;
    if args.resume {
        resume(&*opened.store).await?;
    }
    let running = Running::start(opened, &data, front, &settings, config.as_ref()).await?;
    let demo = if args.demo {
        Some(Demo::start(&running.address, running.demo_key.as_deref(), &running.first).await?)
    } else {
        None
    };
    let services = args
        .services
        .as_deref()
        .map(|folder| Services::start(folder, &args.services_alias, &running.address, &running.engine));
    let services = services.transpose()?;
    service::ready(&running.address);
    let exit = running.until_stopped(&mut signals, settings.stop).await;
    if let Some(services) = services {
        services.stop().await;
    }
    drop(demo);
    flood.tell_once();
    Ok(exit)
}

/// D08: whoever starts so says that no other server works on the original.
async fn resume(store: &dyn Store) -> Result<(), Failed> {
    let resumed = postrider_engine::resume_held(store, &*SystemClock::shared(), &*SystemDice::shared()).await?;
    tracing::info!(event = log::STORE_RESUMED, resumed, "queues that a restore had paused go on");
    Ok(())
}

/// Listens, and answers that the server is starting.
struct Front {
    clock: Arc<dyn Clock>,
    address: String,
    entrance: Entrance,
    served: tokio::task::JoinHandle<()>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Front {
    async fn open(listen: SocketAddr, stop_within: Wait) -> Result<Front, Failed> {
        let clock = SystemClock::shared();
        let server = Server::bind(listen, ServerLimits::default()).await?;
        let address = format!("http://{}", server.address());
        let entrance = Entrance::closed(clock.now());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served =
            tokio::spawn(server.serve(entrance.clone(), async { drop(stopped.await) }, part_of(stop_within, 15)));
        Ok(Front { clock, address, entrance, served, stop })
    }
}

/// A server that delivers and answers.
struct Running {
    address: String,
    /// The key in the clear, where this process knows it.
    demo_key: Option<String>,
    /// Where the first owner is made, or without need for one, where people log in.
    first: String,
    store: Arc<dyn Store>,
    engine: Engine,
    served: tokio::task::JoinHandle<()>,
    stop: tokio::sync::oneshot::Sender<()>,
    file: ServerFile,
}

impl Running {
    async fn start(
        opened: Opened,
        data: &DataDir,
        front: Front,
        settings: &Settings,
        config: Option<&Config>,
    ) -> Result<Running, Failed> {
        let Front { clock, address, entrance, served, stop } = front;
        let store = Arc::clone(&opened.store);
        let dice = SystemDice::shared();
        let mut keyring = settings.secrets_key.keyring(data)?;
        if let Some(config) = config {
            let vault = Vault::new(keyring, Arc::clone(&dice));
            config.apply(&*store, &*clock, &*dice, &vault).await?;
            keyring = vault.keyring();
        }
        let made = admin_key(&*store, settings.admin_key.as_deref(), &*dice).await?;
        let admin = AdminKey::load(&*store).await?;
        let engine = engine(&opened, Arc::clone(&clock), dice, keyring, settings).await?;
        let api = ApiOptions { masked_headers: settings.masked_headers.clone(), ..ApiOptions::default() };
        let first = first_link(&engine).await?;
        let state = AppState::new(engine.clone(), Arc::clone(&clock), api);
        entrance.open(postrider_web::site(state, admin, clock));
        let file = ServerFile::write(data.path(), &address)?;
        if let (Some(key), false) = (&made, data.is_temporary()) {
            output::print(&format!("admin key, shown this once: {key}"));
        }
        let link = first.as_ref().map(|token| format!("{address}/ui/first?token={}", token.expose()));
        if let (Some(link), false) = (&link, data.is_temporary()) {
            output::print(&format!(
                "nobody has a user yet: make yourself the owner at {link} (it works once, for a day)"
            ));
        }
        let first = link.unwrap_or_else(|| format!("{address}/ui"));
        output::print(&format!("listening on {address}"));
        tracing::info!(event = log::SERVER_LISTENING, address, "the server listens");
        let demo_key = data.is_temporary().then(|| made.or(settings.admin_key.clone())).flatten();
        Ok(Running { address, demo_key, first, store, engine, served, stop, file })
    }

    /// Waits for the first signal, then stops within the bound; a second signal ends it at once.
    async fn until_stopped(self, signals: &mut Signals, within: Wait) -> Exit {
        tokio::select! {
            biased;
            () = signals.next() => {}
            () = service::watch(self.engine.clone()) => {}
        }
        service::stopping(within.as_duration());
        tracing::info!(event = log::SERVER_STOPPING, "stopping; a second signal stops at once");
        tokio::select! {
            biased;
            () = signals.next() => {
                output::remark("stopped at once; what was under way is sent again at the next start");
                Exit::Failure
            }
            stopped = tokio::time::timeout(within.as_duration(), self.stop(within)) => {
                if stopped.is_err() {
                    tracing::warn!(event = log::STOP_CUT_OFF, "the stop is cut off at its bound; nothing that was stored is lost");
                }
                Exit::Done
            }
        }
    }

    /// While attempts end, the API still answers: health says that it stops, and what is new is refused with 503, so that nobody meets a closed
    /// port before they could know.
    async fn stop(self, within: Wait) {
        self.engine.stop(Wait::from(part_of(within, 60))).await;
        // A server that has ended already needs no telling.
        let _ = self.stop.send(());
        if let Err(error) = self.served.await {
            tracing::error!(event = log::HTTP_ENDED, %error, "the API ended with an error");
        }
        close(&*self.store, within).await;
        drop(self.file);
        tracing::info!(event = log::SERVER_STOPPED, "stopped");
    }
}

/// So many hundredths of a stop's bound: 60 for attempts under way, 15 for the answers to their callers, 15 for closing the store.
fn part_of(bound: Wait, hundredths: u64) -> Duration {
    Duration::from_millis(bound.as_millis() * hundredths / 100)
}

async fn close(store: &dyn Store, within: Wait) {
    match tokio::time::timeout(part_of(within, 15), store.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(event = log::STORE_CLOSE_FAILED, %error, "the store did not close cleanly; it recovers at the next start")
        }
        Err(_) => tracing::warn!(
            event = log::STORE_CLOSE_FAILED,
            "the store did not close in time; it recovers at the next start"
        ),
    }
}

/// Where there is no user yet: the token of the link by which the first owner is made.
async fn first_link(engine: &Engine) -> Result<Option<postrider_core::Secret>, Failed> {
    engine.first_link().await.map_err(|error| Failed::new(Exit::StoreUnavailable, error.to_string()))
}

/// Starts delivering what is in the store.
async fn engine(
    opened: &Opened,
    clock: Arc<dyn Clock>,
    dice: Arc<dyn Dice>,
    keyring: Keyring,
    settings: &Settings,
) -> Result<Engine, Failed> {
    let egress = Arc::new(Egress::new(&settings.opened));
    let options = EngineOptions {
        keyring,
        mailer: settings.outside.mailer(&egress)?,
        spans: settings.outside.spans(&egress)?,
        transform: transformer::of_this_binary(settings.transform),
        listens: true,
        other_workers: opened.is_shared,
        // An embedded store proves by its lock that the former owner is dead (D05).
        claim_timeout: if opened.is_shared { settings.engine.claim_timeout } else { Wait::ZERO },
        ..settings.engine.clone()
    };
    let sender = Arc::new(Senders::new(HttpOptions::default(), egress));
    Engine::start(Arc::clone(&opened.store), sender, clock, dice, options)
        .await
        .map_err(|error| Failed::new(Exit::StoreUnavailable, error.to_string()))
}

async fn admin_key(store: &dyn Store, given: Option<&str>, dice: &dyn Dice) -> Result<Option<String>, Failed> {
    Ok(postrider_web::ensure_admin_key(store, given, dice).await?)
}

impl From<KeyError> for Failed {
    fn from(error: KeyError) -> Self {
        let exit = match error {
            KeyError::Unusable => Exit::Refused,
            KeyError::Missing | KeyError::Unreadable | KeyError::Store(_) => Exit::StoreUnavailable,
        };
        Failed::new(exit, error.to_string())
    }
}

impl From<postrider_core::SettingError> for Failed {
    fn from(error: postrider_core::SettingError) -> Self {
        Failed::new(Exit::Refused, error.to_string())
    }
}

impl From<BindError> for Failed {
    fn from(error: BindError) -> Self {
        Failed::new(Exit::Failure, error.to_string())
    }
}
