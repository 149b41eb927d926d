//! Cases of alerts (P09).

use bytes::Bytes;
use postrider_core::alert::{Alert, AlertKind};
use postrider_core::id::{AlertId, BodyId, Cid, EventId, TopicId};
use postrider_core::message::HeaderList;
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};

use super::TestStore;
use super::fixture::*;
use crate::*;

fn alert(world: &World<'_>, kind: AlertKind, raised_s: i64) -> Alert {
    let id = AlertId::new(at(raised_s), world.id());
    let (project_id, connection_id) = (Some(world.project_id), None);
    Alert { id, project_id, connection_id, kind, value: 61, threshold: 60, raised_at: at(raised_s), recovered_at: None }
}

fn crossing(world: &World<'_>, alert: &Alert) -> AlertWrite {
    let name = TopicName::new("postrider.alert").unwrap();
    let topic = Topic {
        id: TopicId::new(at(0), world.id()),
        project_id: world.project_id,
        name: name.clone(),
        description: String::new(),
        retention: Wait::from_secs(600),
        created_at: at(0),
    };
    let event = TopicMessageDraft {
        topic: name,
        id: EventId::new(at(0), world.id()),
        cid: Cid::new(at(0), 1),
        headers: HeaderList::default(),
        published_at: at(0),
    };
    let body = NewBody { id: BodyId::new(at(0), world.id()), bytes: Bytes::from_static(b"{}") };
    AlertWrite { alert: alert.clone(), topic, event, body }
}

async fn events(store: &dyn Store, world: &World<'_>) -> usize {
    let name = TopicName::new("postrider.alert").unwrap();
    let Some(topic) = store.topic(world.project_id, &name).await.unwrap() else { return 0 };
    store.topic_messages(&topic, PageRequest { limit: 100, cursor: None }).await.unwrap().items.len()
}

fn recovered(alert: &Alert, at: Timestamp) -> Alert {
    Alert { recovered_at: Some(at), ..alert.clone() }
}

pub async fn p09_a_crossing_is_written_once_with_its_event_and_survives_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let one = alert(&world, AlertKind::OldestWaiting, 1);
    assert!(store.write_alert(crossing(&world, &one)).await.unwrap());
    let again = alert(&world, AlertKind::OldestWaiting, 2);
    assert!(!store.write_alert(crossing(&world, &again)).await.unwrap(), "it is open already");
    assert!(store.write_alert(crossing(&world, &alert(&world, AlertKind::DiskLow, 3))).await.unwrap());
    assert_eq!(events(&*store, &world).await, 2, "no event without a crossing");
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(store.open_alerts().await.unwrap()[0], one);
    let gone = recovered(&one, at(9));
    assert!(store.write_alert(crossing(&world, &gone)).await.unwrap());
    assert!(!store.write_alert(crossing(&world, &gone)).await.unwrap(), "it has recovered already");
    assert!(store.write_alert(crossing(&world, &again)).await.unwrap(), "and may be raised anew");
    assert_eq!(events(&*store, &world).await, 4);
}

pub async fn p09_alerts_page_from_the_newest_and_old_ones_go(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let mut all = Vec::new();
    for second in 1..=5 {
        let raised = alert(&world, AlertKind::DeadLetters, second * 10);
        assert!(store.write_alert(crossing(&world, &raised)).await.unwrap());
        let gone = recovered(&raised, at(second * 10 + 5));
        assert!(store.write_alert(crossing(&world, &gone)).await.unwrap());
        all.insert(0, gone);
    }
    let page = |cursor| store.alerts(Some(world.project_id), None, PageRequest { limit: 3, cursor });
    let first = page(None).await.unwrap();
    let second = page(first.next_cursor.clone()).await.unwrap();
    assert_eq!([first.items, second.items].concat(), all);
    assert_eq!(second.next_cursor, None);
    assert_eq!(store.alerts(None, None, PageRequest { limit: 3, cursor: None }).await.unwrap().items, []);
    let open = alert(&world, AlertKind::DeadLetters, 90);
    assert!(store.write_alert(crossing(&world, &open)).await.unwrap());
    let of = async |open| {
        store.alerts(Some(world.project_id), Some(open), PageRequest { limit: 9, cursor: None }).await.unwrap().items
    };
    assert_eq!((of(true).await, of(false).await), (vec![open.clone()], all.clone()));
    all.insert(0, open);
    assert_eq!(store.prune_alerts(at(36), 2).await.unwrap(), 2);
    assert_eq!(store.prune_alerts(at(36), 2).await.unwrap(), 1);
    assert_eq!(store.prune_alerts(at(36), 2).await.unwrap(), 0);
    assert_eq!(page(None).await.unwrap().items, all[..3]);
}
