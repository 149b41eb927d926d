//! Every hot verb and every listing goes along an index: no table is read whole, and nothing is sorted on the way.

use postrider_core::Failure;
use postrider_core::delivery::Status;
use postrider_core::id::ProjectId;

use super::InFile;
use crate::conformance::fixture::World;
use crate::sqlite::{SqliteStore, audit, listing, lookups, ownership, settle, window};
use crate::{AuditFilter, DeadLetterFilter, DeliveryFilter, StoreError, StoreLimits};

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
                    store.read(move |connection| listing::streams(connection, &filter)).await.unwrap()
                };
                assert!(!streams.is_empty());
                for stream in streams {
                    assert_indexed(store, stream.sql(&filter), &[]).await;
                }
            }
        }
    }
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

#[tokio::test]
async fn every_hot_verb_and_every_listing_goes_along_an_index() {
    let made = InFile::new(StoreLimits::default(), false);
    let store = made.sqlite();
    every_filter(&store).await;
    every_filter_of_the_audit_log(&store).await;
    let plain = [
        window::load_sql(),
        window::claim_sql(),
        window::NEXT_DUE_SQL.to_owned(),
        ownership::HAS_CLAIMS_SQL.to_owned(),
        ownership::HAS_COMMANDS_SQL.to_owned(),
        listing::line_sql(),
        listing::due_sql(),
        lookups::dead_letter_sql("*", DeadLetterFilter::default()),
        lookups::dead_letter_sql("dead_at", DeadLetterFilter { dlq_retries_below: Some(3), leave_out_aged: true }),
        format!("{} WHERE id = ?1", lookups::SUMMARY_SQL),
        format!("{} WHERE project_id = ?1 ORDER BY id", lookups::SUMMARY_SQL),
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
