//! Logs on standard error: our own lines only, each with its event, filtered by `POSTRIDER_LOG`, as text or as JSON.
//!
//! Lines of other crates never come through: they have no name in our catalogue, and at `trace` some show what they send. A line that
//! repeats faster than it can be read is counted instead (`log_lines_max`). It must not know what the lines are about.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider_core::log;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::exit::{Exit, Failed};

/// Lines of one place in the code within a window, at most; `debug` and `trace` are not bounded.
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);
/// All our crates' names begin so.
const OURS: &str = "postrider";

/// `POSTRIDER_LOG_FORMAT`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// `filter` is a level or a list such as `info,postrider_engine=debug`. What is counted is logged for as long as the result lives.
pub fn begin(filter: &str, format: LogFormat) -> Result<Flood, Failed> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        let allowed = "error, warn, info, debug, trace, or a list such as info,postrider_engine=debug";
        Failed::new(Exit::Refused, format!("`POSTRIDER_LOG` is `{filter}`: {error}; allowed is {allowed}"))
    })?;
    let flood = Flood::default();
    let coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(coloured).boxed(),
        LogFormat::Json => lines.with_ansi(false).json().flatten_event(true).with_current_span(false).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(flood.clone())).with(filter).init();
    std::panic::set_hook(Box::new(|panic| {
        // What it says may quote anything, so only where it was is told.
        let at = panic.location().map(ToString::to_string);
        tracing::error!(event = log::PANICKED, at, "something panicked");
    }));
    Ok(flood)
}

/// Counts what one place logs, and lets no more than a few lines through in a window. Clones share it.
#[derive(Clone, Default)]
pub struct Flood(Arc<Mutex<BTreeMap<PlaceInCode, Count>>>);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PlaceInCode(&'static str, u32);

#[derive(Default)]
struct Count {
    lines: u32,
    event: String,
}

impl Flood {
    /// Ends a window every ten seconds, and says what was left out in it. Never returns.
    pub async fn tell(self) {
        loop {
            tokio::time::sleep(WINDOW).await;
            self.tell_once();
        }
    }

    pub fn tell_once(&self) {
        let window = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for count in window.into_values().filter(|count| count.lines > LINES_MAX) {
            let (of, lines) = (count.event, count.lines - LINES_MAX);
            tracing::warn!(event = log::LOG_SUPPRESSED, of, lines, "lines were left out");
        }
    }

    fn lets_through(&self, event: &Event<'_>) -> bool {
        let place = event.metadata();
        if *place.level() > Level::INFO {
            return true;
        }
        let key = PlaceInCode(place.file().unwrap_or_default(), place.line().unwrap_or_default());
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key).or_default();
        count.lines = count.lines.saturating_add(1);
        if count.event.is_empty() {
            event.record(&mut Name(&mut count.event));
        }
        count.lines <= LINES_MAX
    }
}

impl<S: Subscriber> Filter<S> for Flood {
    fn enabled(&self, place: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        place.target().starts_with(OURS)
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.lets_through(event)
    }
}

/// Reads the field `event`.
struct Name<'a>(&'a mut String);

impl Visit for Name<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.0.push_str(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
