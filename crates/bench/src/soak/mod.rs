//! The soak: an hour at a fixed rate with remotes that fail, looked at from outside every ten seconds, and judged at the end.
//!
//! This file goes through the run. Connections, remotes, publishing, sampling and judging are in files of their own.

mod ends;
mod outages;
mod plan;
mod publisher;
mod remote;
mod sample;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use postrider_core::Wait;
use serde::Serialize;

use crate::failure::Failure;
use crate::lane::Lane;
use crate::process::{self, Machine};
use crate::progress::Progress;
use crate::receiver::Book;
use crate::server::{Server, data_directory, of, uri};
use crate::{beside, unless_stopped};
use ends::{Account, Ends, accounts};
use outages::Outages;
use plan::{Plan, RATE_MAX, connections, hand};
use publisher::{Route, Sent, publish};
use remote::{Manner, Remote};
use sample::{Sample, mib};
use verdict::{Check, Run, checks};

/// The first argument that chooses the soak.
pub const WORD: &str = "soak";

const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// The log is read for what was given up once in so many samples, well within the shortest retention.
const LOOK_EVERY_SAMPLES: usize = 3;
/// For the queues to come to rest after the last message.
const REST_AT_MOST: Duration = Duration::from_secs(180);
/// A database that large fills somebody's disk.
const DATABASE_MIB_MAX: f64 = 8192.0;

/// Drives the release binary for long at a fixed rate while its remotes fail, and checks that nothing grows or is lost.
#[derive(Debug, Parser, Serialize)]
#[command(name = "cargo xtask soak", version, max_term_width = 120)]
pub struct Args {
    /// How long messages are published
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,

    /// Messages a second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(20..=RATE_MAX))]
    rate: u64,

    /// Where samples and verdict go as JSON, written anew at each sample; else beside the build
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// The server to drive; else the one built beside this program
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

impl Args {
    fn messages(&self) -> u64 {
        self.minutes * 60 * self.rate
    }

    /// 5 minutes, or less in a short run, and no less than the server takes.
    fn retention_s(&self) -> u64 {
        (self.minutes * 10).clamp(60, 300)
    }
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    machine: Machine,
    minutes: u64,
    rate: u64,
    retention_s: u64,
    outage_every_s: u64,
    outage_s: u64,
    /// False until the last check.
    is_complete: bool,
    passed: bool,
    checks: Vec<Check>,
    accounts: Vec<Account>,
    /// How long the queues needed to come to rest after the last message.
    rest_s: Option<f64>,
    stop_s: Option<f64>,
    /// Under load.
    samples: Vec<Sample>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let file = args.json.clone().map_or_else(|| beside("soak.json"), Ok)?;
    let report = runtime.block_on(unless_stopped(soak(args, &file)))?;
    for account in &report.accounts {
        println!(
            "{}: {} accepted, {} taken, {} given up, {} waiting, {} dead, {} lost",
            account.connection,
            account.accepted,
            account.taken,
            account.given_up,
            account.waiting,
            account.dead,
            account.lost
        );
    }
    for check in &report.checks {
        println!("{}", check.line());
    }
    println!("written to {}", file.display());
    if report.passed {
        return Ok(());
    }
    let failed = report.checks.iter().filter(|check| !check.passed).count();
    Err(Failure::new(format!("{failed} of {} checks failed", report.checks.len())))
}

/// Everything that runs. Dropping it kills the server and removes its data.
struct Soak<'a> {
    args: &'a Args,
    file: &'a PathBuf,
    plans: Vec<Plan>,
    route: Arc<Route>,
    sent: Arc<Sent>,
    book: Arc<Book>,
    server: Server,
    data: tempfile::TempDir,
    outages: Outages,
    ends: Ends,
    progress: Progress,
    report: Report,
    /// Kept until the end: refused and hung connections are theirs.
    _remotes: Vec<Arc<Remote>>,
}

async fn soak(args: &Args, file: &PathBuf) -> Result<Report, Failure> {
    process::raise_open_files();
    let generator = Lane::start("load generator")?;
    let mut soak = Soak::prepare(args, file).await?;
    soak.load(&generator).await?;
    let came_to_rest = soak.rest().await?;
    soak.judge(came_to_rest).await
}

impl<'a> Soak<'a> {
    async fn prepare(args: &'a Args, file: &'a PathBuf) -> Result<Soak<'a>, Failure> {
        let messages = usize::try_from(args.messages()).unwrap_or(usize::MAX);
        let book = Arc::new(Book::new(messages));
        let binary = args.binary.clone().map_or_else(|| beside("postrider"), Ok)?;
        let data = data_directory(&beside("soak-data")?)?;
        let more = [("POSTRIDER_LOG_RETENTION_SECONDS", args.retention_s().to_string())];
        let server = Server::start_with(&binary, data.path(), &more).await?;
        let lane = Arc::new(Lane::start("receivers")?);
        let healthy = Arc::new(Remote::start(&lane, Manner::Well, &book).await?);
        let mut remotes = vec![healthy.clone()];
        let plans = connections();
        for plan in &plans {
            let remote = match plan.manner {
                Manner::Well => healthy.clone(),
                manner => Arc::new(Remote::start(&lane, manner, &book).await?),
            };
            let host = format!("http://{}", remote.address);
            server.create_connection(&plan.name, &host, plan.settings.clone()).await?;
            remotes.push(remote);
        }
        let outages = Outages::new(healthy, Duration::from_secs(args.minutes * 60));
        let route = Route {
            connections: hand(&plans),
            paths: plans.iter().map(|plan| uri(&of(&plan.name, "publish"))).collect(),
            keeps_ids: plans.iter().map(|plan| plan.gives_up).collect(),
        };
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine::read(),
            minutes: args.minutes,
            rate: args.rate,
            retention_s: args.retention_s(),
            outage_every_s: outages.every.as_secs(),
            outage_s: outages.span.as_secs(),
            is_complete: false,
            passed: false,
            checks: Vec::new(),
            accounts: Vec::new(),
            rest_s: None,
            stop_s: None,
            samples: Vec::new(),
        };
        Ok(Soak {
            args,
            file,
            plans,
            route: Arc::new(route),
            sent: Arc::new(Sent::new(messages)),
            book,
            server,
            data,
            outages,
            ends: Ends::default(),
            progress: Progress::start(),
            report,
            _remotes: remotes,
        })
    }

    /// Publishes to the last message while remotes come and go, and samples.
    async fn load(&mut self, generator: &Lane) -> Result<(), Failure> {
        self.progress.step("soak");
        let began_at = Instant::now();
        let amount = (self.args.messages(), self.args.rate);
        let publishing = publish(generator, self.server.address, self.route.clone(), amount, self.sent.clone());
        let mut publishing = std::pin::pin!(publishing);
        let outages = self.outages.clone();
        let mut failing = std::pin::pin!(outages.run());
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.tick().await;
        loop {
            tokio::select! {
                biased;
                done = &mut publishing => break done?,
                failed = &mut failing => return Err(failed),
                _ = ticks.tick() => {
                    let sample = self.sample(began_at).await?;
                    self.report.samples.push(sample);
                    self.write()?;
                }
            }
        }
        self.outages.end().await
    }

    async fn sample(&mut self, began_at: Instant) -> Result<Sample, Failure> {
        if let Some(how) = self.server.ended() {
            return Err(Failure::new(format!("the server ended in the middle: {how}")));
        }
        let retention = Wait::from_secs(self.args.retention_s());
        let books = (&*self.sent, &*self.book);
        let mut sample = Sample::take(&self.server, self.data.path(), books, retention).await?;
        sample.at_s = began_at.elapsed().as_secs_f64();
        sample.outage = self.outages.now();
        self.progress.done(&sample.line(self.report.samples.last()));
        if self.report.samples.len().is_multiple_of(LOOK_EVERY_SAMPLES) {
            self.ends.look(&self.server, &self.plans).await?;
        }
        if mib(sample.database_bytes) > DATABASE_MIB_MAX {
            return Err(Failure::new(format!("the database is larger than {DATABASE_MIB_MAX} MiB")));
        }
        Ok(sample)
    }

    /// Waits until nothing is in any queue, for so long; tells whether it came to that.
    async fn rest(&mut self) -> Result<bool, Failure> {
        self.progress.step("coming to rest");
        let began_at = Instant::now();
        loop {
            let metrics = self.server.metrics().await?;
            let open = metrics("postrider_queue_waiting") + metrics("postrider_dlq_dead");
            let is_at_rest = open == 0.0;
            if is_at_rest || began_at.elapsed() > REST_AT_MOST {
                self.ends.look(&self.server, &self.plans).await?;
                self.report.rest_s = is_at_rest.then(|| began_at.elapsed().as_secs_f64());
                self.progress.done(&format!("{open} open after {:.1} s", began_at.elapsed().as_secs_f64()));
                return Ok(is_at_rest);
            }
            self.ends.look(&self.server, &self.plans).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn judge(mut self, came_to_rest: bool) -> Result<Report, Failure> {
        let books = (&*self.route, &*self.sent, &*self.book);
        self.report.accounts = accounts(&self.server, &self.plans, &self.ends, books).await?;
        let asked_at = Instant::now();
        let stopped = self.server.stop().await;
        self.report.stop_s = stopped.is_ok().then(|| asked_at.elapsed().as_secs_f64());
        let run = Run {
            minutes: self.args.minutes,
            rate: self.args.rate,
            retention_s: self.args.retention_s(),
            samples: &self.report.samples,
            accounts: &self.report.accounts,
            came_to_rest,
            stopped: stopped.is_ok(),
        };
        self.report.checks = checks(&run);
        self.report.passed = self.report.checks.iter().all(|check| check.passed);
        self.report.is_complete = true;
        write(&self.report, self.file)?;
        Ok(self.report)
    }

    fn write(&self) -> Result<(), Failure> {
        write(&self.report, self.file)
    }
}

/// Whole or not at all, since it is read while the soak goes on.
fn write(report: &Report, file: &PathBuf) -> Result<(), Failure> {
    let json = serde_json::to_string(report).map_err(|error| Failure::new(error.to_string()))?;
    let unfinished = file.with_extension("json.new");
    std::fs::write(&unfinished, json + "\n")?;
    Ok(std::fs::rename(&unfinished, file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_at_a_thousand_is_the_default_and_nonsense_is_refused() {
        let args = Args::parse_from(["soak"]);
        assert_eq!((args.minutes, args.rate, args.retention_s(), args.messages()), (60, 1000, 300, 3_600_000));
        assert_eq!(Args::parse_from(["soak", "--minutes", "2"]).retention_s(), 60);
        for bad in [["soak", "--minutes", "0"], ["soak", "--rate", "1501"], ["soak", "--rate", "fast"]] {
            assert!(Args::try_parse_from(bad).is_err(), "{bad:?}");
        }
    }
}
