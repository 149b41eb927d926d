//! The database has no place for another session, somebody keeps a lock, transactions get in each other's way: waits have an end, and what is
//! refused leaves nothing behind.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::cluster::eventually;
use crate::harness::{Desk, OwnPostgres};
use crate::plant::Plant;

/// A lock is waited for 5 s, and a free connection 5 s.
const REFUSED_WITHIN: Duration = Duration::from_secs(20);

/// A role that is no superuser, for whom the database's limits hold.
fn url_of_a_role(database: &OwnPostgres) -> String {
    database.ask("CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app");
    database.url().replace("postgres@", "app@")
}

// proves: Z30, P06
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z30_a_database_with_no_place_for_a_session_refuses_and_comes_back() {
    let database = OwnPostgres::start(&[]);
    let plant = Plant::start(&url_of_a_role(&database)).await;
    let desk = Desk::start().await;
    plant.connection("q", &desk.address, json!({})).await;
    assert_eq!(plant.publish("q", "1").await.0, 202);
    desk.until_received(1).await;
    database.ask("ALTER ROLE app CONNECTION LIMIT 0");
    database.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
    let began = Instant::now();
    for _ in 0..50 {
        let (status, result) = plant.publish("q", "refused").await;
        assert_eq!(status, 503, "{result}");
    }
    assert!(began.elapsed() < REFUSED_WITHIN, "fifty refusals took {:?}", began.elapsed());
    plant.until_not_ready().await;
    let tries = database.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'");
    assert_eq!(tries, "0");
    database.ask("ALTER ROLE app CONNECTION LIMIT -1");
    plant.until_ready().await;
    let told =
        eventually("it takes requests", async || Some(plant.publish("q", "2").await).filter(|told| told.0 == 202))
            .await;
    plant.until_status(&told.1["msg_id"], "SUCCESS").await;
    assert_eq!(desk.bodies(), ["1", "2"]);
    plant.server.stop().await;
}

/// As by `LOCK TABLE`, a schema change or a vacuum of another program: who needs the table is refused in time, readers too, and they do not
/// take each other's connections for longer than that.
// proves: Z30, R16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z30_a_lock_that_somebody_keeps_is_not_waited_for_without_an_end() {
    let database = OwnPostgres::start(&[]);
    let plant = Plant::start(&database.url()).await;
    let desk = Desk::start().await;
    plant.connection("q", &desk.address, json!({})).await;
    desk.hold();
    let (_, first) = plant.publish("q", "1").await;
    desk.until_received(1).await;
    let keeper = database.session(
        "BEGIN; LOCK TABLE postrider.delivery, postrider.delivery_log IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)",
    );
    eventually("the lock", async || {
        let sql = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'postrider.delivery'::regclass";
        (database.ask(sql) == "1").then_some(())
    })
    .await;
    // Its decision waits to be written, and nothing is sent again for that.
    desk.release();
    let began = Instant::now();
    let (api, path) = (plant.api.clone(), format!("{}/deliveries", crate::plant::PROJECT));
    let readers: Vec<_> = (0..30)
        .map(|_| {
            let (api, path) = (api.clone(), path.clone());
            tokio::spawn(async move { api.call("GET", &path, "").await.unwrap().0 })
        })
        .collect();
    let (status, result) = plant.publish("q", "refused").await;
    assert_eq!(status, 503, "{result}");
    for reader in readers {
        assert_eq!(reader.await.unwrap(), 503);
    }
    assert!(began.elapsed() < REFUSED_WITHIN, "{:?}", began.elapsed());
    println!("one request and thirty readers refused after {:?}", began.elapsed());
    keeper.end().await;
    database.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
    let told =
        eventually("it takes requests", async || Some(plant.publish("q", "2").await).filter(|told| told.0 == 202))
            .await;
    plant.until_status(&first["msg_id"], "SUCCESS").await;
    plant.until_status(&told.1["msg_id"], "SUCCESS").await;
    assert_eq!(desk.bodies(), ["1", "2"], "each once");
    plant.server.stop().await;
}

/// What the database rolled back because transactions were in each other's way is done again unseen, a bounded number of times.
// proves: Z30, R16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r16_a_transaction_that_was_rolled_back_is_done_again_or_refused() {
    let database = OwnPostgres::start(&[]);
    let plant = Plant::start(&database.url()).await;
    let desk = Desk::start().await;
    plant.connection("q", &desk.address, json!({})).await;
    // The first so many statements on a table fail; a sequence is not rolled back with them.
    let fails = |table: &str, code: &str, times: u32| {
        database.ask(&format!(
            "DROP SEQUENCE IF EXISTS public.faults; CREATE SEQUENCE public.faults; \
             CREATE OR REPLACE FUNCTION public.fail() RETURNS trigger AS $$ BEGIN IF nextval('public.faults') <= {times} THEN \
             RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END IF; RETURN NULL; END $$ LANGUAGE plpgsql; \
             CREATE OR REPLACE TRIGGER fails BEFORE INSERT ON postrider.{table} FOR EACH STATEMENT EXECUTE FUNCTION public.fail()"
        ));
    };
    let mut wanted = Vec::new();
    for (table, code) in
        [("delivery", "40001"), ("delivery", "40P01"), ("delivery_log", "40001"), ("delivery_log", "40P01")]
    {
        fails(table, code, 3);
        let body = format!("{table} {code}");
        let (status, result) = plant.publish("q", &body).await;
        assert_eq!(status, 202, "{result}");
        plant.until_status(&result["msg_id"], "SUCCESS").await;
        let path = format!("/deliveries/{}/attempts", result["msg_id"].as_str().unwrap());
        let (_, attempts) = plant.call("GET", &path, &Value::Null).await;
        assert_eq!(attempts["data"].as_array().unwrap().len(), 1, "{attempts}");
        wanted.push(body);
        database.ask(&format!("DROP TRIGGER fails ON postrider.{table}"));
    }
    fails("delivery", "40001", 1_000_000);
    let (status, result) = plant.publish("q", "refused").await;
    assert_eq!(status, 503, "{result}");
    database.ask("DROP TRIGGER fails ON postrider.delivery");
    let (status, result) = plant.publish("q", "last").await;
    assert_eq!(status, 202, "{result}");
    plant.until_status(&result["msg_id"], "SUCCESS").await;
    wanted.push("last".to_owned());
    assert_eq!(desk.bodies(), wanted);
    plant.server.stop().await;
}
