//! Cases of batches of changes to the configuration: all of them or none.

use postrider_core::Wait;
use postrider_core::connection::Connection;
use postrider_core::id::{ProjectId, SubscriptionId, TopicId};
use postrider_core::security::SecurityDefinition;
use postrider_core::source::Source;
use postrider_core::topic::TopicName;

use super::TestStore;
use super::fixture::*;
use super::security::definition;
use super::sources::source;
use crate::*;

/// Everything that the batch could have touched.
async fn seen(store: &dyn Store, project_id: ProjectId) -> impl PartialEq + std::fmt::Debug {
    let page = || PageRequest { limit: PAGE_ROWS_MAX, cursor: None };
    let topics = store.topics(project_id, page()).await.unwrap().items;
    let mut subscriptions = Vec::new();
    for topic in &topics {
        subscriptions.extend(store.subscriptions(topic).await.unwrap());
    }
    let summaries = store.queue_summaries(project_id).await.unwrap();
    let definitions = store.all_security().await.unwrap();
    (
        store.projects().await.unwrap(),
        (definitions, store.all_sources().await.unwrap()),
        store.all_connections().await.unwrap(),
        topics,
        subscriptions,
        summaries,
    )
}

fn topic(project_id: ProjectId, number: u128, name: &str) -> Topic {
    Topic {
        id: TopicId::from_u128(number),
        project_id,
        name: TopicName::new(name).unwrap(),
        description: "for tests".to_owned(),
        retention: Wait::from_secs(600),
        created_at: at(1),
    }
}

fn reader(topic: &Topic, number: u128, name: &str) -> PullSubscription {
    PullSubscription {
        id: SubscriptionId::from_u128(number),
        project_id: topic.project_id,
        topic_id: topic.id,
        name: name.to_owned(),
        redeliver_after: Wait::from_secs(30),
        created_at: at(1),
    }
}

fn boxed(connection: &Connection) -> Box<Connection> {
    Box::new(connection.clone())
}

pub async fn d18_a_batch_is_applied_in_its_order_and_survives_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let known = world.connection("billing", true).await;
    let waiting = world.stored(&known, 2).await;
    let project = Project {
        id: ProjectId::from_u128(77),
        name: "new".to_owned(),
        settings: ProjectSettings::default(),
        created_at: at(1),
    };
    let (orders, changed) = (topic(project.id, 1, "orders"), topic(world.project_id, 2, "lab"));
    store.create_topic(changed.clone()).await.unwrap();
    let audit = reader(&orders, 3, "audit");
    let shorter = Topic { description: String::new(), retention: Wait::from_secs(60), ..changed.clone() };
    let later = PullSubscription { redeliver_after: Wait::from_secs(5), ..audit.clone() };
    let renamed = Connection { name: "Rechnungen".to_owned(), version: 2, ..known.clone() };
    let mut fresh = Connection { project_id: project.id, ..world.connection_value("fresh", true) };
    fresh.written.insert("security".to_owned(), serde_json::json!("lab.sec"));
    fresh.spec.security = Some("lab.sec".to_owned());
    let definition = SecurityDefinition { project_id: project.id, ..definition(&world, 4, "lab.sec") };
    let sealed_anew = SecurityDefinition { sealed: "other".to_owned(), version: 2, ..definition.clone() };
    let settings = ProjectSettings { owner_email: Some("ada@example.org".to_owned()), ..ProjectSettings::default() };
    let owned = Project { settings, ..project.clone() };
    let incoming = source(&world, "github");
    let incoming_anew =
        SourceRow { source: Source { version: 2, ..incoming.source.clone() }, keys: SourceKeys::default() };
    let batch = vec![
        ConfigChange::CreateProject(project.clone()),
        ConfigChange::ReplaceProject { was: project.clone(), now: owned.clone() },
        ConfigChange::CreateSecurity(Box::new(definition)),
        ConfigChange::ReplaceSecurity { definition: Box::new(sealed_anew.clone()), version: 1 },
        ConfigChange::CreateTopic(orders.clone()),
        ConfigChange::CreateSubscription(audit.clone()),
        ConfigChange::ReplaceSubscription { was: audit, now: later.clone() },
        ConfigChange::ReplaceTopic { was: changed, now: shorter.clone() },
        ConfigChange::ReplaceConnection { connection: boxed(&renamed), version: 1 },
        ConfigChange::CreateConnection(boxed(&fresh)),
        ConfigChange::CreateSource(Box::new(incoming)),
        ConfigChange::ReplaceSource { row: Box::new(incoming_anew.clone()), version: 1 },
    ];
    store.configure(batch).await.unwrap();
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.project("new").await.unwrap(), Some(owned));
    assert_eq!(store.all_security().await.unwrap(), [sealed_anew]);
    assert_eq!(store.all_sources().await.unwrap(), [incoming_anew]);
    assert_eq!(store.subscriptions(&orders).await.unwrap(), [later]);
    assert_eq!(store.topic(shorter.project_id, &shorter.name).await.unwrap(), Some(shorter));
    assert_eq!(store.connection(known.id).await.unwrap(), Some(renamed.clone()));
    assert_eq!(store.connection(fresh.id).await.unwrap(), Some(fresh.clone()));
    let world = world.over(&*store);
    assert_eq!(world.line(&renamed).await, waiting, "its queue stays");
    world.stored(&fresh, 1).await;
}

pub async fn d18_one_refused_change_undoes_the_whole_batch(store: &dyn Store) {
    let world = World::new(store).await;
    let known = world.connection("billing", true).await;
    let lab = topic(world.project_id, 2, "lab");
    store.create_topic(lab.clone()).await.unwrap();
    let audit = reader(&lab, 3, "audit");
    store.create_subscription(audit.clone()).await.unwrap();
    let kept = definition(&world, 5, "kept.sec");
    store.create_security(&kept).await.unwrap();
    let incoming = source(&world, "github");
    store.configure(vec![ConfigChange::CreateSource(Box::new(incoming.clone()))]).await.unwrap();
    let default = store.projects().await.unwrap().swap_remove(0);
    let owned = |project: &Project| Project {
        settings: ProjectSettings { concurrency: Some(7), ..project.settings.clone() },
        ..project.clone()
    };
    let unknown = Project { id: ProjectId::from_u128(98), name: "unknown".to_owned(), ..default.clone() };
    let before = seen(store, world.project_id).await;

    let begins_well = |number: u128| {
        let project = Project {
            id: ProjectId::from_u128(number),
            name: "new".to_owned(),
            settings: ProjectSettings::default(),
            created_at: at(1),
        };
        let fresh = world.connection_value("fresh", true);
        let orders = topic(world.project_id, number, "orders");
        let other = Topic { description: "other".to_owned(), ..lab.clone() };
        let renamed = Connection { name: "Rechnungen".to_owned(), version: 2, ..known.clone() };
        vec![
            ConfigChange::CreateProject(project.clone()),
            ConfigChange::ReplaceProject { was: project.clone(), now: owned(&project) },
            ConfigChange::CreateSecurity(Box::new(definition(&world, number, "lab.sec"))),
            ConfigChange::CreateSource(Box::new(source(&world, "gitlab"))),
            ConfigChange::CreateTopic(orders.clone()),
            ConfigChange::CreateSubscription(reader(&orders, number, "audit")),
            ConfigChange::ReplaceTopic { was: lab.clone(), now: other },
            ConfigChange::CreateConnection(boxed(&fresh)),
            ConfigChange::ReplaceConnection { connection: boxed(&renamed), version: 1 },
        ]
    };
    let lost = topic(world.project_id, 99, "lost");
    let elsewhere = Topic { retention: Wait::from_secs(1), ..lab.clone() };
    let other_audit = PullSubscription { redeliver_after: Wait::from_secs(1), ..audit.clone() };
    let conflicts = [
        ConfigChange::CreateProject(Project {
            id: ProjectId::from_u128(9),
            name: "new".to_owned(),
            settings: ProjectSettings::default(),
            created_at: at(1),
        }),
        ConfigChange::ReplaceProject { was: owned(&default), now: default.clone() },
        ConfigChange::CreateSecurity(Box::new(definition(&world, 41, "lab.sec"))),
        ConfigChange::ReplaceSecurity { definition: Box::new(kept.clone()), version: 7 },
        ConfigChange::CreateSource(Box::new(source(&world, "github"))),
        ConfigChange::ReplaceSource { row: Box::new(incoming), version: 7 },
        ConfigChange::CreateConnection(boxed(&world.connection_value("fresh", true))),
        ConfigChange::ReplaceConnection { connection: boxed(&known), version: 1 },
        ConfigChange::CreateTopic(topic(world.project_id, 55, "lab")),
        ConfigChange::ReplaceTopic { was: elsewhere, now: lab.clone() },
        ConfigChange::CreateSubscription(reader(&lab, 56, "audit")),
        ConfigChange::ReplaceSubscription { was: other_audit, now: audit.clone() },
    ];
    for (number, bad) in (500..).zip(conflicts) {
        let mut batch = begins_well(number);
        batch.push(bad.clone());
        assert!(matches!(store.configure(batch).await, Err(StoreError::Conflict(_))), "{bad:?}");
        assert_eq!(seen(store, world.project_id).await, before, "{bad:?}");
    }
    let gone = [
        ConfigChange::ReplaceProject { was: unknown.clone(), now: unknown },
        ConfigChange::ReplaceSecurity { definition: Box::new(definition(&world, 97, "lost.sec")), version: 1 },
        ConfigChange::ReplaceSource { row: Box::new(source(&world, "lost")), version: 1 },
        ConfigChange::ReplaceTopic { was: lost.clone(), now: lost.clone() },
        ConfigChange::CreateSubscription(reader(&lost, 57, "audit")),
        ConfigChange::ReplaceSubscription { was: reader(&lost, 58, "x"), now: reader(&lost, 58, "x") },
    ];
    for (number, bad) in (600..).zip(gone) {
        let mut batch = begins_well(number);
        batch.push(bad.clone());
        assert!(matches!(store.configure(batch).await, Err(StoreError::NotFound { .. })), "{bad:?}");
        assert_eq!(seen(store, world.project_id).await, before, "{bad:?}");
    }
    store.configure(begins_well(700)).await.unwrap();
    store.configure(Vec::new()).await.unwrap();
}
