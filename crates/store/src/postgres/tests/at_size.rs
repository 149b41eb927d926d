//! Plans on a database that is filled and analysed: no statement that the store runs reads a large table whole (R15).
//!
//! The statements are those that cases of the suite, among them its random walk, have really run, so that a new one cannot be left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use super::plans::{parameters, plan};
use super::{PostgresTest, make_store};
use crate::conformance::{self, LIMITS, TestStore as _};
use crate::postgres::filling::{Sizes, fill};
use crate::postgres::work::SEEN;

const SIZES: Sizes = Sizes { ended: 60_000, days: 12, waiting: 20_000, dead: 8_000, connections: 16 };
/// A table with more rows than this is large here.
const LARGE_ROWS: f32 = 1500.0;

/// What reads all of a table because it is asked about all of it, and is on no hot path.
const ALLOWED: &[&str] = &[
    // `counts`, for checks and tests.
    "SELECT status, count(*) FROM delivery",
];

macro_rules! run {
    ($($topic:ident::$case:ident,)*) => {
        $(conformance::$topic::$case(&*make_store(LIMITS).await.store()).await;)*
    };
}

/// A case of everything that has statements of its own.
async fn statements() -> BTreeSet<String> {
    run! {
        intake::d15_a_repeat_gets_the_first_id_until_its_key_ends,
        intake::d12_direct_calls_go_straight_to_the_log,
        ownership::d05_only_queues_with_something_waiting_are_taken_oldest_first,
        ownership::d05_who_takes_a_queue_learns_what_a_former_owner_left,
        settle::d27_a_resend_brings_a_delivery_back_from_the_log,
        settle::z22_a_forward_carries_the_edited_body,
        commands::d06_a_settlement_answers_its_command,
        configuration::z18_a_connection_with_requests_is_deleted_only_by_force,
        answers::d15_ended_answers_go,
        calls::d15_direct_and_stored_requests_share_their_keys,
        audit::p07_the_audit_log_is_listed_newest_first_by_page_and_filter,
        topics::z22_a_message_is_given_out_until_it_is_acknowledged,
        events::events_are_listed_newest_first_over_all_topics,
        lines::r15_what_comes_back_goes_to_the_end_of_its_line,
        sources::r12_a_new_forward_takes_the_place_of_a_dead_one_with_the_same_body,
        retention::v07_the_log_goes_in_bounded_steps_oldest_first,
        retention::d41_a_message_that_is_owed_stays,
        listing::v07_all_conditions_of_a_filter_hold,
        listing::z14_a_queue_is_listed_as_it_will_be_delivered,
        listing::z21_dead_letters_are_found_oldest_first,
        listing::each_queue_of_a_project_has_its_summary,
        listing::a_correlation_id_is_found_wherever_it_came_from,
        jobs::z23_a_job_is_about_what_was_there_when_it_began,
        jobs::d06_a_jobs_commands_are_counted_where_they_are_answered,
        health::v04_the_timer_switches_off_what_still_stands_as_it_saw_it,
    }
    conformance::walk::z13_a_random_walk_keeps_the_books(&mut make_store(LIMITS).await).await;
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

async fn filled() -> PostgresTest {
    let test = make_store(LIMITS).await;
    fill(&test.store, &test.schema.database(), SIZES, &mut |_, _| ()).await;
    // What has no copies of a delivery; enough that reading all of it would show.
    let more = "
        INSERT INTO idempotency SELECT decode(md5(g::text), 'hex'), decode(md5(g::text), 'hex'), gen_random_uuid(), g FROM generate_series(1, 5000) AS g;
        INSERT INTO keyed_answer SELECT decode(md5(g::text), 'hex'), decode(md5(g::text), 'hex'), 200, NULL, NULL, g FROM generate_series(1, 5000) AS g;
        INSERT INTO audit SELECT gen_random_uuid(), gen_random_uuid(), 'a' || g % 50, 'act', 'o' || g, g, '{}' FROM generate_series(1, 5000) AS g;
        INSERT INTO command SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '{}', NULL, g, 'x', NULL FROM generate_series(1, 5000) AS g;
        INSERT INTO topic_message (topic_id, project_id, id, cid, headers, published_at, body_id, owing)
            SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'c', '[]', g, gen_random_uuid(), g % 2 FROM generate_series(1, 5000) AS g;
        INSERT INTO owed SELECT gen_random_uuid(), g, g, 0 FROM generate_series(1, 5000) AS g;
        INSERT INTO webhook_receipt SELECT decode(md5(g::text), 'hex'), gen_random_uuid(), g FROM generate_series(1, 5000) AS g;
        INSERT INTO job_item SELECT gen_random_uuid(), g, gen_random_uuid() FROM generate_series(1, 5000) AS g;
        INSERT INTO session SELECT decode(md5(g::text), 'hex'), gen_random_uuid(), g, g, NULL FROM generate_series(1, 5000) AS g";
    test.schema.run(more).await.unwrap();
    test.schema.run("ANALYZE").await.unwrap();
    test
}

/// The large ones, with the number of their rows.
async fn large(client: &tokio_postgres::Client) -> BTreeMap<String, f32> {
    let sql = "SELECT relname::text, reltuples FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND reltuples > $1";
    let rows = client.query(sql, &[&LARGE_ROWS]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn is_read_whole(plan: &str, table: &str) -> bool {
    plan.lines().any(|line| {
        let scanned = line.split("Seq Scan on ").nth(1);
        scanned.is_some_and(|rest| rest.split_whitespace().next() == Some(table))
    })
}

#[test]
fn a_plan_that_reads_a_table_whole_is_seen() {
    let plan =
        "Limit  (cost=0.00..1.00 rows=1)\n  ->  Parallel Seq Scan on delivery_log_20261130 d  (cost=0.00..9.00 rows=9)";
    assert!(is_read_whole(plan, "delivery_log_20261130") && !is_read_whole(plan, "delivery_log"));
}

// proves: R15, P03 (no sequential scan on a hot path)
#[tokio::test]
async fn r15_no_statement_of_the_store_reads_a_large_table_whole() {
    let statements = statements().await;
    let test = filled().await;
    let (client, connection) = test.schema.database().connect().await.unwrap();
    let carried = tokio::spawn(connection);
    let large = large(&client).await;
    for table in ["delivery", "attempt", "body", "idempotency", "topic_message", "audit", "job_item"] {
        assert!(large.contains_key(table), "{table} is not filled: {large:?}");
    }
    assert!(large.keys().filter(|name| name.starts_with("delivery_log_2")).count() >= 10, "{large:?}");
    // As the store's connections are, and as the planner would have it on its own.
    for settings in ["", "SET enable_seqscan = on"] {
        client.batch_execute(settings).await.unwrap();
        let mut looked_at = 0;
        for sql in &statements {
            let is_plain = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|word| sql.starts_with(word));
            if !is_plain || ALLOWED.iter().any(|allowed| sql.starts_with(allowed)) {
                continue;
            }
            assert!(parameters(sql) < 60, "{sql}");
            let plan = plan(&client, sql).await;
            for table in large.keys() {
                assert!(!is_read_whole(&plan, table), "{table} is read whole ({settings}) by\n{sql}\n{plan}");
            }
            looked_at += 1;
        }
        println!("{looked_at} statements looked at ({settings})");
        assert!(looked_at > 120, "only {looked_at} statements were run by the cases");
    }
    drop(client);
    let _ = carried.await;
}
