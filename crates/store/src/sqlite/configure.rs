//! A batch of changes to the configuration, in the one transaction of its call. It must not know where they come from.

use super::configuration::{self, create_connection, create_project, replace_connection};
use super::events;
use super::lookups::read_project;
use super::rows::{key, signed};
use super::security;
use super::sources;
use super::topics::{self, SUBSCRIPTION, TOPIC, create_subscription, read_subscription, read_topic};
use super::work::Work;
use crate::configure::ConfigChange;
use crate::{Project, PullSubscription, StoreError, Topic};

/// A refusal in the middle leaves changes behind, and then the whole transaction is rolled back.
pub(super) fn configure(work: &Work, batch: &[ConfigChange]) -> Result<(), StoreError> {
    batch.iter().try_for_each(|change| match change {
        ConfigChange::CreateProject(project) => create_project(work, project),
        ConfigChange::ReplaceProject { was, now } => replace_project(work, was, now),
        ConfigChange::CreateSecurity(definition) => security::create(work, definition),
        ConfigChange::ReplaceSecurity { definition, version } => security::replace(work, definition, *version),
        ConfigChange::CreateConnection(connection) => create_connection(work, connection),
        ConfigChange::ReplaceConnection { connection, version } => replace_connection(work, connection, *version),
        ConfigChange::CreateTopic(topic) => topics::create(work, topic),
        ConfigChange::ReplaceTopic { was, now } => replace_topic(work, was, now),
        ConfigChange::CreateSource(row) => sources::create(work, row),
        ConfigChange::ReplaceSource { row, version } => sources::replace(work, row, *version),
        ConfigChange::CreatePush(subscription) => events::create_push(work, subscription),
        ConfigChange::ReplacePush { subscription, version } => events::replace_push(work, subscription, *version),
        ConfigChange::CreateSubscription(subscription) => create_subscription(work, subscription),
        ConfigChange::ReplaceSubscription { was, now } => replace_subscription(work, was, now),
    })
}

fn replace_project(work: &Work, was: &Project, now: &Project) -> Result<(), StoreError> {
    let id = key(was.id.as_u128());
    let sql = "SELECT id, name, settings, created_at FROM project WHERE id = ?1";
    let stored = work.first(sql, &[&id], read_project)?.ok_or(StoreError::NotFound { what: "project" })?;
    if stored != *was {
        return Err(StoreError::Conflict(format!("the project `{}` has changed meanwhile", was.name)));
    }
    configuration::replace_project(work, now)
}

fn replace_topic(work: &Work, was: &Topic, now: &Topic) -> Result<(), StoreError> {
    let id = key(was.id.as_u128());
    let stored = work
        .first(&format!("SELECT {TOPIC} FROM topic WHERE id = ?1"), &[&id], read_topic)?
        .ok_or(StoreError::NotFound { what: "topic" })?;
    if stored != *was {
        return Err(StoreError::Conflict(format!("the topic `{}` has changed meanwhile", was.name)));
    }
    work.execute(
        "UPDATE topic SET description = ?2, retention_ms = ?3 WHERE id = ?1",
        &[&id, &now.description, &signed(now.retention.as_millis())],
    )?;
    Ok(())
}

fn replace_subscription(work: &Work, was: &PullSubscription, now: &PullSubscription) -> Result<(), StoreError> {
    let id = key(was.id.as_u128());
    let stored = work
        .first(&format!("SELECT {SUBSCRIPTION} FROM subscription WHERE id = ?1"), &[&id], read_subscription)?
        .ok_or(StoreError::NotFound { what: "subscription" })?;
    if stored != *was {
        return Err(StoreError::Conflict(format!("the subscription `{}` has changed meanwhile", was.name)));
    }
    work.execute(
        "UPDATE subscription SET redeliver_after_ms = ?2 WHERE id = ?1",
        &[&id, &signed(now.redeliver_after.as_millis())],
    )?;
    Ok(())
}
