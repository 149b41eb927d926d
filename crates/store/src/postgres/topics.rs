//! Topics, their messages and the subscriptions that pull them. It must not know where a message comes from.
//!
//! Whoever adds a message shares the topic's row, and whoever changes its subscriptions has it alone: so each message is owed to exactly the
//! subscriptions that there are.

use postrider_core::id::{BodyId, Cid, EventId, ProjectId, SubscriptionId, TopicId};
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};
use tokio_postgres::Row;

use super::bodies;
use super::configuration::require_project;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::rows::{Cells, from_json, json, signed};
use super::work::Work;
use crate::{NewBody, PullSubscription, Pulled, StoreError, Topic, TopicMessage, TopicMessageDraft};

pub(super) const TOPIC: &str = "id, project_id, name, description, retention_ms, created_at";

pub(super) fn read_topic(row: &Row) -> Result<Topic, StoreError> {
    let mut at = Cells::of(row);
    Ok(Topic {
        id: TopicId::from_u128(at.id()?),
        project_id: ProjectId::from_u128(at.id()?),
        name: at.word(|text| TopicName::new(text).ok())?,
        description: at.take()?,
        retention: Wait::from_millis(at.count()?),
        created_at: at.time()?,
    })
}

pub(super) const SUBSCRIPTION: &str = "id, project_id, topic_id, name, redeliver_after_ms, created_at";

pub(super) fn read_subscription(row: &Row) -> Result<PullSubscription, StoreError> {
    let mut at = Cells::of(row);
    Ok(PullSubscription {
        id: SubscriptionId::from_u128(at.id()?),
        project_id: ProjectId::from_u128(at.id()?),
        topic_id: TopicId::from_u128(at.id()?),
        name: at.take()?,
        redeliver_after: Wait::from_millis(at.count()?),
        created_at: at.time()?,
    })
}

pub(super) const MESSAGE: &str = "m.sequence, m.id, m.cid, m.headers, m.published_at, b.bytes";

pub(super) fn read_message(row: &Row) -> Result<TopicMessage, StoreError> {
    read_message_at(&mut Cells::of(row))
}

fn read_message_at(at: &mut Cells<'_>) -> Result<TopicMessage, StoreError> {
    Ok(TopicMessage {
        sequence: at.take()?,
        id: EventId::from_u128(at.id()?),
        cid: Cid::from_stored(at.text()?),
        headers: from_json(at.text()?, "a message's headers")?,
        published_at: at.time()?,
        body: at.body()?,
    })
}

pub(super) async fn find(work: &Work, project_id: ProjectId, name: &TopicName) -> Outcome<Option<TopicId>> {
    lock(work, project_id, name, "FOR SHARE").await
}

async fn lock(work: &Work, project_id: ProjectId, name: &TopicName, how: &str) -> Outcome<Option<TopicId>> {
    let sql = format!("SELECT id FROM topic WHERE project_id = $1 AND name = $2 {how}");
    let params: [super::columns::Param<'_>; 2] = [&project_id.key(), &name.as_str()];
    work.first(&sql, &params, |row| Ok(TopicId::from_u128(Cells::of(row).id()?))).await
}

pub(super) async fn create(work: &Work, topic: &Topic) -> Outcome<()> {
    require_project(work, topic.project_id, "FOR SHARE").await?;
    let known = work.exists("SELECT 1 FROM topic WHERE id = $1", &[&topic.id.key()]).await?;
    if known || find(work, topic.project_id, &topic.name).await?.is_some() {
        let why = format!("there is a topic `{}` in this project already", topic.name);
        return Err(StoreError::Conflict(why).into());
    }
    let sql = format!("INSERT INTO topic ({TOPIC}) VALUES ($1, $2, $3, $4, $5, $6)");
    let params: [super::columns::Param<'_>; 6] = [
        &topic.id.key(),
        &topic.project_id.key(),
        &topic.name.as_str(),
        &topic.description,
        &signed(topic.retention.as_millis()),
        &topic.created_at.as_millis(),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

/// With its subscriptions and messages.
pub(super) async fn delete(work: &Work, project_id: ProjectId, name: &TopicName) -> Outcome<()> {
    let topic_id = lock(work, project_id, name, "FOR UPDATE").await?.ok_or(StoreError::NotFound { what: "topic" })?;
    let key = topic_id.key();
    let owed = "DELETE FROM owed WHERE subscription_id IN (SELECT id FROM subscription WHERE topic_id = $1)";
    work.execute(owed, &[&key]).await?;
    work.execute("DELETE FROM subscription WHERE topic_id = $1", &[&key]).await?;
    let messages = "DELETE FROM topic_message WHERE topic_id = $1 RETURNING body_id";
    let used: Vec<Key> = work.changed(messages, &[&key], |row| Cells::of(row).take()).await?;
    bodies::drop_uses(work, used).await?;
    work.execute("DELETE FROM topic WHERE id = $1", &[&key]).await?;
    Ok(())
}

pub(super) async fn publish(
    work: &Work,
    project_id: ProjectId,
    message: &TopicMessageDraft,
    body: &NewBody,
) -> Outcome<()> {
    let topic_id = find(work, project_id, &message.topic).await?.ok_or(StoreError::NotFound { what: "topic" })?;
    bodies::add(work, &[body]).await?;
    append(work, topic_id, message, body.id).await
}

/// Adds a message whose body has been counted, and owes it to every subscription that there is now.
pub(super) async fn append(
    work: &Work,
    topic_id: TopicId,
    message: &TopicMessageDraft,
    body_id: BodyId,
) -> Outcome<()> {
    let key = topic_id.key();
    let sql = "WITH message AS (INSERT INTO topic_message (topic_id, project_id, id, cid, headers, published_at, body_id, owing) \
         SELECT $1::uuid, (SELECT project_id FROM topic WHERE id = $1), $2::uuid, $3::text, $4::text, $5::bigint, $6::uuid, count(*) FROM subscription WHERE topic_id = $1 RETURNING sequence), \
         owed AS (INSERT INTO owed (subscription_id, sequence, due_at, times_given) \
         SELECT subscription.id, message.sequence, $7::bigint, 0 FROM subscription, message WHERE subscription.topic_id = $1) \
         SELECT sequence FROM message";
    let params: [super::columns::Param<'_>; 7] = [
        &key,
        &message.id.key(),
        &message.cid.as_str(),
        &json(&message.headers)?,
        &message.published_at.as_millis(),
        &body_id.key(),
        &i64::MIN,
    ];
    work.changed(sql, &params, |_| Ok(())).await?;
    Ok(())
}

pub(super) async fn create_subscription(work: &Work, subscription: &PullSubscription) -> Outcome<()> {
    let topic_key = subscription.topic_id.key();
    if !work.exists("SELECT 1 FROM topic WHERE id = $1 FOR UPDATE", &[&topic_key]).await? {
        return Err(StoreError::NotFound { what: "topic" }.into());
    }
    let taken = "SELECT 1 FROM subscription WHERE id = $1 OR (topic_id = $2 AND name = $3)";
    if work.exists(taken, &[&subscription.id.key(), &topic_key, &subscription.name]).await? {
        let why = format!("the topic has a subscription `{}` already", subscription.name);
        return Err(StoreError::Conflict(why).into());
    }
    let sql = format!("INSERT INTO subscription ({SUBSCRIPTION}) VALUES ($1, $2, $3, $4, $5, $6)");
    let params: [super::columns::Param<'_>; 6] = [
        &subscription.id.key(),
        &subscription.project_id.key(),
        &topic_key,
        &subscription.name,
        &signed(subscription.redeliver_after.as_millis()),
        &subscription.created_at.as_millis(),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

pub(super) async fn delete_subscription(work: &Work, id: SubscriptionId) -> Outcome<()> {
    let key = id.key();
    let topic = "SELECT 1 FROM topic WHERE id = (SELECT topic_id FROM subscription WHERE id = $1) FOR UPDATE";
    work.rows(topic, &[&key]).await?;
    let owed = "WITH gone AS (DELETE FROM owed WHERE subscription_id = $1 RETURNING sequence) \
         UPDATE topic_message SET owing = owing - 1 FROM gone WHERE topic_message.sequence = gone.sequence";
    work.execute(owed, &[&key]).await?;
    match work.execute("DELETE FROM subscription WHERE id = $1", &[&key]).await? {
        0 => Err(StoreError::NotFound { what: "subscription" }.into()),
        _ => Ok(()),
    }
}

/// Two who pull at once get different messages.
pub(super) async fn pull(work: &Work, id: SubscriptionId, now: Timestamp, messages_max: u32) -> Outcome<Vec<Pulled>> {
    let key = id.key();
    let redeliver_after = work
        .first("SELECT redeliver_after_ms FROM subscription WHERE id = $1", &[&key], |row| {
            Ok(Wait::from_millis(Cells::of(row).count()?))
        })
        .await?
        .ok_or(StoreError::NotFound { what: "subscription" })?;
    let sql = format!(
        "WITH due AS (SELECT sequence FROM owed WHERE subscription_id = $1 AND due_at <= $2 ORDER BY sequence LIMIT $3 \
         FOR UPDATE SKIP LOCKED), \
         given AS (UPDATE owed AS o SET due_at = $4, times_given = o.times_given + 1 FROM due \
         WHERE o.subscription_id = $1 AND o.sequence = due.sequence RETURNING o.sequence, o.times_given) \
         SELECT {MESSAGE}, given.times_given FROM given JOIN topic_message AS m ON m.sequence = given.sequence \
         JOIN body AS b ON b.id = m.body_id ORDER BY m.sequence"
    );
    let params: [super::columns::Param<'_>; 4] =
        [&key, &now.as_millis(), &i64::from(messages_max), &(now + redeliver_after).as_millis()];
    let read = |row: &Row| {
        let mut at = Cells::of(row);
        Ok(Pulled { message: read_message_at(&mut at)?, times_given: at.number()? })
    };
    work.changed(&sql, &params, read).await
}

pub(super) async fn acknowledge(work: &Work, id: SubscriptionId, messages: &[EventId]) -> Outcome<u64> {
    let key = id.key();
    let topic: Option<Key> =
        work.first("SELECT topic_id FROM subscription WHERE id = $1", &[&key], |row| Cells::of(row).take()).await?;
    let topic = topic.ok_or(StoreError::NotFound { what: "subscription" })?;
    let ids: Vec<Key> = messages.iter().map(|id| id.key()).collect();
    let sql = "WITH gone AS (DELETE FROM owed WHERE subscription_id = $1 AND sequence IN \
         (SELECT sequence FROM topic_message WHERE id = ANY($2) AND topic_id = $3) RETURNING sequence) \
         UPDATE topic_message SET owing = owing - 1 FROM gone WHERE topic_message.sequence = gone.sequence";
    work.execute(sql, &[&key, &ids, &topic]).await
}
