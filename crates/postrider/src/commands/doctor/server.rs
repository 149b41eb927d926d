//! The server, if one can be reached: whether it is ready, whether its clock is ours, and what it has to do.

use postrider::{Client, ClientError, Connection, PageQuery};
use postrider_core::Timestamp;
use postrider_core::retry_after::RetryAfter;
use postrider_engine::SystemClock;
use serde_json::Value;

use super::finding::Finding;
use super::work::{Seen, Subject};
use crate::args::GlobalArgs;
use crate::commands::reach;
use crate::serve::server_file;

const CHECK: &str = "server";
/// Leases and due times live with this much.
const SKEW_MS_MAX: i64 = 2_000;

/// What it has to do is asked only where no file has told it.
pub async fn look(global: &GlobalArgs, told_by_file: bool, findings: &mut Vec<Finding>) -> Option<Seen> {
    let is_wanted = global.server.as_deref().is_some_and(|server| !server.is_empty());
    if !is_wanted && server_file::read(&global.data).is_none() {
        findings.push(Finding::note(CHECK, "no server runs on this data directory", "`postrider serve` starts one"));
        return None;
    }
    let client = match reach::client_with(global, Some("none")) {
        Ok(client) => client,
        Err(failed) => {
            findings.push(Finding::wrong(CHECK, failed.message, "give --server an address that can be used"));
            return None;
        }
    };
    let health = match client.health().await {
        Ok(health) => health,
        Err(error) => {
            let action = "a server that was killed leaves server.json behind; start it, or see why it does not answer";
            findings.push(Finding::wrong(CHECK, error.to_string(), action));
            return None;
        }
    };
    let clock = SystemClock::shared();
    findings.extend(skew(health.date.as_deref(), clock.now()));
    findings.extend(ready(client.server(), &health.ready));
    if told_by_file {
        return None;
    }
    match seen(&reach::client(global).ok()?).await {
        Ok(seen) => Some(seen),
        Err(error) => {
            findings.push(Finding::wrong(CHECK, error.to_string(), "give a key that may read with --key"));
            None
        }
    }
}

fn ready(server: &str, body: &Value) -> Vec<Finding> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = body["checks"].as_array().into_iter().flatten();
    let failing = checks.filter(|check| check["status"] != "ok");
    let mut findings: Vec<Finding> = failing
        .map(|check| {
            let detail = format!("not ready: {}: {}", text(&check["name"]), text(&check["detail"]));
            Finding::wrong(CHECK, detail, text(&check["action"]))
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, format!("{server} is ready")));
    }
    if let Some(restored) = body.get("restored") {
        let detail = format!("{} ({} paused)", text(&restored["detail"]), restored["paused"]);
        findings.push(Finding::wrong(CHECK, detail, text(&restored["action"])));
    }
    findings
}

/// RFC 9110, section 6.6.1: whole seconds.
fn skew(date: Option<&str>, now: Timestamp) -> Option<Finding> {
    // The header of retries has the same three forms of dates.
    let Some(RetryAfter::Date(theirs)) = RetryAfter::parse(date?) else { return None };
    let apart = theirs.as_millis() - now.as_millis();
    Some(if apart.abs() <= SKEW_MS_MAX {
        Finding::ok("clock", "the server's clock is this machine's, to the second")
    } else {
        let detail = format!("the server's clock is {} s apart from this machine's", apart / 1000);
        Finding::wrong("clock", detail, "set both by the same service, such as chrony or systemd-timesyncd")
    })
}

async fn seen(client: &Client) -> Result<Seen, ClientError> {
    let mut seen = Seen::default();
    let mut page = PageQuery { limit: Some(1000), cursor: None };
    loop {
        let found = client.connections(&page).await?;
        seen.subjects.extend(found.data.into_iter().map(subject));
        page.cursor = found.next_cursor;
        if page.cursor.is_none() {
            break;
        }
    }
    loop {
        let found = client.topics(&page).await?;
        for topic in found.data {
            if client.subscriptions(&topic.name).await?.is_empty() {
                seen.unread_topics.push(topic.name);
            }
        }
        page.cursor = found.next_cursor;
        if page.cursor.is_none() {
            return Ok(seen);
        }
    }
}

fn subject(known: Connection) -> Subject {
    let state = &known.state;
    let since = state.more.get("oldestWaitingSince").and_then(Value::as_str);
    Subject {
        host: ["host", "address", "url"].iter().find_map(|key| known.more.get(*key)?.as_str().map(str::to_owned)),
        paused: state.paused,
        active: state.more.get("is_active").and_then(Value::as_bool).unwrap_or(true),
        waiting: state.waiting,
        dead: state.dead,
        oldest_waiting_since: since.and_then(Timestamp::parse_rfc3339),
        name: known.name,
    }
}
