//! Cursors of lists: one that the store gave goes on where it stopped, through the API too; any other is refused, never trusted.

use std::sync::OnceLock;

use bytes::Bytes;
use futures_util::FutureExt;
use postrider_core::Timestamp;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec, check_name};
use postrider_core::delivery::{Origin, Progress};
use postrider_core::id::{BodyId, Cid, ConnectionId, DeliveryId, ProjectId};
use postrider_core::message::RequestHead;
use postrider_store::{
    DeliveryFilter, MemoryStore, NewBody, NewDelivery, Page, PageRequest, Project, ProjectSettings, SqliteOptions,
    SqliteStore, Store, StoreError,
};
use postrider_web::Query;
use serde_json::{Map, json};

const PROJECT: ProjectId = ProjectId::from_u128(1);
const QUEUE: ConnectionId = ConnectionId::from_u128(1);
const NOW: Timestamp = Timestamp::from_millis(1_773_317_134_730);
const DELIVERIES: u128 = 5;

/// Names that an operator may give, as awkward as they can be.
const NAMES: [&str; 5] = ["\"\\%_?'", "a", "a b", "ｂ", "𝕏"];

/// The input is a cursor, and names of connections on the lines after it.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let mut lines = text.split('\n');
    let cursor = crate::unescaped(lines.next().unwrap_or_default());
    let mut names: Vec<&str> = lines.filter(|name| check_name(name).is_ok()).take(8).collect();
    names.sort_unstable();
    names.dedup();
    let store = MemoryStore::default();
    fill(&store, &names, 0);
    any_cursor_is_taken_or_refused(&store, &cursor);
    walks_every_list(&store, &names, 0);
    any_cursor_is_taken_or_refused(in_memory(), &cursor);
    any_cursor_is_taken_or_refused(embedded(), &cursor);
}

fn any_cursor_is_taken_or_refused(store: &dyn Store, cursor: &str) {
    let page = || PageRequest { limit: 2, cursor: Some(cursor.to_owned()) };
    is_taken_or_refused(cursor, now(store.connections(PROJECT, page())));
    is_taken_or_refused(cursor, now(store.deliveries(&DeliveryFilter::default(), page())));
    is_taken_or_refused(cursor, now(store.topics(PROJECT, page())));
    match now(store.queue(QUEUE, page())) {
        // The queue of a connection that nobody named.
        Err(StoreError::NotFound { .. }) => {}
        found => is_taken_or_refused(cursor, found),
    }
}

fn is_taken_or_refused<T>(cursor: &str, found: Result<Page<T>, StoreError>) {
    match found {
        Ok(page) => {
            assert!(page.items.len() <= 2);
            assert!(page.next_cursor.is_none() || page.items.len() == 2, "more follow a full page only");
        }
        Err(StoreError::NotFound { what: "page" | "cursor" }) => {}
        Err(error) => panic!("{cursor:?}: {error}"),
    }
}

fn walks_every_list(store: &dyn Store, names: &[&str], deliveries: u128) {
    let walked = walk(|page| now(store.connections(PROJECT, page)));
    assert!(
        walked.iter().map(|connection| connection.name.as_str()).eq(names.iter().copied()),
        "each once and by name"
    );
    let walked = walk(|page| now(store.deliveries(&DeliveryFilter::default(), page)));
    assert!(walked.iter().rev().map(|delivery| delivery.id.as_u128()).eq(1..=deliveries), "newest first");
    if !names.is_empty() {
        let walked = walk(|page| now(store.queue(QUEUE, page)));
        assert!(walked.iter().map(|delivery| delivery.id.as_u128()).eq(1..=deliveries), "head first");
    }
}

/// Page by page, each cursor sent through a query string as a caller would.
fn walk<T>(list: impl Fn(PageRequest) -> Result<Page<T>, StoreError>) -> Vec<T> {
    let mut items = Vec::new();
    let mut page = PageRequest { limit: 1, cursor: None };
    loop {
        let found = list(page).unwrap_or_else(|error| panic!("its own cursor is refused: {error}"));
        assert!(found.items.len() <= 1);
        items.extend(found.items);
        let Some(cursor) = found.next_cursor else { return items };
        let query = format!("limit=1&cursor={}", crate::query::escaped(&cursor));
        page = Query::parse(&query).page().unwrap_or_else(|problem| panic!("{cursor:?}: {}", problem.detail()));
        assert_eq!((page.limit, page.cursor.as_deref()), (1, Some(cursor.as_str())));
    }
}

/// One of each store, made and walked once: reading does not change it.
fn in_memory() -> &'static dyn Store {
    static STORE: OnceLock<MemoryStore> = OnceLock::new();
    STORE.get_or_init(|| filled(MemoryStore::default()))
}

fn embedded() -> &'static dyn Store {
    static STORE: OnceLock<SqliteStore> = OnceLock::new();
    STORE
        .get_or_init(|| filled(SqliteStore::open_inline(None, SqliteOptions::default()).expect("memory needs no file")))
}

fn filled<S: Store>(store: S) -> S {
    fill(&store, &NAMES, DELIVERIES);
    walks_every_list(&store, &NAMES, DELIVERIES);
    store
}

/// A project with connections of these names, and deliveries waiting in the queue of the first.
fn fill(store: &dyn Store, names: &[&str], deliveries: u128) {
    let project =
        Project { id: PROJECT, name: "default".to_owned(), settings: ProjectSettings::default(), created_at: NOW };
    now(store.create_project(project)).expect("the project is new");
    for (number, name) in (1..).zip(names) {
        now(store.create_connection(&connection(number, name))).expect("the name is new");
    }
    let batch = (1..=deliveries).map(|number| NewDelivery {
        id: DeliveryId::from_u128(number),
        project_id: PROJECT,
        connection_id: QUEUE,
        cid: Cid::new(NOW, 7),
        origin: Origin::Publish,
        created_at: NOW,
        head: RequestHead::default(),
        body: NewBody { id: BodyId::from_u128(number), bytes: Bytes::from_static(b"{}") },
        event: None,
        ladder: None,
        progress: Progress::accepted(NOW),
        ordered: true,
        claimed_under: None,
        idempotency: None,
        awaited_until: None,
    });
    now(store.enqueue(batch.collect())).expect("there is room");
}

fn connection(number: u128, name: &str) -> Connection {
    let keys = [("host", json!("https://api.example.org")), ("url_path", json!("/")), ("use_queue", json!(true))];
    let written = Map::from_iter(keys.map(|(key, value)| (key.to_owned(), value)));
    Connection {
        id: ConnectionId::from_u128(number),
        project_id: PROJECT,
        name: name.to_owned(),
        spec: ConnectionSpec::parse(ConnectionKind::Rest, &written).expect("the settings are whole"),
        written,
        paused: false,
        version: 1,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// Neither store waits: one is in memory, the other works on the calling thread.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it never waits")
}
