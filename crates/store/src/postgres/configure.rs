//! A batch of changes to the configuration, in the one transaction of its call. It must not know where they come from.

use super::configuration::{self, create_connection, create_project, replace_connection};
use super::events;
use super::failures::Outcome;
use super::key::Id as _;
use super::lookups::read_project;
use super::rows::signed;
use super::security;
use super::sources;
use super::topics::{self, SUBSCRIPTION, TOPIC, create_subscription, read_subscription, read_topic};
use super::work::Work;
use crate::configure::ConfigChange;
use crate::{Project, PullSubscription, StoreError, Topic};

/// A refusal in the middle leaves changes behind, and then the whole transaction is rolled back.
pub(super) async fn configure(work: &Work, batch: &[ConfigChange]) -> Outcome<()> {
    for change in batch {
        match change {
            ConfigChange::CreateProject(project) => create_project(work, project).await?,
            ConfigChange::ReplaceProject { was, now } => replace_project(work, was, now).await?,
            ConfigChange::CreateSecurity(definition) => security::create(work, definition).await?,
            ConfigChange::ReplaceSecurity { definition, version } => {
                security::replace(work, definition, *version).await?
            }
            ConfigChange::CreateConnection(connection) => create_connection(work, connection).await?,
            ConfigChange::ReplaceConnection { connection, version } => {
                replace_connection(work, connection, *version).await?;
            }
            ConfigChange::CreateTopic(topic) => topics::create(work, topic).await?,
            ConfigChange::ReplaceTopic { was, now } => replace_topic(work, was, now).await?,
            ConfigChange::CreateSource(row) => sources::create(work, row).await?,
            ConfigChange::ReplaceSource { row, version } => sources::replace(work, row, *version).await?,
            ConfigChange::CreatePush(subscription) => events::create_push(work, subscription).await?,
            ConfigChange::ReplacePush { subscription, version } => {
                events::replace_push(work, subscription, *version).await?;
            }
            ConfigChange::CreateSubscription(subscription) => create_subscription(work, subscription).await?,
            ConfigChange::ReplaceSubscription { was, now } => replace_subscription(work, was, now).await?,
        }
    }
    Ok(())
}

async fn replace_project(work: &Work, was: &Project, now: &Project) -> Outcome<()> {
    let sql = "SELECT id, name, settings, created_at FROM project WHERE id = $1 FOR UPDATE";
    let stored = work.first(sql, &[&was.id.key()], read_project).await?;
    if stored.ok_or(StoreError::NotFound { what: "project" })? != *was {
        return Err(StoreError::Conflict(format!("the project `{}` has changed meanwhile", was.name)).into());
    }
    configuration::replace_project(work, now).await
}

async fn replace_topic(work: &Work, was: &Topic, now: &Topic) -> Outcome<()> {
    let id = was.id.key();
    let stored = work.first(&format!("SELECT {TOPIC} FROM topic WHERE id = $1 FOR UPDATE"), &[&id], read_topic).await;
    if stored?.ok_or(StoreError::NotFound { what: "topic" })? != *was {
        return Err(StoreError::Conflict(format!("the topic `{}` has changed meanwhile", was.name)).into());
    }
    let sql = "UPDATE topic SET description = $2, retention_ms = $3 WHERE id = $1";
    work.execute(sql, &[&id, &now.description, &signed(now.retention.as_millis())]).await?;
    Ok(())
}

async fn replace_subscription(work: &Work, was: &PullSubscription, now: &PullSubscription) -> Outcome<()> {
    let id = was.id.key();
    let sql = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE id = $1 FOR UPDATE");
    let stored = work.first(&sql, &[&id], read_subscription).await?;
    if stored.ok_or(StoreError::NotFound { what: "subscription" })? != *was {
        return Err(StoreError::Conflict(format!("the subscription `{}` has changed meanwhile", was.name)).into());
    }
    let sql = "UPDATE subscription SET redeliver_after_ms = $2 WHERE id = $1";
    work.execute(sql, &[&id, &signed(now.redeliver_after.as_millis())]).await?;
    Ok(())
}
