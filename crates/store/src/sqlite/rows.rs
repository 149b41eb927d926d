//! Rows into values and values into rows. It must not know in which verb a row is read.

use bytes::Bytes;
use postrider_core::attempt::Attempt;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::delivery::{Delivery, EventRef, Origin, Position, Progress, Status};
use postrider_core::envelope::Payload;
use postrider_core::health::Counting;
use postrider_core::id::{BodyId, Cid, ConnectionId, DeliveryId, EventId, ProjectId, SubscriptionId};
use postrider_core::ordering::Line;
use postrider_core::{Failure, Timestamp, Wait};
use rusqlite::types::FromSql;
use rusqlite::{Row, ToSql};
use serde::de::DeserializeOwned;

use super::work::Binder;
use crate::StoreError;

/// What never changes.
pub(super) const FIXED: &str = "id, project_id, connection_id, cid, cid_given, origin, created_at, head, event_id, event_type, happened_at, subscription_id, \
     payload, line, ladder";
/// What a settlement may change; in the order of `bind_changing`.
pub(super) const CHANGING: &str = "body_id, body_bytes, original_body_id, version, recorded, status, attempts, rounds, round_attempts, \
     round_waited_ms, allowed_attempts, interruptions, due_at, age_from, last_attempt_at, failure, error, dead_at, dlq_retries, \
     dlq_note, delivered_at, ended_at, counted_at";
pub(super) const FIXED_COLUMNS: usize = 15;
pub(super) const CHANGING_COLUMNS: usize = 23;

/// The columns of `read_delivery`, for a hot row and for a log row.
pub(super) fn hot_columns() -> String {
    format!("{FIXED}, {CHANGING}, position")
}
pub(super) fn log_columns() -> String {
    format!("{FIXED}, {CHANGING}, NULL")
}

pub(super) const POSITION_COLUMN: usize = FIXED_COLUMNS + CHANGING_COLUMNS;

/// An id as it is stored.
pub(super) const fn key(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

pub(super) const fn id_of(key: [u8; 16]) -> u128 {
    u128::from_be_bytes(key)
}

/// SQLite has signed numbers only. Nothing that is counted here comes near the limit.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(stored: i64) -> Result<u64, StoreError> {
    u64::try_from(stored).map_err(|_| StoreError::Corrupt(format!("{stored} is no count")))
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(format!("cannot be written as JSON: {error}")))
}

pub(super) fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{what}: {error}")))
}

/// What a settlement may change, besides `Progress`.
pub(super) struct Changing<'a> {
    pub body_id: BodyId,
    pub body_bytes: u64,
    pub original_body_id: Option<BodyId>,
    pub version: u32,
    /// Attempts on record.
    pub recorded: u32,
    pub progress: &'a Progress,
}

pub(super) fn bind_changing(to: &mut Binder<'_, '_>, row: &Changing<'_>) -> Result<(), StoreError> {
    let p = row.progress;
    to.push(key(row.body_id.as_u128()))?;
    to.push(signed(row.body_bytes))?;
    to.push(row.original_body_id.map(|id| key(id.as_u128())))?;
    to.push(row.version)?;
    to.push(row.recorded)?;
    to.push(p.status.as_str())?;
    to.push(p.attempts)?;
    to.push(p.rounds)?;
    to.push(p.round_attempts)?;
    to.push(signed(p.round_waited.as_millis()))?;
    to.push(p.allowed_attempts)?;
    to.push(p.interruptions)?;
    to.push(p.due_at.as_millis())?;
    to.push(p.age_from.as_millis())?;
    to.push(p.last_attempt_at.map(Timestamp::as_millis))?;
    to.push(p.failure.map(Failure::as_str))?;
    to.push(p.error.as_deref())?;
    to.push(p.dead_at.map(Timestamp::as_millis))?;
    to.push(p.dlq_retries)?;
    to.push(p.dlq_note.as_deref())?;
    to.push(p.delivered_at.map(Timestamp::as_millis))?;
    to.push(p.ended_at.map(Timestamp::as_millis))?;
    to.push(p.counting.stored())
}

pub(super) fn read_delivery(row: &Row<'_>) -> Result<Delivery, StoreError> {
    let mut at = Columns { row, next: 0 };
    let id = DeliveryId::from_u128(at.id()?);
    let project_id = ProjectId::from_u128(at.id()?);
    let connection_id = ConnectionId::from_u128(at.id()?);
    let cid = Cid::from_stored(at.text()?);
    let _cid_given: Option<bool> = at.take()?;
    let origin = at.word(Origin::parse)?;
    let created_at = Timestamp::from_millis(at.take()?);
    let head = from_json(at.text()?, "a request's head")?;
    let event = read_event(&mut at)?;
    let ladder: Option<String> = at.take()?;
    let body_id = BodyId::from_u128(at.id()?);
    let body_bytes = unsigned(at.take()?)?;
    let original_body_id = at.optional_id()?.map(BodyId::from_u128);
    let version = at.take()?;
    let _recorded: u32 = at.take()?;
    let progress = read_progress(&mut at)?;
    let position = at.take::<Option<i64>>()?.map(Position);
    Ok(Delivery {
        id,
        project_id,
        connection_id,
        cid,
        origin,
        created_at,
        head,
        body_id,
        body_bytes,
        original_body_id,
        event,
        ladder: ladder.map(|text| from_json(&text, "a ladder")).transpose()?,
        position,
        version,
        progress,
    })
}

/// All of its columns are set, or none.
fn read_event(at: &mut Columns<'_, '_>) -> Result<Option<EventRef>, StoreError> {
    let (id, event_type, happened_at) = (at.optional_id()?, at.take()?, at.time()?);
    let (subscription_id, payload) = (at.optional_id()?, at.optional_word(Payload::parse)?);
    let line = at.take::<Option<i64>>()?.map(Line);
    Ok(match (id, event_type, happened_at, subscription_id, payload) {
        (Some(id), Some(event_type), Some(happened_at), Some(subscription_id), Some(payload)) => Some(EventRef {
            id: EventId::from_u128(id),
            event_type,
            happened_at,
            subscription_id: SubscriptionId::from_u128(subscription_id),
            payload,
            line,
        }),
        _ => None,
    })
}

fn read_progress(at: &mut Columns<'_, '_>) -> Result<Progress, StoreError> {
    Ok(Progress {
        status: at.word(Status::parse)?,
        attempts: at.take()?,
        rounds: at.take()?,
        round_attempts: at.take()?,
        round_waited: Wait::from_millis(unsigned(at.take()?)?),
        allowed_attempts: at.take()?,
        interruptions: at.take()?,
        due_at: Timestamp::from_millis(at.take()?),
        age_from: Timestamp::from_millis(at.take()?),
        last_attempt_at: at.time()?,
        failure: at.optional_word(Failure::parse)?,
        error: at.take()?,
        dead_at: at.time()?,
        dlq_retries: at.take()?,
        dlq_note: at.take()?,
        delivered_at: at.time()?,
        ended_at: at.time()?,
        counting: Counting::from_stored(at.take()?),
    })
}

pub(super) const ATTEMPT: &str =
    "number, started_at, took_ms, failure, status, error, response_headers, response_body, response_bytes, incomplete";
/// With `delivery_id` in front.
pub(super) const ATTEMPT_COLUMNS: usize = 11;

pub(super) fn bind_attempt(to: &mut Binder<'_, '_>, id: DeliveryId, attempt: &Attempt) -> Result<(), StoreError> {
    to.push(key(id.as_u128()))?;
    to.push(attempt.number)?;
    to.push(attempt.started_at.as_millis())?;
    to.push(signed(attempt.took.as_millis()))?;
    to.push(attempt.failure.map(Failure::as_str))?;
    to.push(attempt.status)?;
    to.push(attempt.error.as_deref())?;
    to.push(json(&attempt.response_headers)?)?;
    to.push(&attempt.response_body[..])?;
    to.push(signed(attempt.response_bytes))?;
    to.push(attempt.incomplete)
}

pub(super) fn read_attempt(row: &Row<'_>) -> Result<Attempt, StoreError> {
    let mut at = Columns { row, next: 0 };
    Ok(Attempt {
        number: at.take()?,
        started_at: Timestamp::from_millis(at.take()?),
        took: Wait::from_millis(unsigned(at.take()?)?),
        failure: at.optional_word(Failure::parse)?,
        status: at.take()?,
        error: at.take()?,
        response_headers: from_json(at.text()?, "an attempt's headers")?,
        response_body: Bytes::from(at.take::<Vec<u8>>()?),
        response_bytes: unsigned(at.take()?)?,
        incomplete: at.take()?,
    })
}

pub(super) const CONNECTION: &str = "id, project_id, kind, name, written, paused, version, created_at, updated_at";

pub(super) fn read_connection(row: &Row<'_>) -> Result<Connection, StoreError> {
    let mut at = Columns { row, next: 0 };
    let id = ConnectionId::from_u128(at.id()?);
    let project_id = ProjectId::from_u128(at.id()?);
    let kind = at.word(ConnectionKind::parse)?;
    let name: String = at.take()?;
    let written = from_json(at.text()?, "a connection's settings")?;
    let spec = ConnectionSpec::parse(kind, &written).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StoreError::Corrupt(format!("the settings of connection `{name}`: {}", errors.join("; ")))
    })?;
    Ok(Connection {
        id,
        project_id,
        name,
        written,
        spec,
        paused: at.take()?,
        version: at.take()?,
        created_at: Timestamp::from_millis(at.take()?),
        updated_at: Timestamp::from_millis(at.take()?),
    })
}

/// Reads a row's columns from left to right.
pub(super) struct Columns<'r, 's> {
    pub row: &'r Row<'s>,
    pub next: usize,
}

impl<'r> Columns<'r, '_> {
    pub fn take<T: FromSql>(&mut self) -> Result<T, StoreError> {
        let value = self.row.get(self.next)?;
        self.next += 1;
        Ok(value)
    }

    pub fn text(&mut self) -> Result<&'r str, StoreError> {
        let value = self.row.get_ref(self.next)?;
        self.next += 1;
        value.as_str().map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    pub fn id(&mut self) -> Result<u128, StoreError> {
        Ok(id_of(self.take()?))
    }

    pub fn optional_id(&mut self) -> Result<Option<u128>, StoreError> {
        Ok(self.take::<Option<[u8; 16]>>()?.map(id_of))
    }

    pub fn time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_millis))
    }

    pub fn word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
        let text = self.text()?;
        parse(text).ok_or_else(|| StoreError::Corrupt(format!("the word `{text}`")))
    }

    pub(super) fn optional_word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.take()?;
        text.map(|text| parse(&text).ok_or_else(|| StoreError::Corrupt(format!("the word `{text}`")))).transpose()
    }
}

/// All rows of a query on a reader's connection.
pub(super) fn read_all<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    params: &[&dyn ToSql],
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The first row of a query, if there is one.
pub(super) fn read_one<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    params: &[&dyn ToSql],
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}
