//! Topics, their messages and the subscriptions that pull them. It must not know where a message comes from.

use bytes::Bytes;
use postrider_core::id::{BodyId, Cid, EventId, ProjectId, SubscriptionId, TopicId};
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};
use rusqlite::Row;

use super::bodies;
use super::configuration::require_project;
use super::rows::{Columns, from_json, id_of, json, key, signed, unsigned};
use super::work::{Work, change_rows};
use crate::{NewBody, PullSubscription, Pulled, StoreError, Topic, TopicMessage, TopicMessageDraft};

pub(super) const TOPIC: &str = "id, project_id, name, description, retention_ms, created_at";

pub(super) fn read_topic(row: &Row<'_>) -> Result<Topic, StoreError> {
    let mut at = Columns { row, next: 0 };
    Ok(Topic {
        id: TopicId::from_u128(at.id()?),
        project_id: ProjectId::from_u128(at.id()?),
        name: at.word(|text| TopicName::new(text).ok())?,
        description: at.take()?,
        retention: Wait::from_millis(unsigned(at.take()?)?),
        created_at: Timestamp::from_millis(at.take()?),
    })
}

pub(super) const SUBSCRIPTION: &str = "id, project_id, topic_id, name, redeliver_after_ms, created_at";

pub(super) fn read_subscription(row: &Row<'_>) -> Result<PullSubscription, StoreError> {
    let mut at = Columns { row, next: 0 };
    Ok(PullSubscription {
        id: SubscriptionId::from_u128(at.id()?),
        project_id: ProjectId::from_u128(at.id()?),
        topic_id: TopicId::from_u128(at.id()?),
        name: at.take()?,
        redeliver_after: Wait::from_millis(unsigned(at.take()?)?),
        created_at: Timestamp::from_millis(at.take()?),
    })
}

pub(super) const MESSAGE: &str = "m.sequence, m.id, m.cid, m.headers, m.published_at, b.bytes";

pub(super) fn read_message(row: &Row<'_>) -> Result<TopicMessage, StoreError> {
    let mut at = Columns { row, next: 0 };
    Ok(TopicMessage {
        sequence: at.take()?,
        id: EventId::from_u128(at.id()?),
        cid: Cid::from_stored(at.text()?),
        headers: from_json(at.text()?, "a message's headers")?,
        published_at: Timestamp::from_millis(at.take()?),
        body: Bytes::from(at.take::<Vec<u8>>()?),
    })
}

pub(super) fn find(work: &Work, project_id: ProjectId, name: &TopicName) -> Result<Option<TopicId>, StoreError> {
    work.first(
        "SELECT id FROM topic WHERE project_id = ?1 AND name = ?2",
        &[&key(project_id.as_u128()), &name.as_str()],
        |row| Ok(TopicId::from_u128(id_of(row.get(0)?))),
    )
}

pub(super) fn create(work: &Work, topic: &Topic) -> Result<(), StoreError> {
    require_project(work, topic.project_id)?;
    let known = work.first("SELECT 1 FROM topic WHERE id = ?1", &[&key(topic.id.as_u128())], |_| Ok(()))?;
    if known.is_some() || find(work, topic.project_id, &topic.name)?.is_some() {
        return Err(StoreError::Conflict(format!("there is a topic `{}` in this project already", topic.name)));
    }
    work.execute(
        &format!("INSERT INTO topic ({TOPIC}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
        &[
            &key(topic.id.as_u128()),
            &key(topic.project_id.as_u128()),
            &topic.name.as_str(),
            &topic.description,
            &signed(topic.retention.as_millis()),
            &topic.created_at.as_millis(),
        ],
    )?;
    Ok(())
}

/// With its subscriptions and messages.
pub(super) fn delete(work: &Work, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError> {
    let topic_id = find(work, project_id, name)?.ok_or(StoreError::NotFound { what: "topic" })?;
    let topic_key = key(topic_id.as_u128());
    work.execute(
        "DELETE FROM owed WHERE subscription_id IN (SELECT id FROM subscription WHERE topic_id = ?1)",
        &[&topic_key],
    )?;
    work.execute("DELETE FROM subscription WHERE topic_id = ?1", &[&topic_key])?;
    let used = work.all("SELECT body_id FROM topic_message WHERE topic_id = ?1", &[&topic_key], |row| {
        Ok(row.get::<_, [u8; 16]>(0)?)
    })?;
    work.execute("DELETE FROM topic_message WHERE topic_id = ?1", &[&topic_key])?;
    bodies::drop_uses(work, &used)?;
    work.execute("DELETE FROM topic WHERE id = ?1", &[&topic_key])?;
    Ok(())
}

pub(super) fn publish(
    work: &Work,
    project_id: ProjectId,
    message: &TopicMessageDraft,
    body: &NewBody,
) -> Result<(), StoreError> {
    work.space.check()?;
    let topic_id = find(work, project_id, &message.topic)?.ok_or(StoreError::NotFound { what: "topic" })?;
    bodies::add(work, &[body])?;
    append(work, topic_id, message, body.id)
}

/// Adds a message whose body has been counted, and owes it to every subscription that there is now.
pub(super) fn append(
    work: &Work,
    topic_id: TopicId,
    message: &TopicMessageDraft,
    body_id: BodyId,
) -> Result<(), StoreError> {
    let topic_key = key(topic_id.as_u128());
    work.execute(
        "INSERT INTO topic_message (topic_id, id, cid, headers, published_at, body_id, owing, project_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, \
         (SELECT count(*) FROM subscription WHERE topic_id = ?1), (SELECT project_id FROM topic WHERE id = ?1))",
        &[
            &topic_key,
            &key(message.id.as_u128()),
            &message.cid.as_str(),
            &json(&message.headers)?,
            &message.published_at.as_millis(),
            &key(body_id.as_u128()),
        ],
    )?;
    let sequence = work.connection.last_insert_rowid();
    work.execute(
        "INSERT INTO owed (subscription_id, sequence, due_at, times_given) SELECT id, ?2, ?3, 0 FROM subscription WHERE topic_id = ?1",
        &[&topic_key, &sequence, &i64::MIN],
    )?;
    Ok(())
}

pub(super) fn create_subscription(work: &Work, subscription: &PullSubscription) -> Result<(), StoreError> {
    let topic_key = key(subscription.topic_id.as_u128());
    if work.first("SELECT 1 FROM topic WHERE id = ?1", &[&topic_key], |_| Ok(()))?.is_none() {
        return Err(StoreError::NotFound { what: "topic" });
    }
    let taken = work.first(
        "SELECT 1 FROM subscription WHERE id = ?1 UNION ALL SELECT 1 FROM subscription WHERE topic_id = ?2 AND name = ?3",
        &[&key(subscription.id.as_u128()), &topic_key, &subscription.name],
        |_| Ok(()),
    )?;
    if taken.is_some() {
        return Err(StoreError::Conflict(format!("the topic has a subscription `{}` already", subscription.name)));
    }
    work.execute(
        &format!("INSERT INTO subscription ({SUBSCRIPTION}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
        &[
            &key(subscription.id.as_u128()),
            &key(subscription.project_id.as_u128()),
            &topic_key,
            &subscription.name,
            &signed(subscription.redeliver_after.as_millis()),
            &subscription.created_at.as_millis(),
        ],
    )?;
    Ok(())
}

pub(super) fn delete_subscription(work: &Work, id: SubscriptionId) -> Result<(), StoreError> {
    let id_key = key(id.as_u128());
    work.execute(
        "UPDATE topic_message SET owing = owing - 1 WHERE sequence IN (SELECT sequence FROM owed WHERE subscription_id = ?1)",
        &[&id_key],
    )?;
    work.execute("DELETE FROM owed WHERE subscription_id = ?1", &[&id_key])?;
    let gone = work.execute("DELETE FROM subscription WHERE id = ?1", &[&id_key])?;
    if gone == 0 { Err(StoreError::NotFound { what: "subscription" }) } else { Ok(()) }
}

pub(super) fn pull(
    work: &Work,
    id: SubscriptionId,
    now: Timestamp,
    messages_max: u32,
) -> Result<Vec<Pulled>, StoreError> {
    let id_key = key(id.as_u128());
    let redeliver_after = work
        .first("SELECT redeliver_after_ms FROM subscription WHERE id = ?1", &[&id_key], |row| {
            Ok(Wait::from_millis(unsigned(row.get(0)?)?))
        })?
        .ok_or(StoreError::NotFound { what: "subscription" })?;
    let sql = format!(
        "SELECT {MESSAGE}, o.times_given FROM owed AS o CROSS JOIN topic_message AS m ON m.sequence = o.sequence \
         CROSS JOIN body AS b ON b.id = m.body_id \
         WHERE o.subscription_id = ?1 AND o.due_at <= ?2 ORDER BY o.sequence LIMIT ?3"
    );
    let pulled = work.all(&sql, &[&id_key, &now.as_millis(), &messages_max], |row| {
        let times_given: u32 = row.get(6)?;
        Ok(Pulled { message: read_message(row)?, times_given: times_given.saturating_add(1) })
    })?;
    for one in &pulled {
        work.execute(
            "UPDATE owed SET due_at = ?3, times_given = times_given + 1 WHERE subscription_id = ?1 AND sequence = ?2",
            &[&id_key, &one.message.sequence, &(now + redeliver_after).as_millis()],
        )?;
    }
    Ok(pulled)
}

pub(super) fn acknowledge(work: &Work, id: SubscriptionId, messages: &[EventId]) -> Result<u64, StoreError> {
    let id_key = key(id.as_u128());
    let topic_key: [u8; 16] = work
        .first("SELECT topic_id FROM subscription WHERE id = ?1", &[&id_key], |row| Ok(row.get(0)?))?
        .ok_or(StoreError::NotFound { what: "subscription" })?;
    let mut done = Vec::new();
    for message in messages {
        let sequence: Option<i64> = work.first(
            "DELETE FROM owed WHERE subscription_id = ?1 AND sequence IN \
             (SELECT sequence FROM topic_message WHERE id = ?2 AND topic_id = ?3) RETURNING sequence",
            &[&id_key, &key(message.as_u128()), &topic_key],
            |row| Ok(row.get(0)?),
        )?;
        done.extend(sequence);
    }
    change_rows(work, "UPDATE topic_message SET owing = owing - 1 WHERE sequence IN ", &done)?;
    Ok(done.len() as u64)
}
