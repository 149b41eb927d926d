//! What is refused at the start, and how it is told.

use super::{LIMITS, TestSchema, make_store};
use crate::postgres::{Database, PostgresOptions, PostgresStore};
use crate::*;

async fn refused(schema: &TestSchema) -> StoreError {
    match PostgresStore::open(&schema.database(), PostgresOptions::default()).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

// proves: P03 (an older binary on a newer schema)
#[tokio::test]
async fn a_schema_of_a_newer_server_is_refused_and_left_as_it_is() {
    let test = make_store(LIMITS).await;
    test.schema.run("UPDATE version SET version = 99").await.unwrap();
    let error = refused(&test.schema).await;
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("version 99")), "{error}");
    test.schema.run("UPDATE version SET version = 2").await.unwrap();
    PostgresStore::open(&test.schema.database(), PostgresOptions::default()).await.unwrap();
}

#[tokio::test]
async fn a_schema_of_another_program_is_refused_and_left_as_it_is() {
    let schema = TestSchema::new();
    let name = &schema.name;
    schema.run(&format!("CREATE SCHEMA {name}; CREATE TABLE {name}.theirs (id int)")).await.unwrap();
    let error = refused(&schema).await;
    assert!(matches!(&error, StoreError::Corrupt(why) if why.contains("another program")), "{error}");
    schema.run(&format!("DROP TABLE {name}.theirs")).await.unwrap();
}

#[tokio::test]
async fn servers_that_start_together_make_one_schema() {
    let schema = TestSchema::new();
    let database = schema.database();
    let open = || PostgresStore::open(&database, PostgresOptions::default());
    let (a, b, c) = tokio::join!(open(), open(), open());
    for store in [a.unwrap(), b.unwrap(), c.unwrap()] {
        assert_eq!(store.check().await, Ok(()));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let database = Database::parse("postgres://user:s3cret@127.0.0.1:1/hospital").unwrap();
    let error = PostgresStore::open(&database, PostgresOptions::default()).await.err().unwrap().to_string();
    assert!(error.contains("127.0.0.1") && error.contains("hospital") && !error.contains("s3cret"), "{error}");
}

/// Durability rests on them.
#[tokio::test]
async fn our_settings_of_a_session_win_over_those_of_the_url() {
    let schema = TestSchema::new();
    let options = "-c%20synchronous_commit%3Doff%20-c%20search_path%3Dpublic";
    let database = Database::parse(&format!("{}&options={options}", schema.url())).unwrap();
    // The opening itself looks whether each of them is as it was asked for.
    PostgresStore::open(&database, PostgresOptions::default()).await.unwrap();
}
