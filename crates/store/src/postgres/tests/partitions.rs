//! The log by days: made ahead, made of a log that was one table, and gone as a whole when its time has passed (D01).

use postrider_core::Timestamp;
use postrider_core::delivery::Status;

use super::{LIMITS, PostgresTest, TestSchema, make_store};
use crate::conformance::fixture::{World, at};
use crate::postgres::partitions::{self, DAY, name_of};
use crate::postgres::{PostgresOptions, PostgresStore, schema, way_in};
use crate::*;

async fn client(schema: &TestSchema) -> tokio_postgres::Client {
    way_in(&schema.database()).await.unwrap()
}

async fn number(client: &tokio_postgres::Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error}")).get(0)
}

/// By the database's clock, as the partitions are.
async fn now(client: &tokio_postgres::Client) -> i64 {
    number(client, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").await
}

async fn partitions_of_log(client: &tokio_postgres::Client) -> Vec<String> {
    let sql = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'delivery_log'::regclass ORDER BY 1";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Ended at these times, the newest connection's, with one attempt each.
async fn end_at(
    world: &World<'_>,
    connection: &postrider_core::connection::Connection,
    ends: &[i64],
) -> Vec<postrider_core::id::DeliveryId> {
    let stored = world.stored(connection, i64::try_from(ends.len()).unwrap()).await;
    let lease = world.owner(connection, 5).await;
    for (id, end) in stored.iter().zip(ends) {
        let mut decision = world.attempt_decision(*id, lease, Status::Success).await;
        decision.progress.ended_at = Some(Timestamp::from_millis(*end));
        world.settle(decision).await;
    }
    stored
}

async fn with_days(back: i64) -> (PostgresTest, tokio_postgres::Client, i64) {
    let test = make_store(LIMITS).await;
    let mut client = client(&test.schema).await;
    let now = now(&client).await;
    partitions::reach_back(&mut client, now - back * DAY).await.unwrap();
    (test, client, now)
}

// proves: D01 (partitions are made ahead)
#[tokio::test]
async fn d01_days_of_the_log_are_made_ahead_and_what_ended_on_none_of_them_is_kept_too() {
    let (test, mut client, now) = with_days(0).await;
    let today = now.div_euclid(DAY);
    let found = partitions_of_log(&client).await;
    for day in today..=today + 7 {
        assert!(found.contains(&name_of(day)), "{} is not there: {found:?}", name_of(day));
    }
    let store = test.store.clone();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    // In the past, today, and on a day that nobody has made yet.
    let far = (today + 30) * DAY + 5;
    let ids = end_at(&world, &connection, &[at(0).as_millis(), now, far]).await;
    let in_table = async |client: &tokio_postgres::Client, table: &str| {
        number(client, &format!("SELECT count(*) FROM {table}")).await
    };
    for table in ["delivery_log_before", &name_of(today), "delivery_log_rest"] {
        assert_eq!(in_table(&client, table).await, 1, "{table}");
    }
    // That day's partition takes it over when it is made.
    client
        .batch_execute(&format!("ALTER TABLE delivery_log DETACH PARTITION {}; DROP TABLE {0}", name_of(today + 7)))
        .await
        .unwrap();
    client
        .batch_execute(&format!("UPDATE delivery_log SET ended_at = {} WHERE ended_at = {far}", (today + 7) * DAY))
        .await
        .unwrap();
    assert_eq!(in_table(&client, "delivery_log_rest").await, 1);
    partitions::look_after(&mut client, None).await.unwrap();
    assert_eq!((in_table(&client, "delivery_log_rest").await, in_table(&client, &name_of(today + 7)).await), (0, 1));
    for id in ids {
        assert!(store.delivery(id).await.unwrap().is_some());
    }
    assert!(store.counts(None).await.unwrap().is_balanced());
}

// proves: D01, V07 (retention by days)
#[tokio::test]
async fn d01_a_day_that_has_passed_leaves_as_a_whole_and_nothing_else_goes() {
    let (test, client, now) = with_days(5).await;
    let store = test.store.clone();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let (old, young) = (now - 4 * DAY, now - DAY);
    let ids = end_at(&world, &connection, &[old, old, old, young]).await;
    // A dead letter from then, and what waits, share a body with one that goes.
    let waits = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    world.attempted(waits[0], lease, Status::Dlq).await;
    let shared = world.delivery(ids[0]).await.body_id;
    let share = format!(
        "UPDATE delivery SET body_id = b.id FROM body AS b WHERE b.id = '{:032x}'::uuid AND delivery.status = 'DLQ';
         UPDATE body SET uses = uses + 1 WHERE id = '{:032x}'::uuid",
        shared.as_u128(),
        shared.as_u128()
    );
    client.batch_execute(&share).await.unwrap();
    let day = name_of(old.div_euclid(DAY));
    assert_eq!(number(&client, &format!("SELECT count(*) FROM {day}")).await, 3);

    let before = Timestamp::from_millis(now - 2 * DAY);
    let mut pruned = Vec::new();
    for _ in 0..3 {
        pruned.push(store.prune(before, Timestamp::from_millis(now), 2).await.unwrap());
        // Whatever is given back so far, the books balance, and none of that day is found.
        let counts = store.counts(None).await.unwrap();
        assert!(counts.is_balanced(), "{counts:?}");
        assert_eq!(store.delivery(ids[1]).await.unwrap(), None);
    }
    let sum = |what: fn(&Pruned) -> u64| pruned.iter().map(what).sum::<u64>();
    assert_eq!((sum(|one| one.deliveries), sum(|one| one.attempts), sum(|one| one.bodies)), (3, 3, 2));
    assert_eq!(
        number(&client, &format!("SELECT count(*) FROM pg_class WHERE relname = '{day}'")).await,
        0,
        "it is dropped"
    );
    assert_eq!(number(&client, "SELECT count(*) FROM log_leaving").await, 0);
    let counts = store.counts(Some(connection.id)).await.unwrap();
    assert_eq!((counts.pruned, counts.success, counts.dlq, counts.pending), (3, 1, 1, 1));
    assert!(store.delivery(ids[3]).await.unwrap().is_some(), "a day that has not passed stays");
    assert!(store.body(shared).await.unwrap().is_some(), "a dead letter refers to it");
    assert!(store.delivery(waits[0]).await.unwrap().is_some() && store.delivery(waits[1]).await.unwrap().is_some());
}

// proves: D01 (whoever keeps the log for less than a day)
#[tokio::test]
async fn d01_a_retention_of_less_than_a_day_goes_row_by_row() {
    let (test, _, now) = with_days(0).await;
    let world = World::new(&*test.store).await;
    let connection = world.connection("billing", true).await;
    let ids = end_at(&world, &connection, &[now - 2, now]).await;
    let (before, now) = (Timestamp::from_millis(now), Timestamp::from_millis(now + 1000));
    assert_eq!(test.store.prune(before, now, 10).await.unwrap().deliveries, 1);
    assert!(test.store.delivery(ids[1]).await.unwrap().is_some());
    assert!(test.store.counts(None).await.unwrap().is_balanced());
}

// proves: D01 (several servers look after the days)
#[tokio::test]
async fn d01_servers_that_prune_together_do_not_hinder_each_other() {
    let (test, client, now) = with_days(5).await;
    let world = World::new(&*test.store).await;
    let connection = world.connection("billing", true).await;
    end_at(&world, &connection, &[now - 4 * DAY; 20]).await;
    let other = PostgresStore::open(&test.schema.database(), test.options).await.unwrap();
    let before = Timestamp::from_millis(now - 2 * DAY);
    for _ in 0..12 {
        let now = Timestamp::from_millis(now);
        let (one, two) = tokio::join!(test.store.prune(before, now, 3), other.prune(before, now, 3));
        (one.unwrap(), two.unwrap());
    }
    let counts = test.store.counts(None).await.unwrap();
    assert_eq!((counts.pruned, counts.is_balanced()), (20, true), "{counts:?}");
    assert_eq!(number(&client, "SELECT count(*) FROM log_leaving").await, 0);
}

/// A database as the version before left it.
async fn undivided(schema: &TestSchema) {
    let name = &schema.name;
    schema.run(&format!("CREATE SCHEMA {name}")).await.unwrap();
    let version = "CREATE TABLE version (version bigint NOT NULL, configuration bigint NOT NULL DEFAULT 0); INSERT INTO version VALUES (1)";
    schema.run(&format!("{version}; {}", schema::FIRST)).await.unwrap();
}

/// Copies of a log row of another store, one for each of these times.
async fn fill_log(from: &TestSchema, to: &TestSchema, ends: &[i64]) {
    let ends: Vec<String> = ends.iter().map(i64::to_string).collect();
    let tables = ["project", "connection", "queue", "queue_entry", "queue_exit"];
    for table in tables {
        to.run(&format!("INSERT INTO {table} SELECT * FROM {}.{table}", from.name)).await.unwrap();
    }
    let sql = format!(
        "CREATE TEMPORARY TABLE one AS SELECT * FROM {}.delivery_log LIMIT 1; UPDATE one SET body_id = gen_random_uuid();
         INSERT INTO body SELECT body_id, {count}, 'b' FROM one;
         INSERT INTO delivery_log SELECT (r).* FROM (SELECT jsonb_populate_record(one, \
         jsonb_build_object('id', gen_random_uuid(), 'ended_at', e)) AS r FROM one, unnest(ARRAY[{}]::bigint[]) AS e) AS made;
         UPDATE queue_entry SET accepted = {count}",
        from.name,
        ends.join(", "),
        count = ends.len()
    );
    to.run(&sql).await.unwrap();
}

// proves: D01 (a log that was one table is divided while it is in use), P03
#[tokio::test]
async fn d01_a_log_that_is_one_table_is_divided_where_it_stands() {
    let made = make_store(LIMITS).await;
    let world = World::new(&*made.store).await;
    let connection = world.connection("billing", true).await;
    end_at(&world, &connection, &[at(0).as_millis()]).await;
    let schema = TestSchema::new();
    undivided(&schema).await;
    let known = client(&made.schema).await;
    let now = now(&known).await;
    fill_log(&made.schema, &schema, &[at(0).as_millis(), now - DAY, now, now + 60_000]).await;
    // What a try left that was cut off between its steps.
    let cut = "ALTER TABLE delivery_log ADD CONSTRAINT log_before CHECK (ended_at > 0) NOT VALID; CREATE INDEX log_before_by_id ON delivery_log (id)";
    schema.run(cut).await.unwrap();

    let database = schema.database();
    let open = || PostgresStore::open(&database, PostgresOptions::default());
    let (one, two) = tokio::join!(open(), open());
    let (store, other) = (one.unwrap(), two.unwrap());
    let client = client(&schema).await;
    assert_eq!(number(&client, "SELECT version FROM version").await, 2);
    assert_eq!(number(&client, "SELECT count(*) FROM delivery_log_before").await, 4, "nothing was copied");
    let counts = store.counts(None).await.unwrap();
    assert!(counts.is_balanced() && counts.success == 4, "{counts:?}");
    let page = store.deliveries(&DeliveryFilter::default(), PageRequest { limit: 10, cursor: None }).await.unwrap();
    assert_eq!(page.items.len(), 4);
    // Tomorrow still belongs to the old part, and the days behind it have their own.
    let days: Vec<String> =
        partitions_of_log(&client).await.into_iter().filter(|name| partitions::is_day(name)).collect();
    let first = now.div_euclid(DAY) + 2;
    assert_eq!(days.first(), Some(&name_of(first)), "{days:?}");
    // Of the old part, row by row.
    let (old, later) = (Timestamp::from_millis(now - 3_600_000), Timestamp::from_millis(now + DAY));
    assert_eq!(store.prune(old, later, 1).await.unwrap().deliveries, 1);
    assert_eq!(other.prune(old, later, 10).await.unwrap().deliveries, 1);
    assert_eq!(store.prune(old, later, 10).await.unwrap().deliveries, 0);
    assert!(store.counts(None).await.unwrap().is_balanced());
}

// proves: D01 (online: whoever writes meanwhile is not held up)
#[tokio::test]
async fn d01_what_is_written_while_the_log_is_divided_is_there_afterwards() {
    let made = make_store(LIMITS).await;
    let world = World::new(&*made.store).await;
    let connection = world.connection("billing", true).await;
    end_at(&world, &connection, &[at(0).as_millis()]).await;
    let schema = TestSchema::new();
    undivided(&schema).await;
    let times: Vec<i64> = (0..2000).map(|number| at(number).as_millis()).collect();
    fill_log(&made.schema, &schema, &times).await;
    let writer = client_of_old_server(&schema).await;
    let writing = async {
        for written in 0..200 {
            let sql = "INSERT INTO delivery_log SELECT (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid()))).* \
                 FROM (SELECT * FROM delivery_log LIMIT 1) AS d";
            assert_eq!(writer.execute(sql, &[]).await.unwrap(), 1, "row {written}");
        }
    };
    let database = schema.database();
    let (store, ()) = tokio::join!(PostgresStore::open(&database, PostgresOptions::default()), writing);
    drop(store.unwrap());
    assert_eq!(number(&writer, "SELECT count(*) FROM delivery_log").await, 2200);
}

/// One that was connected before the new server came.
async fn client_of_old_server(schema: &TestSchema) -> tokio_postgres::Client {
    let (client, connection) = schema.database().connect().await.unwrap();
    tokio::spawn(connection);
    client
}
