//! Messages with their deliveries, and the subscriptions that push. It must not know which subscriptions a message matches.

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::id::{Cid, ConnectionId, EventId, ProjectId, SubscriptionId};
use postrider_core::subscription::{PushSpec, PushSubscription};
use postrider_core::topic::TopicName;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::listing::{BAD_CURSOR, cut, rows_of};
use super::rows::{Columns, from_json, json, key, read_all, read_one};
use super::work::Work;
use super::{SqliteStore, bodies, intake, queues, topics};
use crate::{EventFilter, Events, NewDelivery, NewEvent, Page, PageRequest, PublishedEvent, StoreError, StoredEvent};

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

/// Several of them may go to one queue.
pub(super) fn check_room(work: &Work, deliveries: &[NewDelivery]) -> Result<(), StoreError> {
    let mut asked: Vec<(ConnectionId, u64, u64)> = Vec::new();
    for new in deliveries {
        let bytes = new.body.bytes.len() as u64;
        let (messages_before, bytes_before) = match asked.iter_mut().find(|(id, ..)| *id == new.connection_id) {
            Some((_, messages, all)) => {
                let before = (*messages, *all);
                (*messages, *all) = (*messages + 1, *all + bytes);
                before
            }
            None => {
                asked.push((new.connection_id, 1, bytes));
                (0, 0)
            }
        };
        let Some(queue) = queues::find(work, new.connection_id)? else { continue };
        let (waiting, waiting_bytes) = (queue.waiting + messages_before, queue.waiting_bytes + bytes_before);
        if let Some(limit) = work.limits.broken_by(waiting, waiting_bytes, bytes) {
            return Err(StoreError::Full { limit });
        }
    }
    Ok(())
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

pub(super) fn delete_push(work: &Work, id: SubscriptionId) -> Result<(), StoreError> {
    let gone = work.execute("DELETE FROM push_subscription WHERE id = ?1", &[&key(id.as_u128())])?;
    if gone == 0 { Err(StoreError::NotFound { what: "subscription" }) } else { Ok(()) }
}

/// With their connection.
pub(super) fn delete_push_to(work: &Work, connection: &[u8; 16]) -> Result<(), StoreError> {
    work.execute("DELETE FROM push_subscription WHERE connection_id = ?1", &[connection])?;
    Ok(())
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
