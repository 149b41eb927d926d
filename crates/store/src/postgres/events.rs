//! Messages with their deliveries, and the subscriptions that push. It must not know which subscriptions a message matches.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::id::{Cid, ConnectionId, EventId, ProjectId, SubscriptionId};
use postrider_core::subscription::{PushSpec, PushSubscription};
use postrider_core::topic::TopicName;
use tokio_postgres::Row;

use super::columns::Param;
use super::configuration::{require_project, set_value};
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::listing::{BAD_CURSOR, cut, room_of, rows_of};
use super::rows::{Cells, from_json, json, signed};
use super::work::Work;
use super::{PostgresStore, bodies, intake, topics};
use crate::kept_programs::{KeptProgram, PREFIX};
use crate::{
    Enqueued, EventFilter, Events, NewDelivery, NewEvent, Page, PageRequest, PublishedEvent, StoreError,
    StoreRead as _, StoredEvent, Topic,
};

#[async_trait]
impl Events for PostgresStore {
    async fn publish_event(&self, event: NewEvent) -> Result<PublishedEvent, StoreError> {
        self.write(event, |work, event| publish(work, event).boxed()).await
    }

    async fn events(
        &self,
        project_id: ProjectId,
        filter: &EventFilter,
        page: PageRequest,
    ) -> Result<Page<StoredEvent>, StoreError> {
        let data = (project_id, filter.clone(), page);
        self.read(data, |work, (project, filter, page)| list(work, *project, filter, page).boxed()).await
    }

    async fn event(&self, project_id: ProjectId, id: EventId) -> Result<Option<StoredEvent>, StoreError> {
        self.read((project_id, id), |work, (project, id)| one(work, *project, *id).boxed()).await
    }

    async fn all_push_subscriptions(&self) -> Result<Vec<PushSubscription>, StoreError> {
        self.read((), |work, ()| all_push(work).boxed()).await
    }

    async fn kept_program(&self, of: SubscriptionId) -> Result<Option<String>, StoreError> {
        let written = self.value(&KeptProgram::name(of)).await?;
        Ok(written.map(|written| KeptProgram::read(&written)).transpose()?.map(|kept| kept.program))
    }

    async fn prune_kept_programs(&self, kept_before: Timestamp) -> Result<u64, StoreError> {
        let unneeded = self.read(kept_before, |work, before| unneeded_programs(work, *before).boxed()).await?;
        if unneeded.is_empty() {
            return Ok(0);
        }
        self.write(unneeded, |work, names| forget_programs(work, names).boxed()).await
    }
}

pub(super) async fn publish(work: &Work, event: &NewEvent) -> Outcome<PublishedEvent> {
    if event.id_is_given {
        // Two who publish the same id at once take turns.
        #[allow(clippy::cast_possible_truncation, reason = "any 64 bits of it will do")]
        let turn = (event.message.id.as_u128() ^ event.project_id.as_u128()) as i64;
        work.rows("SELECT pg_advisory_xact_lock($1)", &[&turn]).await?;
        let known = "SELECT 1 FROM topic_message WHERE id = $1 AND project_id = $2";
        if work.exists(known, &[&event.message.id.key(), &event.project_id.key()]).await? {
            return Ok(PublishedEvent::Repeated);
        }
    }
    let known = topics::find(work, event.project_id, &event.message.topic).await?;
    if known.is_none() && event.new_topic.is_none() {
        return Err(StoreError::NotFound { what: "topic" }.into());
    }
    // Before anything is written, so that a refusal undoes nothing of the calls that share the transaction.
    intake::check_room(work, &event.deliveries).await?;
    if let (None, Some(topic)) = (known, &event.new_topic) {
        make_topic(work, topic).await?;
    }
    let topic_id = topics::find(work, event.project_id, &event.message.topic).await?;
    let topic_id = topic_id.ok_or(StoreError::NotFound { what: "topic" })?;
    bodies::add(work, &[&event.body]).await?;
    topics::append(work, topic_id, &event.message, event.body.id).await?;
    let deliveries: Vec<&NewDelivery> = event.deliveries.iter().collect();
    if deliveries.is_empty() {
        return Ok(PublishedEvent::Stored(Vec::new()));
    }
    let answers = intake::enqueue(work, &deliveries).await?;
    // Somebody else took the room since it was looked at.
    match answers.iter().find_map(|answer| if let Enqueued::Full { limit } = answer { Some(*limit) } else { None }) {
        Some(limit) => Err(StoreError::Full { limit }.into()),
        None => Ok(PublishedEvent::Stored(answers)),
    }
}

/// Another server may make the same one at this moment: then that one is it.
async fn make_topic(work: &Work, topic: &Topic) -> Outcome<()> {
    require_project(work, topic.project_id, "FOR SHARE").await?;
    let sql = "INSERT INTO topic (id, project_id, name, description, retention_ms, created_at) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (project_id, name) DO NOTHING";
    let params: [Param<'_>; 6] = [
        &topic.id.key(),
        &topic.project_id.key(),
        &topic.name.as_str(),
        &topic.description,
        &signed(topic.retention.as_millis()),
        &topic.created_at.as_millis(),
    ];
    work.execute(sql, &params).await?;
    Ok(())
}

const COLUMNS: &str = "m.sequence, m.id, t.name, m.cid, m.headers, m.published_at, b.bytes";
const SOURCE: &str = "FROM topic_message AS m JOIN topic AS t ON t.id = m.topic_id JOIN body AS b ON b.id = m.body_id";

fn read_event(row: &Row) -> Result<(i64, StoredEvent), StoreError> {
    let mut at = Cells::of(row);
    let sequence = at.take()?;
    let event = StoredEvent {
        id: EventId::from_u128(at.id()?),
        topic: at.word(|text| TopicName::new(text).ok())?,
        cid: Cid::from_stored(at.text()?),
        headers: from_json(at.text()?, "a message's headers")?,
        published_at: at.time()?,
        body: at.body()?,
    };
    Ok((sequence, event))
}

async fn one(work: &Work, project_id: ProjectId, id: EventId) -> Outcome<Option<StoredEvent>> {
    let sql = format!("SELECT {COLUMNS} {SOURCE} WHERE m.id = $1 AND m.project_id = $2 ORDER BY m.sequence LIMIT 1");
    work.first(&sql, &[&id.key(), &project_id.key()], |row| Ok(read_event(row)?.1)).await
}

/// The sequence gives the order; times narrow it down and are as good as in that order.
async fn list(
    work: &Work,
    project_id: ProjectId,
    filter: &EventFilter,
    page: &PageRequest,
) -> Outcome<Page<StoredEvent>> {
    let before = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("e.").and_then(|text| text.parse::<i64>().ok()).ok_or(BAD_CURSOR)?,
        None => i64::MAX,
    };
    let (scope, scope_key) = match &filter.topic {
        None => ("m.project_id", project_id.key()),
        Some(name) => {
            let sql = "SELECT id FROM topic WHERE project_id = $1 AND name = $2";
            let params: [Param<'_>; 2] = [&project_id.key(), &name.as_str()];
            let Some(topic) = work.first(sql, &params, |row| Cells::of(row).take()).await? else {
                return Ok(Page { items: Vec::new(), next_cursor: None });
            };
            ("m.topic_id", topic)
        }
    };
    let sql = format!(
        "SELECT {COLUMNS} {SOURCE} WHERE {scope} = $1 AND m.sequence < $2 AND m.published_at >= $3 AND m.published_at < $4 \
         ORDER BY m.sequence DESC LIMIT $5"
    );
    let from = filter.from.map_or(i64::MIN, Timestamp::as_millis);
    let until = filter.before.map_or(i64::MAX, Timestamp::as_millis);
    let params: [Param<'_>; 5] = [&scope_key, &before, &from, &until, &room_of(page)];
    let found = work.all(&sql, &params, read_event).await?;
    let cut = cut(found, rows_of(page), |(sequence, _)| format!("e.{sequence}"));
    Ok(Page { items: cut.items.into_iter().map(|(_, event)| event).collect(), next_cursor: cut.next_cursor })
}

const PUSH: &str = "id, project_id, name, connection_id, written, version, created_at, updated_at";

async fn all_push(work: &Work) -> Outcome<Vec<PushSubscription>> {
    work.all(&format!("SELECT {PUSH} FROM push_subscription ORDER BY id"), &[], read_push).await
}

fn read_push(row: &Row) -> Result<PushSubscription, StoreError> {
    let mut at = Cells::of(row);
    let (id, project_id) = (SubscriptionId::from_u128(at.id()?), ProjectId::from_u128(at.id()?));
    let name: String = at.take()?;
    let connection_id = ConnectionId::from_u128(at.id()?);
    let written = from_json(at.text()?, "a subscription")?;
    let spec = PushSpec::parse(&written).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StoreError::Corrupt(format!("the subscription `{name}`: {}", errors.join("; ")))
    })?;
    let (version, created_at, updated_at) = (at.number()?, at.time()?, at.time()?);
    Ok(PushSubscription { id, project_id, name, connection_id, written, spec, version, created_at, updated_at })
}

pub(super) async fn create_push(work: &Work, subscription: &PushSubscription) -> Outcome<()> {
    work.tell_of_configuration();
    require_connection(work, subscription).await?;
    refuse_taken_name(work, subscription).await?;
    if work.exists("SELECT 1 FROM push_subscription WHERE id = $1", &[&subscription.id.key()]).await? {
        return Err(StoreError::Conflict(format!("there is a subscription {} already", subscription.id)).into());
    }
    let sql = format!("INSERT INTO push_subscription ({PUSH}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
    let params: [Param<'_>; 8] = [
        &subscription.id.key(),
        &subscription.project_id.key(),
        &subscription.name,
        &subscription.connection_id.key(),
        &json(&subscription.written)?,
        &i64::from(subscription.version),
        &subscription.created_at.as_millis(),
        &subscription.updated_at.as_millis(),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

pub(super) async fn replace_push(work: &Work, subscription: &PushSubscription, version: u32) -> Outcome<()> {
    work.tell_of_configuration();
    require_connection(work, subscription).await?;
    let id = subscription.id.key();
    let sql = "SELECT version FROM push_subscription WHERE id = $1 FOR UPDATE";
    let stored = work.first(sql, &[&id], |row| Cells::of(row).number::<u32>()).await?;
    let stored = stored.ok_or(StoreError::NotFound { what: "subscription" })?;
    if stored != version {
        let why = format!("the subscription `{}` has changed meanwhile: version {stored}", subscription.name);
        return Err(StoreError::Conflict(why).into());
    }
    refuse_taken_name(work, subscription).await?;
    let sql = "UPDATE push_subscription SET name = $2, connection_id = $3, written = $4, version = $5, updated_at = $6 WHERE id = $1";
    let params: [Param<'_>; 6] = [
        &id,
        &subscription.name,
        &subscription.connection_id.key(),
        &json(&subscription.written)?,
        &i64::from(subscription.version),
        &subscription.updated_at.as_millis(),
    ];
    work.execute(sql, &params).await?;
    Ok(())
}

pub(super) async fn delete_push(work: &Work, id: SubscriptionId, now: Timestamp) -> Outcome<()> {
    match delete_push_where(work, "id", id.key(), now).await? {
        0 => Err(StoreError::NotFound { what: "subscription" }.into()),
        _ => Ok(()),
    }
}

/// With their connection.
pub(super) async fn delete_push_to(work: &Work, connection: ConnectionId, now: Timestamp) -> Outcome<()> {
    delete_push_where(work, "connection_id", connection.key(), now).await.map(drop)
}

async fn delete_push_where(work: &Work, column: &str, is: Key, now: Timestamp) -> Outcome<usize> {
    work.tell_of_configuration();
    let sql = format!("DELETE FROM push_subscription WHERE {column} = $1 RETURNING {PUSH}");
    let going = work.changed(&sql, &[&is], read_push).await?;
    for subscription in &going {
        if let Some((name, written)) = KeptProgram::of(subscription, now)? {
            set_value(work, &name, Some(&written)).await?;
        }
    }
    Ok(going.len())
}

async fn forget_programs(work: &Work, names: &[String]) -> Outcome<u64> {
    work.execute("DELETE FROM value WHERE name = ANY($1)", &[&names]).await
}

/// The names of those kept before that time that nothing refers to any more. What is gone gets no new deliveries, so none can come later.
async fn unneeded_programs(work: &Work, kept_before: Timestamp) -> Outcome<Vec<String>> {
    let all = "SELECT name, value FROM value WHERE starts_with(name, $1)";
    let kept = work
        .all(all, &[&PREFIX], |row| {
            let mut at = Cells::of(row);
            let (name, written): (String, String) = (at.take()?, at.take()?);
            Ok(KeptProgram::kept_before(&name, &written, kept_before)?.map(|of| (of, name)))
        })
        .await?;
    let kept: Vec<(SubscriptionId, String)> = kept.into_iter().flatten().collect();
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Key> = kept.iter().map(|(of, _)| of.key()).collect();
    let used = "SELECT subscription_id FROM delivery WHERE subscription_id = ANY($1) \
                UNION SELECT subscription_id FROM delivery_log WHERE subscription_id = ANY($1)";
    let used = work.all(used, &[&ids], |row| Ok(SubscriptionId::from_u128(Cells::of(row).id()?))).await?;
    Ok(kept.into_iter().filter(|(of, _)| !used.contains(of)).map(|(_, name)| name).collect())
}

async fn require_connection(work: &Work, subscription: &PushSubscription) -> Outcome<()> {
    let sql = "SELECT 1 FROM connection WHERE id = $1 AND project_id = $2 FOR SHARE";
    if work.exists(sql, &[&subscription.connection_id.key(), &subscription.project_id.key()]).await? {
        return Ok(());
    }
    Err(StoreError::NotFound { what: "connection" }.into())
}

async fn refuse_taken_name(work: &Work, subscription: &PushSubscription) -> Outcome<()> {
    let sql = "SELECT 1 FROM push_subscription WHERE project_id = $1 AND name = $2 AND id <> $3";
    let params: [Param<'_>; 3] = [&subscription.project_id.key(), &subscription.name, &subscription.id.key()];
    if work.exists(sql, &params).await? {
        let why = format!("there is a subscription `{}` in this project already", subscription.name);
        return Err(StoreError::Conflict(why).into());
    }
    Ok(())
}
