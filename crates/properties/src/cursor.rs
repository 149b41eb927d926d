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
    DeliveryFilter, MemoryStore, NewBody, NewDelivery, Page, PageRequest, Project, Store, StoreError, StoreRead,
};
use postrider_web::Query;
use serde_json::{Map, Value, json};

const PROJECT: ProjectId = ProjectId::from_u128(1);
const QUEUE: ConnectionId = ConnectionId::from_u128(1);
const NOW: Timestamp = Timestamp::from_millis(1_773_317_134_730);
const DELIVERIES: usize = 5;

/// The input is a cursor, and names of connections on the lines after it.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let mut lines = text.split('\n');
    let cursor = crate::unescaped(lines.next().unwrap_or_default());
    let mut names: Vec<&str> = lines.filter(|name| check_name(name).is_ok()).take(8).collect();
    names.sort_unstable();
    names.dedup();
    let store = connections(&names);
    let list = |page| now(store.connections(PROJECT, page));
    any_cursor_is_taken_or_refused(&cursor, names.len(), list);
    let walked = walk(list);
    assert!(walked.iter().map(|connection| connection.name.as_str()).eq(names), "each once and by name");

    let store = deliveries();
    let filter = DeliveryFilter::default();
    let list = |page| now(store.deliveries(&filter, page));
    any_cursor_is_taken_or_refused(&cursor, DELIVERIES, list);
    let queue = |page| now(store.queue(QUEUE, page));
    any_cursor_is_taken_or_refused(&cursor, DELIVERIES, queue);
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        assert!(
            walk(list).iter().rev().map(|delivery| delivery.id).eq((1..=DELIVERIES as u128).map(DeliveryId::from_u128))
        );
        assert!(walk(queue).iter().map(|delivery| delivery.id).eq((1..=DELIVERIES as u128).map(DeliveryId::from_u128)));
    });
}

fn any_cursor_is_taken_or_refused<T>(
    cursor: &str,
    rows: usize,
    list: impl Fn(PageRequest) -> Result<Page<T>, StoreError>,
) {
    match list(PageRequest { limit: 2, cursor: Some(cursor.to_owned()) }) {
        Ok(page) => {
            assert!(page.items.len() <= rows.min(2));
            assert!(page.next_cursor.is_none() || page.items.len() == 2, "more follow a full page only");
        }
        Err(StoreError::NotFound { what: "page" | "cursor" }) => {}
        Err(error) => panic!("{cursor:?}: {error}"),
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

fn connections(names: &[&str]) -> MemoryStore {
    let store = MemoryStore::default();
    let project = Project { id: PROJECT, name: "default".to_owned(), created_at: NOW };
    now(store.create_project(project)).expect("the project is new");
    for (number, name) in (1..).zip(names) {
        let written = Map::from_iter(
            [("host", json!("https://api.example.org")), ("url_path", json!("/")), ("use_queue", Value::Bool(true))]
                .map(|(key, value)| (key.to_owned(), value)),
        );
        let connection = Connection {
            id: ConnectionId::from_u128(number),
            project_id: PROJECT,
            name: (*name).to_owned(),
            spec: ConnectionSpec::parse(ConnectionKind::Rest, &written).expect("the settings are whole"),
            written,
            paused: false,
            version: 1,
            created_at: NOW,
            updated_at: NOW,
        };
        now(store.create_connection(&connection)).expect("the name is new");
    }
    store
}

/// One store with a few deliveries, made once: reading does not change it.
fn deliveries() -> &'static MemoryStore {
    static STORE: OnceLock<MemoryStore> = OnceLock::new();
    STORE.get_or_init(|| {
        let store = connections(&["billing"]);
        let batch = (1..=DELIVERIES as u128).map(|number| NewDelivery {
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
        });
        now(store.enqueue(batch.collect())).expect("there is room");
        store
    })
}

/// The store in memory never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("the store in memory never waits")
}
