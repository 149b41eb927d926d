//! Every hot verb and every listing goes along an index: no table is read whole, and nothing is sorted on the way.

use postrider_core::Failure;
use postrider_core::delivery::{Label, Origin, Progress, Status};
use postrider_core::id::{DeliveryId, JobId, ProjectId, SubscriptionId};
use postrider_core::job::JobAct;

use super::InFile;
use crate::conformance::fixture::{World, at};
use crate::sqlite::filter::Conditions;
use crate::sqlite::streams::{self, Order, Stream};
use crate::sqlite::{SqliteStore, audit, health, jobs, listing, lookups, ownership, settle, window};
use crate::{
    AuditFilter, CountColumn, CountRange, DeadLetterFilter, DeliveryFilter, Guard, JobScope, Jobs, NewJob, PageRequest,
    StoreError, StoreLimits, StoreRead, TimeColumn, TimeRange,
};

async fn plan(store: &SqliteStore, sql: String) -> Vec<String> {
    store
        .read(move |connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<Result<_, _>>()?;
            Ok(steps)
        })
        .await
        .unwrap()
}

/// Fails on a scan of anything but `allowed`, and on a sort.
async fn assert_indexed(store: &SqliteStore, sql: String, allowed: &[&str]) {
    let steps = plan(store, sql.clone()).await;
    assert!(!steps.is_empty());
    for step in &steps {
        let scans = step.starts_with("SCAN") && !allowed.iter().any(|table| step.starts_with(&format!("SCAN {table}")));
        assert!(!scans && !step.contains("TEMP B-TREE"), "{sql}\n{steps:#?}");
    }
}

async fn assert_stream(store: &SqliteStore, stream: &Stream, conditions: &Conditions) {
    for order in [Order::NewestFirst, Order::OldestFirst] {
        assert_indexed(store, stream.rows_sql(conditions, order), &[]).await;
        assert_indexed(store, stream.place_sql(order), &[]).await;
    }
    assert_indexed(store, stream.count_sql(conditions), &[]).await;
}

async fn every_filter(store: &SqliteStore) {
    let world = World::new(store).await;
    let connection = world.connection("listed", true).await;
    world.stored(&connection, 1).await;
    let scopes = [(None, None), (Some(world.project_id), None), (Some(world.project_id), Some(connection.id))];
    for (project_id, connection_id) in scopes {
        for statuses in [vec![], vec![Status::Pending], vec![Status::Dlq, Status::Failed], vec![Status::Success]] {
            for failure in [None, Some(Failure::Timeout)] {
                let filter = DeliveryFilter {
                    project_id,
                    connection_id,
                    statuses: statuses.clone(),
                    failure,
                    ..Default::default()
                };
                let streams = {
                    let filter = filter.clone();
                    store.read(move |connection| streams::of_filter(connection, &filter)).await.unwrap()
                };
                assert!(!streams.is_empty());
                for stream in streams {
                    assert_stream(store, &stream, &Conditions::of(&filter)).await;
                }
            }
        }
    }
}

/// One filter a condition, and for each that every stream of it is read along an index in the order of the list, in either direction.
async fn every_column(store: &SqliteStore) {
    let world = World::named(store, 7, "searched").await;
    let connection = world.connection("searched", true).await;
    world.stored(&connection, 1).await;
    let all = DeliveryFilter { project_id: Some(world.project_id), ..Default::default() };
    let times =
        [TimeColumn::LastAttempt, TimeColumn::NextAttempt, TimeColumn::Delivered, TimeColumn::Dead, TimeColumn::Ended];
    let counts = [CountColumn::Attempts, CountColumn::Rounds, CountColumn::BodyBytes, CountColumn::DlqRetries];
    let text = |text: &str| Some(text.to_owned());
    let mut filters = vec![
        DeliveryFilter { id: Some(DeliveryId::from_u128(1)), ..all.clone() },
        DeliveryFilter { cid: text("order 7"), ..all.clone() },
        DeliveryFilter { cid: text("20260312-120534-7301-7f2c0e51a"), ..all.clone() },
        DeliveryFilter { event_type: text("a"), ..all.clone() },
        DeliveryFilter { subscription_id: Some(SubscriptionId::from_u128(1)), ..all.clone() },
        DeliveryFilter { label: Some(Label::Retrying), ..all.clone() },
        DeliveryFilter { origin: Some(Origin::Event), ..all.clone() },
        DeliveryFilter { method: text("GET"), ..all.clone() },
        DeliveryFilter { path: text("/x"), ..all.clone() },
        DeliveryFilter { error_text: text("disk"), ..all.clone() },
        DeliveryFilter { edited: Some(true), ..all.clone() },
        DeliveryFilter { statuses: vec![Status::Expired], error_text: text("x"), cid: text("y"), ..all.clone() },
    ];
    filters.extend(times.map(|column| DeliveryFilter {
        times: vec![TimeRange { column, from: Some(at(1)), before: Some(at(9)) }],
        ..all.clone()
    }));
    filters.extend(counts.map(|column| DeliveryFilter {
        counts: vec![CountRange { column, min: Some(1), max: Some(9) }],
        ..all.clone()
    }));
    let queue = crate::sqlite::rows::key(connection.id.as_u128());
    for filter in filters {
        let asked = filter.clone();
        let mut found = store.read(move |connection| streams::of_filter(connection, &asked)).await.unwrap();
        // As a job walks, of which all but what came later is left out.
        found.extend(streams::of_one_queue(&filter, queue).into_iter().map(|stream| stream.there_at(at(5))));
        assert!(!found.is_empty());
        for stream in found {
            assert_stream(store, &stream, &Conditions::of(&filter)).await;
        }
    }
}

/// A filter that lets nothing through looks at so many rows a page, and says where it stopped.
#[tokio::test]
async fn what_is_found_nowhere_is_looked_for_in_bounded_pieces() {
    let limits = StoreLimits { queue_messages_max: 100_000, queue_bytes_max: 1 << 30 };
    let made = InFile::new(limits, true);
    let store = made.sqlite();
    let world = World::new(&*store).await;
    let connection = world.connection("long", true).await;
    let stored = world.stored(&connection, 25_000).await;
    let lease = world.owner(&connection, 30_000).await;
    let oldest = world.delivery(stored[0]).await.progress;
    let told = crate::conformance::fixture::ended(oldest, Status::Pending, at(1));
    let told = Progress { error: Some("needle".to_owned()), ..told };
    world.settle(world.decision(stored[0], Guard::Lease(lease), told).await).await;
    let mut filter = DeliveryFilter { project_id: Some(world.project_id), ..Default::default() };
    filter.error_text = Some("needle".to_owned());
    let (mut pages, mut found, mut cursor) = (0, Vec::new(), None);
    loop {
        let page = store.deliveries(&filter, PageRequest { limit: 50, cursor }).await.unwrap();
        pages += 1;
        found.extend(page.items.iter().map(|delivery| delivery.id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, [stored[0]]);
    assert!((2..=15).contains(&pages), "{pages} pages: not bounded, or too small");
    filter.error_text = Some("haystack".to_owned());
    let scope = JobScope::Filter(Box::new(filter));
    let new = NewJob {
        id: JobId::from_u128(1),
        project_id: world.project_id,
        act: JobAct::Discard,
        scope,
        ids: Vec::new(),
        who: "admin".to_owned(),
        created_at: at(40_000),
    };
    store.create_job(new, 1).await.unwrap();
    let mut job = store.job(JobId::from_u128(1)).await.unwrap().unwrap();
    let mut pieces = 0;
    loop {
        let items = store.job_items(&job, 256).await.unwrap();
        assert!(items.items.is_empty());
        pieces += 1;
        job.cursor = items.cursor;
        if items.ended {
            break;
        }
    }
    assert!((4..=20).contains(&pieces), "{pieces} pieces");
}

async fn every_filter_of_the_audit_log(store: &SqliteStore) {
    for bits in 0..8_u32 {
        let filter = AuditFilter {
            project_id: (bits & 1 != 0).then_some(ProjectId::from_u128(1)),
            actor: (bits & 2 != 0).then(|| "key_a".to_owned()),
            action: Some("connection".to_owned()),
            object: (bits & 4 != 0).then(|| "con_a".to_owned()),
            ..Default::default()
        };
        assert_indexed(store, audit::list_sql(&filter), &[]).await;
    }
}

async fn endpoints_that_fail(store: &SqliteStore) {
    for (sql, index) in [(health::failing_sql(), "endpoint_failing"), (health::untold_sql(), "endpoint_untold")] {
        let steps = plan(store, sql).await;
        assert!(steps.len() == 1 && steps[0].contains(index), "{steps:?}");
    }
}

#[tokio::test]
async fn every_hot_verb_and_every_listing_goes_along_an_index() {
    let made = InFile::new(StoreLimits::default(), false);
    let store = made.sqlite();
    every_filter(&store).await;
    every_column(&store).await;
    endpoints_that_fail(&store).await;
    every_filter_of_the_audit_log(&store).await;
    let plain = [
        window::load_sql(),
        window::claim_sql(),
        window::NEXT_DUE_SQL.to_owned(),
        ownership::HAS_CLAIMS_SQL.to_owned(),
        ownership::HAS_COMMANDS_SQL.to_owned(),
        listing::line_sql(),
        listing::due_sql(),
        jobs::page_sql(),
        lookups::dead_letter_sql("*", DeadLetterFilter::default()),
        lookups::dead_letter_sql("dead_at", DeadLetterFilter { dlq_retries_below: Some(3), leave_out_aged: true }),
        format!("{} WHERE id = ?1", lookups::SUMMARY_SQL),
        format!("{} WHERE project_id = ?1 ORDER BY id", lookups::SUMMARY_SQL),
        "SELECT count(*) FROM job WHERE project_id = ?1 AND ended_at IS NULL".to_owned(),
        "SELECT id FROM job WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2".to_owned(),
        "SELECT delivery_id FROM job_item WHERE job_id = ?1 AND number >= ?2 ORDER BY number LIMIT ?3".to_owned(),
        "SELECT no FROM delivery_log WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2".to_owned(),
    ];
    for sql in plain {
        assert_indexed(&store, sql, &[]).await;
    }
    let (before, after) = settle::to_log_sql();
    let places = crate::sqlite::work::places(4, crate::sqlite::rows::CHANGING_COLUMNS + 1);
    assert_indexed(&store, format!("{before}{places}{after}"), &["n", "4 CONSTANT ROWS"]).await;
    // Only the free queues are looked at, and those are sorted.
    let steps = plan(&store, ownership::FREE_SQL.to_owned()).await;
    let queues: Vec<_> = steps.iter().filter(|step| step.contains(" queue ")).collect();
    assert!(queues.iter().all(|step| step.contains("queue_free") || step.contains("queue_by_owner")), "{steps:#?}");
}

#[tokio::test]
async fn a_scan_would_be_seen() -> Result<(), StoreError> {
    let made = InFile::new(StoreLimits::default(), false);
    let steps = plan(&made.sqlite(), "SELECT * FROM delivery ORDER BY error".to_owned()).await;
    assert!(steps.iter().any(|step| step.starts_with("SCAN")) && steps.iter().any(|step| step.contains("TEMP B-TREE")));
    Ok(())
}
