//! Messages with their deliveries, and the subscriptions that push. It must not know which subscriptions a message matches.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::id::{Cid, ConnectionId, EventId, ProjectId, SubscriptionId};
use postrider_core::subscription::{PushSpec, PushSubscription};
use postrider_core::topic::TopicName;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::configuration::set_value;
use super::listing::{BAD_CURSOR, cut, rows_of};
use super::rows::{Columns, from_json, id_of, json, key, read_all, read_one};
use super::work::Work;
use super::{SqliteStore, bodies, intake, queues, topics};
use crate::kept_programs::{KeptProgram, PREFIX};
use crate::{
    EventFilter, Events, NewDelivery, NewEvent, Page, PageRequest, PublishedEvent, StoreError, StoreRead as _,
    StoredEvent,
};

#[async_trait]
impl Events for SqliteStore {
    async fn publish_event(&self, event: NewEvent) -> Result<PublishedEvent, StoreError> {
        self.write(move |work| publish(work, &event)).await
    }

    async fn events(
        &self,
        project_id: ProjectId,
        filter: &EventFilter,
        page: PageRequest,
    ) -> Result<Page<StoredEvent>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| list(connection, project_id, &filter, &page)).await
    }

    async fn event(&self, project_id: ProjectId, id: EventId) -> Result<Option<StoredEvent>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} {SOURCE} WHERE m.id = ?1 AND m.project_id = ?2 ORDER BY m.sequence LIMIT 1");
        let values = (key(id.as_u128()), key(project_id.as_u128()));
        self.read(move |connection| read_one(connection, &sql, &[&values.0, &values.1], |row| Ok(read_event(row)?.1)))
            .await
    }

    async fn all_push_subscriptions(&self) -> Result<Vec<PushSubscription>, StoreError> {
        self.read(all_push).await
    }

    async fn kept_program(&self, of: SubscriptionId) -> Result<Option<String>, StoreError> {
        let written = self.value(&KeptProgram::name(of)).await?;
        Ok(written.map(|written| KeptProgram::read(&written)).transpose()?.map(|kept| kept.program))
    }

    async fn prune_kept_programs(&self, kept_before: Timestamp) -> Result<u64, StoreError> {
        let unneeded = self.read(move |connection| unneeded_programs(connection, kept_before)).await?;
        let count = unneeded.len() as u64;
        if count > 0 {
            self.write(move |work| unneeded.iter().try_for_each(|name| set_value(work, name, None))).await?;
        }
        Ok(count)
    }
}

pub(super) fn publish(work: &Work, event: &NewEvent) -> Result<PublishedEvent, StoreError> {
    work.space.check()?;
    if event.id_is_given && is_known(work, event)? {
        return Ok(PublishedEvent::Repeated);
    }
    let known = topics::find(work, event.project_id, &event.message.topic)?;
    if known.is_none() && event.new_topic.is_none() {
        return Err(StoreError::NotFound { what: "topic" });
    }
    // Before anything is written, so that a refusal undoes nothing of the calls that share the transaction.
    check_room(work, &event.deliveries)?;
    let topic_id = match (known, &event.new_topic) {
        (Some(id), _) => id,
        (None, Some(topic)) => {
            topics::create(work, topic)?;
            topic.id
        }
        (None, None) => return Err(StoreError::NotFound { what: "topic" }),
    };
    bodies::add(work, &[&event.body])?;
    topics::append(work, topic_id, &event.message, event.body.id)?;
    let deliveries: Vec<&NewDelivery> = event.deliveries.iter().collect();
    Ok(PublishedEvent::Stored(intake::enqueue(work, &deliveries)?))
}

fn is_known(work: &Work, event: &NewEvent) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM topic_message WHERE id = ?1 AND project_id = ?2";
    let values: [[u8; 16]; 2] = [key(event.message.id.as_u128()), key(event.project_id.as_u128())];
    Ok(work.first(sql, &[&values[0], &values[1]], |_| Ok(()))?.is_some())
}

/// Messages and bytes that have been asked for in each queue, and are not written yet.
pub(super) type Asked = BTreeMap<ConnectionId, (u64, u64)>;

pub(super) fn check_room(work: &Work, deliveries: &[NewDelivery]) -> Result<(), StoreError> {
    match broken_by(work, deliveries, &mut Asked::new())? {
        Some(limit) => Err(StoreError::Full { limit }),
        None => Ok(()),
    }
}

/// The limit that one of these would break behind what has been asked for. Several of them may go to one queue.
pub(super) fn broken_by(
    work: &Work,
    deliveries: &[NewDelivery],
    asked: &mut Asked,
) -> Result<Option<&'static str>, StoreError> {
    let mut all = asked.clone();
    for new in deliveries {
        let bytes = new.body.bytes.len() as u64;
        let before = all.entry(new.connection_id).or_default();
        let Some(queue) = queues::find(work, new.connection_id)? else { continue };
        let (waiting, waiting_bytes) = (queue.waiting + before.0, queue.waiting_bytes + before.1);
        if let Some(limit) = work.limits.broken_by(waiting, waiting_bytes, bytes) {
            return Ok(Some(limit));
        }
        *before = (before.0 + 1, before.1 + bytes);
    }
    *asked = all;
    Ok(None)
}

const COLUMNS: &str = "m.sequence, m.id, t.name, m.cid, m.headers, m.published_at, b.bytes";
const SOURCE: &str =
    "FROM topic_message AS m CROSS JOIN topic AS t ON t.id = m.topic_id CROSS JOIN body AS b ON b.id = m.body_id";

fn read_event(row: &Row<'_>) -> Result<(i64, StoredEvent), StoreError> {
    let mut at = Columns { row, next: 0 };
    let sequence = at.take()?;
    let event = StoredEvent {
        id: EventId::from_u128(at.id()?),
        topic: at.word(|text| TopicName::new(text).ok())?,
        cid: Cid::from_stored(at.text()?),
        headers: from_json(at.text()?, "a message's headers")?,
        published_at: Timestamp::from_millis(at.take()?),
        body: Bytes::from(at.take::<Vec<u8>>()?),
    };
    Ok((sequence, event))
}

/// The sequence gives the order; times narrow it down and are as good as in that order.
fn list(
    connection: &Connection,
    project_id: ProjectId,
    filter: &EventFilter,
    page: &PageRequest,
) -> Result<Page<StoredEvent>, StoreError> {
    let rows = rows_of(page);
    let before = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("e.").and_then(|text| text.parse::<i64>().ok()).ok_or(BAD_CURSOR)?,
        None => i64::MAX,
    };
    let project = key(project_id.as_u128());
    let (scope, scope_key) = match &filter.topic {
        None => ("m.project_id", project),
        Some(name) => {
            let sql = "SELECT id FROM topic WHERE project_id = ?1 AND name = ?2";
            let found = read_one(connection, sql, &[&project, &name.as_str()], |row| Ok(row.get::<_, [u8; 16]>(0)?))?;
            let Some(topic) = found else { return Ok(Page { items: Vec::new(), next_cursor: None }) };
            ("m.topic_id", topic)
        }
    };
    let sql = format!(
        "SELECT {COLUMNS} {SOURCE} WHERE {scope} = ?1 AND m.sequence < ?2 AND m.published_at >= ?3 AND m.published_at < ?4 \
         ORDER BY m.sequence DESC LIMIT ?5"
    );
    let values = [
        Value::Blob(scope_key.to_vec()),
        Value::Integer(before),
        Value::Integer(filter.from.map_or(i64::MIN, Timestamp::as_millis)),
        Value::Integer(filter.before.map_or(i64::MAX, Timestamp::as_millis)),
        Value::Integer(i64::try_from(rows + 1).unwrap_or(i64::MAX)),
    ];
    let mut statement = connection.prepare_cached(&sql)?;
    let mut read = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = read.next()? {
        found.push(read_event(row)?);
    }
    let cut = cut(found, rows, |(sequence, _)| format!("e.{sequence}"));
    Ok(Page { items: cut.items.into_iter().map(|(_, event)| event).collect(), next_cursor: cut.next_cursor })
}

const PUSH: &str = "id, project_id, name, connection_id, written, version, created_at, updated_at";

pub(super) fn all_push(connection: &Connection) -> Result<Vec<PushSubscription>, StoreError> {
    read_all(connection, &format!("SELECT {PUSH} FROM push_subscription ORDER BY id"), &[], read_push)
}

fn read_push(row: &Row<'_>) -> Result<PushSubscription, StoreError> {
    let mut at = Columns { row, next: 0 };
    let (id, project_id) = (SubscriptionId::from_u128(at.id()?), ProjectId::from_u128(at.id()?));
    let name: String = at.take()?;
    let connection_id = ConnectionId::from_u128(at.id()?);
    let written = from_json(at.text()?, "a subscription")?;
    let spec = PushSpec::parse(&written).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StoreError::Corrupt(format!("the subscription `{name}`: {}", errors.join("; ")))
    })?;
    let version = at.take()?;
    let (created_at, updated_at) = (Timestamp::from_millis(at.take()?), Timestamp::from_millis(at.take()?));
    Ok(PushSubscription { id, project_id, name, connection_id, written, spec, version, created_at, updated_at })
}

pub(super) fn create_push(work: &Work, subscription: &PushSubscription) -> Result<(), StoreError> {
    require_connection(work, subscription)?;
    let (id, project) = (key(subscription.id.as_u128()), key(subscription.project_id.as_u128()));
    refuse_taken_name(work, subscription)?;
    if work.first("SELECT 1 FROM push_subscription WHERE id = ?1", &[&id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Conflict(format!("there is a subscription {} already", subscription.id)));
    }
    work.execute(
        &format!("INSERT INTO push_subscription ({PUSH}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
        &[
            &id,
            &project,
            &subscription.name,
            &key(subscription.connection_id.as_u128()),
            &json(&subscription.written)?,
            &subscription.version,
            &subscription.created_at.as_millis(),
            &subscription.updated_at.as_millis(),
        ],
    )?;
    Ok(())
}

pub(super) fn replace_push(work: &Work, subscription: &PushSubscription, version: u32) -> Result<(), StoreError> {
    require_connection(work, subscription)?;
    let id = key(subscription.id.as_u128());
    let stored = work
        .first("SELECT version FROM push_subscription WHERE id = ?1", &[&id], |row| Ok(row.get::<_, u32>(0)?))?
        .ok_or(StoreError::NotFound { what: "subscription" })?;
    if stored != version {
        let name = &subscription.name;
        return Err(StoreError::Conflict(format!("the subscription `{name}` has changed meanwhile: version {stored}")));
    }
    refuse_taken_name(work, subscription)?;
    work.execute(
        "UPDATE push_subscription SET name = ?2, connection_id = ?3, written = ?4, version = ?5, updated_at = ?6 WHERE id = ?1",
        &[
            &id,
            &subscription.name,
            &key(subscription.connection_id.as_u128()),
            &json(&subscription.written)?,
            &subscription.version,
            &subscription.updated_at.as_millis(),
        ],
    )?;
    Ok(())
}

pub(super) fn delete_push(work: &Work, id: SubscriptionId, now: Timestamp) -> Result<(), StoreError> {
    match delete_push_where(work, "id", &key(id.as_u128()), now)? {
        0 => Err(StoreError::NotFound { what: "subscription" }),
        _ => Ok(()),
    }
}

/// With their connection.
pub(super) fn delete_push_to(work: &Work, connection: &[u8; 16], now: Timestamp) -> Result<(), StoreError> {
    delete_push_where(work, "connection_id", connection, now).map(drop)
}

fn delete_push_where(work: &Work, column: &str, is: &[u8; 16], now: Timestamp) -> Result<usize, StoreError> {
    let going = work.all(&format!("SELECT {PUSH} FROM push_subscription WHERE {column} = ?1"), &[is], read_push)?;
    for subscription in &going {
        if let Some((name, written)) = KeptProgram::of(subscription, now)? {
            set_value(work, &name, Some(&written))?;
        }
    }
    work.execute(&format!("DELETE FROM push_subscription WHERE {column} = ?1"), &[is])?;
    Ok(going.len())
}

/// The names of those kept before that time that nothing refers to any more. What is gone gets no new deliveries, so none can come later.
fn unneeded_programs(connection: &Connection, kept_before: Timestamp) -> Result<Vec<String>, StoreError> {
    let all = "SELECT name, value FROM value WHERE name >= ?1 AND name < ?2";
    let end = format!("{PREFIX}~");
    let kept = read_all(connection, all, &[&PREFIX, &end], |row| {
        let (name, written): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(KeptProgram::kept_before(&name, &written, kept_before)?.map(|of| (of, name)))
    })?;
    let kept: Vec<(SubscriptionId, String)> = kept.into_iter().flatten().collect();
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let used = "SELECT subscription_id FROM delivery WHERE subscription_id IS NOT NULL \
                UNION SELECT subscription_id FROM delivery_log WHERE subscription_id IS NOT NULL";
    let used = read_all(connection, used, &[], |row| Ok(SubscriptionId::from_u128(id_of(row.get(0)?))))?;
    let used: BTreeSet<SubscriptionId> = used.into_iter().collect();
    Ok(kept.into_iter().filter(|(of, _)| !used.contains(of)).map(|(_, name)| name).collect())
}

fn require_connection(work: &Work, subscription: &PushSubscription) -> Result<(), StoreError> {
    let values = (key(subscription.connection_id.as_u128()), key(subscription.project_id.as_u128()));
    work.first("SELECT 1 FROM connection WHERE id = ?1 AND project_id = ?2", &[&values.0, &values.1], |_| Ok(()))?
        .ok_or(StoreError::NotFound { what: "connection" })
}

fn refuse_taken_name(work: &Work, subscription: &PushSubscription) -> Result<(), StoreError> {
    let taken = work.first(
        "SELECT 1 FROM push_subscription WHERE project_id = ?1 AND name = ?2 AND id <> ?3",
        &[&key(subscription.project_id.as_u128()), &subscription.name, &key(subscription.id.as_u128())],
        |_| Ok(()),
    )?;
    match taken {
        Some(()) => Err(StoreError::Conflict(format!(
            "there is a subscription `{}` in this project already",
            subscription.name
        ))),
        None => Ok(()),
    }
}
