//! Every statement on a hot path goes along an index, however many rows there are (R15). The planner is asked, with the settings that the
//! store's sessions have.

use super::make_store;
use crate::conformance::LIMITS;
use crate::postgres::{
    commands, health, intake, jobs, listing, lookups, ownership, queues, retention, settle, window, workforce,
};
use crate::{DeadLetterFilter, DeliveryFilter};

/// How many parameters the statement has.
pub(super) fn parameters(sql: &str) -> usize {
    (1..=60).rev().find(|number| sql.contains(&format!("${number}"))).unwrap_or(0)
}

pub(super) async fn plan(client: &tokio_postgres::Client, sql: &str) -> String {
    let nulls = vec!["NULL"; parameters(sql)].join(", ");
    let called = if nulls.is_empty() { "asked".to_owned() } else { format!("asked({nulls})") };
    client.batch_execute(&format!("PREPARE asked AS {sql}")).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = client.query(&format!("EXPLAIN EXECUTE {called}"), &[]).await.unwrap();
    client.batch_execute("DEALLOCATE asked").await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

/// The statements, each with the indexes that it must go along.
fn hot_statements() -> Vec<(String, Vec<&'static str>)> {
    let ints = |count: usize, first: usize| -> String {
        (first..first + count).map(|number| format!(", ${number}::bigint[]")).collect()
    };
    let claims = format!("unnest($1::bigint[], $2::uuid[]{})", ints(4, 3));
    // Id, body, bytes, original, three numbers, a word, ten numbers, two texts, two numbers, a text, three times.
    let changing = format!(
        "unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[]{}, $7::text[]{}, $17::text[], $18::text[]{}, $21::text[]{})",
        ints(2, 5),
        ints(9, 8),
        ints(2, 19),
        ints(3, 22)
    );
    let hot = changing.replace(')', &format!("{})", ints(2, 25)));
    let one = |sql: &str, index| (sql.to_owned(), vec![index]);
    let all = DeadLetterFilter { dlq_retries_below: Some(3), leave_out_aged: true };
    vec![
        (window::load_sql(), vec!["delivery_line", "body_pkey"]),
        (window::claim_sql(&claims), vec!["delivery_due", "delivery_pkey", "body_pkey"]),
        one(window::NEXT_DUE_SQL, "delivery_due"),
        (window::former_claims_sql(), vec!["delivery_claimed"]),
        (settle::to_log_sql(&changing), vec!["delivery_pkey"]),
        (settle::update_hot_sql(&hot), vec!["delivery_pkey"]),
        (intake::PLACES_SQL.to_owned(), vec!["queue_entry_pkey", "queue_pkey", "queue_exit_pkey"]),
        one(&queues::lock_sql(queues::Lock::Share), "queue_pkey"),
        one(queues::LOCK_ENTRIES_SQL, "queue_entry_pkey"),
        one(queues::WANTED_SQL, "queue_pkey"),
        (ownership::free_sql(), vec!["queue_wanted", "queue_by_owner", "delivery_waiting"]),
        (ownership::TAKE_SQL.to_owned(), vec!["queue_pkey", "delivery_claimed", "command_open"]),
        (ownership::takeable_sql(), vec!["queue_pkey", "worker_pkey"]),
        (workforce::workers_sql(), vec!["queue_by_owner"]),
        (workforce::free_count_sql(), vec!["queue_wanted", "queue_by_owner", "delivery_waiting"]),
        one(ownership::OWNED_SQL, "queue_by_owner"),
        one(commands::OPEN_SQL, "command_open"),
        (lookups::delivery_sql(), vec!["delivery_pkey", "log_before_by_id", "_id_ended_at_idx"]),
        (intake::KNOWN_SQL.to_owned(), vec!["delivery_pkey", "_id_ended_at_idx"]),
        (lookups::dead_letter_sql("id", all), vec!["delivery_dead_by_arrival"]),
        one(&format!("{} WHERE queue.id = $1", lookups::SUMMARY_SQL), "delivery_waiting"),
        (listing::line_sql(), vec!["delivery_line"]),
        (listing::due_sql(), vec!["delivery_due"]),
        (retention::old_log_sql("delivery_log_before"), vec!["log_before_by_end"]),
        (jobs::page_sql(), vec!["job_by_project"]),
        one(&health::failing_sql(), "endpoint_failing"),
    ]
}

// proves: R15
#[tokio::test]
async fn r15_hot_statements_go_along_their_indexes() {
    let test = make_store(LIMITS).await;
    let (client, connection) = test.schema.database().connect().await.unwrap();
    let carried = tokio::spawn(connection);
    for (sql, indexes) in hot_statements() {
        let plan = plan(&client, &sql).await;
        assert!(!plan.contains("Seq Scan"), "{sql}\n{plan}");
        for index in indexes {
            assert!(plan.contains(index), "{sql} does not go along {index}\n{plan}");
        }
    }
    drop(client);
    let _ = carried.await;
}

// proves: R15 (lists)
#[tokio::test]
async fn r15_every_stream_of_a_list_goes_along_its_index() {
    use crate::postgres::filter::Conditions;
    use crate::postgres::streams::{self, Order};
    let test = make_store(LIMITS).await;
    let (client, connection) = test.schema.database().connect().await.unwrap();
    let carried = tokio::spawn(connection);
    let filter = DeliveryFilter { cid: Some("a cid".to_owned()), ..DeliveryFilter::default() };
    let queue = crate::postgres::key::Key::of(5);
    for filter in [DeliveryFilter::default(), filter] {
        let conditions = Conditions::of(&filter);
        for stream in streams::of_one_queue(&filter, queue) {
            for order in [Order::NewestFirst, Order::OldestFirst] {
                for sql in [stream.rows_sql(&conditions, order), stream.place_sql(order)] {
                    let plan = plan(&client, &sql).await;
                    // What several partitions have in order is merged; nothing is sorted.
                    assert!(!plan.contains("Seq Scan") && !plan.contains("Sort  ("), "{sql}\n{plan}");
                }
            }
        }
    }
    drop(client);
    let _ = carried.await;
}
