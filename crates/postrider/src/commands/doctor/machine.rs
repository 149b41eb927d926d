//! The clock, and the way out. It must not send anything to anybody: names are resolved and nothing is dialled.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use postrider_engine::SystemClock;
use postrider_wire::resolve::{Resolver as _, SystemResolver};

use super::finding::{Finding, listed};
use super::work::Seen;
use crate::serve::settings::Settings;

/// Both clocks are watched for so long.
const WATCHED: Duration = Duration::from_millis(200);
/// More apart than this and the wall clock is being set.
const APART_MS_MAX: i64 = 50;
/// Names that are resolved, at most, and how long for each.
const NAMES_MAX: usize = 20;
const RESOLVE_MAX: Duration = Duration::from_secs(5);

pub async fn clock() -> Vec<Finding> {
    let clock = SystemClock::shared();
    let (wall, steady) = (clock.now(), clock.monotonic());
    tokio::time::sleep(WATCHED).await;
    let wall_ms = clock.now().as_millis() - wall.as_millis();
    let steady_ms = i64::try_from(clock.monotonic().saturating_sub(steady).as_millis()).unwrap_or(i64::MAX);
    let apart = wall_ms - steady_ms;
    let zone = TimeZone::system();
    let zone = zone.iana_name().unwrap_or("without a name").to_owned();
    let told = if apart.abs() <= APART_MS_MAX {
        Finding::ok("clock", format!("the wall clock runs with the steady one (zone {zone}; everything stored is UTC)"))
    } else {
        let detail =
            format!("the wall clock went {apart} ms apart from the steady one within {} ms", WATCHED.as_millis());
        Finding::wrong("clock", detail, "let one service set the clock, and let it slew instead of stepping")
    };
    vec![told]
}

pub async fn egress(settings: Option<&Settings>, seen: Option<&Seen>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(settings) = settings {
        let opened: Vec<String> = settings.opened.iter().map(ToString::to_string).collect();
        findings.push(match opened.is_empty() {
            true => Finding::ok(
                "egress",
                "the guard is as it comes: metadata addresses are closed, and private ones to webhooks",
            ),
            false => Finding::note(
                "egress",
                format!("opened beside the guard: {}", opened.join(", ")),
                "keep it as narrow as it can be",
            ),
        });
    }
    let hosts: BTreeSet<&str> = seen.map(|seen| seen.hosts().take(NAMES_MAX).collect()).unwrap_or_default();
    let (mut known, mut unknown) = (0, Vec::new());
    for host in hosts {
        match tokio::time::timeout(RESOLVE_MAX, SystemResolver.resolve(host, 443)).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => known += 1,
            _ => unknown.push(host.to_owned()),
        }
    }
    if !unknown.is_empty() {
        let detail = format!("these hosts of connections have no address: {}", listed(&unknown));
        findings.push(Finding::wrong(
            "dns",
            detail,
            "see whether the names are right, and whether this machine's resolver works",
        ));
    } else if known > 0 {
        findings.push(Finding::ok("dns", format!("{known} hosts of connections have addresses")));
    }
    findings
}
