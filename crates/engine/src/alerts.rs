//! Looks at what alerts are about, and tells of each crossing once: in the store with its event, then by mail (P09, D43).
//!
//! It reads kept counters and, for queues that have waited too long, their head. It must not hold up anybody: a store that is down is
//! asked again at the next look.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use postrider_core::alert::{Alert, AlertKind, AlertThresholds, Crossing, Rule};
use postrider_core::blocked::blocked_by;
use postrider_core::connection::Connection;
use postrider_core::growth::Growth;
use postrider_core::id::{AlertId, BodyId, ConnectionId, EventId, ProjectId, TopicId};
use postrider_core::message::HeaderList;
use postrider_core::operational::OperationalEvent;
use postrider_core::readiness::{Room, Worker};
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait, log};
use postrider_store::{AlertWrite, NewBody, PageRequest, Project, QueueSummary, StoreError, Topic, TopicMessageDraft};
use serde_json::json;

use crate::announcer;
use crate::shared::Shared;

/// Where events of alerts go; each project has its own.
pub const ALERT_TOPIC: &str = "postrider.alert";
/// How long they are kept there.
const TOPIC_RETENTION: Wait = Wait::from_secs(7 * 24 * 3600);
/// For `dead_letters_growing`.
const GROWTH_WINDOW: Wait = Wait::from_secs(600);
/// Endpoints read at once.
const FAILING_ROWS: u32 = 1000;
const MINUTE_MS: u64 = 60_000;
const MEGABYTE: u64 = 1_000_000;

type Place = (AlertKind, Option<ConnectionId>);

/// What is open, as the store has it, and what has been seen since.
#[derive(Default)]
struct Book {
    open: BTreeMap<Place, Alert>,
    /// Of dead letters.
    growth: BTreeMap<ConnectionId, Growth>,
    /// Since when endpoints have been failing, by the store.
    failing: BTreeMap<ConnectionId, Timestamp>,
    /// Told by mail while it could not be written.
    unwritten: Option<Alert>,
}

impl Book {
    /// In minutes.
    fn failing_for(&self, id: ConnectionId, now: Timestamp) -> u64 {
        self.failing.get(&id).map_or(0, |since| now.since(*since).as_millis() / MINUTE_MS)
    }
}

/// One value, and what it is held against.
struct Look<'a> {
    kind: AlertKind,
    project: &'a Project,
    connection: Option<&'a Connection>,
    rule: Rule,
    value: u64,
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut book: Option<Book> = None;
    loop {
        shared.vitals.idle(Worker::Alerts);
        tokio::time::sleep(shared.options.alert_every.as_duration()).await;
        shared.vitals.busy(Worker::Alerts);
        if book.is_none() {
            book = load(&shared).await;
        }
        if let Some(known) = &mut book
            && let Err(error) = look(&shared, known).await
        {
            tracing::warn!(event = log::ALERTS_UNREAD, %error, "what alerts are about cannot be read now");
        }
    }
}

async fn load(shared: &Shared) -> Option<Book> {
    match shared.store.open_alerts().await {
        Ok(open) => {
            let open = open.into_iter().map(|alert| (alert.place(), alert)).collect();
            Some(Book { open, ..Book::default() })
        }
        Err(error) => {
            tracing::warn!(event = log::ALERTS_UNREAD, %error, "the open alerts cannot be read now");
            None
        }
    }
}

async fn look(shared: &Shared, book: &mut Book) -> Result<(), StoreError> {
    let projects = shared.store.projects().await?;
    if let Some(first) = projects.first() {
        look_at_server(shared, book, first).await;
    }
    book.failing = failing(shared).await?;
    for project in &projects {
        for summary in shared.store.queue_summaries(project.id).await? {
            shared.vitals.busy(Worker::Alerts);
            if let Some(connection) = shared.connections.get(summary.queue_id) {
                look_at_queue(shared, book, project, &connection, &summary).await?;
            }
        }
    }
    book.growth.retain(|id, _| shared.connections.get(*id).is_some());
    let gone = |alert: &&Alert| alert.connection_id.is_some_and(|id| shared.connections.get(id).is_none());
    for alert in book.open.values().filter(gone).cloned().collect::<Vec<_>>() {
        let of = projects.iter().find(|project| Some(project.id) == alert.project_id);
        if let Some(project) = of.or(projects.first()) {
            tell(shared, book, project, None, Alert { recovered_at: Some(shared.now()), ..alert }, 0).await;
        }
    }
    Ok(())
}

async fn failing(shared: &Shared) -> Result<BTreeMap<ConnectionId, Timestamp>, StoreError> {
    let mut failing = BTreeMap::new();
    let mut after = None;
    loop {
        let rows = shared.store.failing_endpoints(after, FAILING_ROWS).await?;
        let Some(last) = rows.last() else { return Ok(failing) };
        after = Some(last.id);
        failing.extend(rows.iter().filter_map(|row| Some((row.id, row.state.health.failing_since?))));
    }
}

/// What is no project's: events go to the first one.
async fn look_at_server(shared: &Shared, book: &mut Book, project: &Project) {
    let low = shared.options.alert_disk_free_bytes / MEGABYTE;
    if let Room::Bytes { free, .. } = shared.store.room()
        && low > 0
    {
        let rule = Rule::TooLittle { low };
        hold(shared, book, Look { kind: AlertKind::DiskLow, project, connection: None, rule, value: free / MEGABYTE })
            .await;
    }
    let rule = Rule::TooMuch { high: (shared.options.health.write.as_millis() / 1000).max(2) };
    let value = shared.vitals.since_write().as_millis() / 1000;
    hold(shared, book, Look { kind: AlertKind::StoreUnwritable, project, connection: None, rule, value }).await;
}

async fn look_at_queue(
    shared: &Shared,
    book: &mut Book,
    project: &Project,
    connection: &Connection,
    summary: &QueueSummary,
) -> Result<(), StoreError> {
    let now = shared.now();
    let AlertThresholds {
        head_blocked_minutes,
        oldest_waiting_minutes,
        dead_letters,
        dead_letters_growth,
        endpoint_failing_minutes,
    } = project.settings.alerts;
    let waited = summary.oldest_waiting_since.map_or(0, |since| now.since(since).as_millis() / MINUTE_MS);
    let head_is_old = head_blocked_minutes > 0 && waited >= u64::from(head_blocked_minutes);
    let may_be_blocked = connection.spec.policy.queue.ordered
        && (head_is_old || book.open.contains_key(&(AlertKind::HeadBlocked, Some(connection.id))));
    let blocked = if may_be_blocked { head_blocked_for(shared, connection.id, now).await? } else { 0 };
    let rejected = if head_blocked_minutes > 0 { head_is_rejected(shared, connection, summary).await? } else { false };
    let grown = book.growth.entry(connection.id).or_default().step(now, summary.dead, GROWTH_WINDOW);
    for (kind, high, value) in [
        (AlertKind::OldestWaiting, oldest_waiting_minutes, waited),
        (AlertKind::HeadBlocked, head_blocked_minutes, blocked),
        // At once, since it never goes by itself; turned off with the one above.
        (AlertKind::HeadRejected, head_blocked_minutes.min(1), rejected.into()),
        (AlertKind::DeadLetters, dead_letters, summary.dead),
        (AlertKind::DeadLettersGrowing, dead_letters_growth, grown),
        (AlertKind::EndpointFailing, endpoint_failing_minutes, book.failing_for(connection.id, now)),
    ] {
        // Turned off: what is open has recovered.
        let (rule, value) = if high == 0 {
            (Rule::TooMuch { high: u64::MAX }, 0)
        } else {
            (Rule::TooMuch { high: high.into() }, value)
        };
        hold(shared, book, Look { kind, project, connection: Some(connection), rule, value }).await;
    }
    Ok(())
}

/// For how many minutes the head has been failing.
async fn head_blocked_for(shared: &Shared, id: ConnectionId, now: Timestamp) -> Result<u64, StoreError> {
    let head = shared.store.queue(id, PageRequest { limit: 1, cursor: None }).await?.items.into_iter().next();
    let Some(head) = head.filter(|head| head.progress.failure.is_some()) else { return Ok(0) };
    let first = shared.store.attempts(head.id).await?.into_iter().find(|attempt| attempt.failure.is_some());
    Ok(first.map_or(0, |attempt| now.since(attempt.started_at).as_millis() / MINUTE_MS))
}

/// Whether the receiver has refused the head for good (D25). Only queues that this can happen to are looked into.
async fn head_is_rejected(
    shared: &Shared,
    connection: &Connection,
    summary: &QueueSummary,
) -> Result<bool, StoreError> {
    let may_be = connection.spec.target.mllp().is_some() && !connection.spec.policy.dlq.use_dlq && summary.waiting > 0;
    if !may_be {
        return Ok(false);
    }
    let head = shared.store.queue(connection.id, PageRequest { limit: 1, cursor: None }).await?.items.pop();
    Ok(head.is_some_and(|head| blocked_by(connection, &head.progress).is_some()))
}

/// Holds a value against its rule, and tells what crosses it.
async fn hold(shared: &Shared, book: &mut Book, look: Look<'_>) {
    let id = look.connection.map(|connection| connection.id);
    let place = (look.kind, id);
    let open = book.open.get(&place).or(book.unwritten.as_ref().filter(|alert| alert.place() == place)).cloned();
    let now = shared.now();
    let alert = match (look.rule.step(open.is_some(), look.value), open) {
        (Some(Crossing::Raised), _) => Alert {
            id: AlertId::new(now, shared.dice.bits()),
            project_id: look.connection.map(|connection| connection.project_id),
            connection_id: id,
            kind: look.kind,
            value: look.value,
            threshold: look.rule.threshold(),
            raised_at: now,
            recovered_at: None,
        },
        (Some(Crossing::Recovered), Some(open)) => Alert { recovered_at: Some(now), ..open },
        _ => return,
    };
    tell(shared, book, look.project, look.connection, alert, look.value).await;
}

/// Writes a crossing with its event, and mails it once it is written. A store that takes no writes is told of by mail all the same.
async fn tell(
    shared: &Shared,
    book: &mut Book,
    project: &Project,
    connection: Option<&Connection>,
    alert: Alert,
    value: u64,
) {
    let about_store = alert.kind == AlertKind::StoreUnwritable;
    if let Some(raised) = book.unwritten.take_if(|known| known.id == alert.id && alert.recovered_at.is_some()) {
        // It takes writes again: first what could not be written then.
        let value = raised.value;
        match shared.store.write_alert(crossing(shared, project, connection, &raised, value)).await {
            Ok(_) => {}
            Err(_) => {
                book.unwritten = Some(raised);
                return;
            }
        }
    }
    match shared.store.write_alert(crossing(shared, project, connection, &alert, value)).await {
        Ok(true) => {}
        Ok(false) => {
            // Another server was faster, so it tells.
            remember(book, alert);
            return;
        }
        Err(_) if about_store && alert.recovered_at.is_none() && book.unwritten.is_none() => {
            book.unwritten = Some(alert.clone());
            announce(shared, project, connection, &alert, value);
            return;
        }
        Err(error) => {
            tracing::warn!(event = log::ALERTS_UNREAD, %error, "an alert cannot be written now");
            return;
        }
    }
    announce(shared, project, connection, &alert, value);
    announce_block(shared, connection, &alert, value);
    remember(book, alert);
}

/// Who subscribes to the event of this one kind hears of it too.
fn announce_block(shared: &Shared, connection: Option<&Connection>, alert: &Alert, minutes: u64) {
    let Some(connection) = connection.filter(|_| alert.kind == AlertKind::HeadBlocked) else { return };
    let (project_id, connection) = (connection.project_id, announcer::subject(connection));
    let event = match alert.recovered_at {
        None => OperationalEvent::ConnectionBlocked { connection, minutes, at: alert.raised_at },
        Some(at) => OperationalEvent::ConnectionUnblocked { connection, at },
    };
    shared.announce(project_id, event);
}

fn remember(book: &mut Book, alert: Alert) {
    let place = alert.place();
    if alert.recovered_at.is_some() {
        book.open.remove(&place);
    } else {
        book.open.insert(place, alert);
    }
}

fn announce(shared: &Shared, project: &Project, connection: Option<&Connection>, alert: &Alert, value: u64) {
    let kind = alert.kind.as_str();
    let name = connection.map(|connection| connection.name.as_str());
    let detail = alert.kind.told(value, alert.threshold);
    let subject_of = name.map_or_else(|| "the server".to_owned(), |name| format!("{name} ({})", project.name));
    let (subject, text) = if alert.recovered_at.is_some() {
        tracing::info!(event = log::ALERT_RECOVERED, kind, connection = name, "an alert has recovered");
        (
            format!("Recovered: {kind} of {subject_of}"),
            format!("It has recovered: {detail}.\n\nRaised at {}.\n", alert.raised_at),
        )
    } else {
        tracing::warn!(event = log::ALERT_RAISED, kind, connection = name, detail, "an alert is raised");
        let action = alert.kind.action();
        (
            format!("Alert: {kind} of {subject_of}"),
            format!("{detail}.\n\nWhat to do: {action}.\n\nRaised at {}.\n", alert.raised_at),
        )
    };
    let owner = project.settings.owner_email.iter().filter(|_| alert.project_id.is_some());
    let mut to: Vec<String> = shared.options.alert_to.iter().chain(owner).cloned().collect();
    to.sort();
    to.dedup();
    let state = if alert.recovered_at.is_some() { "recovered" } else { "raised" };
    shared.post_mail(format!("{}.{state}", alert.id), to, subject, text);
}

fn crossing(
    shared: &Shared,
    project: &Project,
    connection: Option<&Connection>,
    alert: &Alert,
    value: u64,
) -> AlertWrite {
    let now = shared.now();
    let body = json!({
        "alert": alert.id,
        "state": if alert.recovered_at.is_some() { "recovered" } else { "raised" },
        "kind": alert.kind,
        "project": project.name,
        "connection": connection.map(|connection| &connection.name),
        "value": value,
        "threshold": alert.threshold,
        "detail": alert.kind.told(value, alert.threshold),
        "action": alert.kind.action(),
        "at": now,
    });
    let name = topic_name();
    AlertWrite {
        alert: alert.clone(),
        topic: topic(shared, project.id, name.clone()),
        event: TopicMessageDraft {
            topic: name,
            id: EventId::new(now, shared.dice.bits()),
            cid: shared.new_cid(now),
            headers: HeaderList::default(),
            published_at: now,
        },
        body: NewBody { id: BodyId::new(now, shared.dice.bits()), bytes: Bytes::from(body.to_string()) },
    }
}

fn topic(shared: &Shared, project_id: ProjectId, name: TopicName) -> Topic {
    let now = shared.now();
    let id = TopicId::new(now, shared.dice.bits());
    let description = "When alerts are raised and recover.".to_owned();
    Topic { id, project_id, name, description, retention: TOPIC_RETENTION, created_at: now }
}

fn topic_name() -> TopicName {
    TopicName::new(ALERT_TOPIC).expect("a name like any other")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_topic_has_a_name() {
        assert_eq!(super::topic_name().as_str(), super::ALERT_TOPIC);
    }
}
