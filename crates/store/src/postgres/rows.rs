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
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::columns::Columns;
use super::key::Key;
use crate::StoreError;

/// What never changes.
pub(super) const FIXED: &str = "id, project_id, connection_id, cid, cid_given, origin, created_at, head, event_id, event_type, happened_at, subscription_id, \
     payload, line, ladder";
/// What a settlement may change; in the order of `push_changing`.
pub(super) const CHANGING: &str = "body_id, body_bytes, original_body_id, version, recorded, status, attempts, rounds, round_attempts, \
     round_waited_ms, allowed_attempts, interruptions, due_at, age_from, last_attempt_at, failure, error, dead_at, dlq_retries, \
     dlq_note, delivered_at, ended_at, counted_at";

/// The columns of `read_delivery`, for a hot row and for a log row.
pub(super) fn hot_columns() -> String {
    format!("{FIXED}, {CHANGING}, position")
}
pub(super) fn log_columns() -> String {
    format!("{FIXED}, {CHANGING}, NULL::bigint")
}

/// Each of these column names with this before it.
pub(super) fn prefixed(prefix: &str, columns: &str) -> String {
    let columns: Vec<String> = columns.split(", ").map(|column| format!("{prefix}{}", column.trim())).collect();
    columns.join(", ")
}

/// PostgreSQL has signed numbers only. Nothing that is counted here comes near the limit.
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

pub(super) fn push_changing<'a>(to: &mut Columns<'a>, row: &Changing<'a>) {
    let p = row.progress;
    to.key(row.body_id);
    to.int(signed(row.body_bytes));
    to.optional_key(row.original_body_id);
    to.int(row.version);
    to.int(row.recorded);
    to.text(p.status.as_str());
    to.int(p.attempts);
    to.int(p.rounds);
    to.int(p.round_attempts);
    to.int(signed(p.round_waited.as_millis()));
    to.optional_int(p.allowed_attempts);
    to.int(p.interruptions);
    to.time(p.due_at);
    to.time(p.age_from);
    to.optional_time(p.last_attempt_at);
    to.optional_text(p.failure.map(Failure::as_str));
    to.optional_text(p.error.as_deref());
    to.optional_time(p.dead_at);
    to.int(p.dlq_retries);
    to.optional_text(p.dlq_note.as_deref());
    to.optional_time(p.delivered_at);
    to.optional_time(p.ended_at);
    to.optional_int(p.counting.stored());
}

pub(super) fn read_delivery(row: &Row) -> Result<Delivery, StoreError> {
    read_delivery_at(&mut Cells { row, next: 0 })
}

pub(super) fn read_delivery_at(at: &mut Cells<'_>) -> Result<Delivery, StoreError> {
    let id = DeliveryId::from_u128(at.id()?);
    let project_id = ProjectId::from_u128(at.id()?);
    let connection_id = ConnectionId::from_u128(at.id()?);
    let cid = Cid::from_stored(at.text()?);
    let _cid_given: Option<bool> = at.take()?;
    let origin = at.word(Origin::parse)?;
    let created_at = at.time()?;
    let head = from_json(at.text()?, "a request's head")?;
    let event = read_event(at)?;
    let ladder: Option<String> = at.take()?;
    let body_id = BodyId::from_u128(at.id()?);
    let body_bytes = at.count()?;
    let original_body_id = at.optional_id()?.map(BodyId::from_u128);
    let version = at.number()?;
    let _recorded = at.number::<u32>()?;
    let progress = read_progress(at)?;
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
fn read_event(at: &mut Cells<'_>) -> Result<Option<EventRef>, StoreError> {
    let (id, event_type, happened_at) = (at.optional_id()?, at.take::<Option<String>>()?, at.optional_time()?);
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

fn read_progress(at: &mut Cells<'_>) -> Result<Progress, StoreError> {
    Ok(Progress {
        status: at.word(Status::parse)?,
        attempts: at.number()?,
        rounds: at.number()?,
        round_attempts: at.number()?,
        round_waited: Wait::from_millis(at.count()?),
        allowed_attempts: at.optional_number()?,
        interruptions: at.number()?,
        due_at: at.time()?,
        age_from: at.time()?,
        last_attempt_at: at.optional_time()?,
        failure: at.optional_word(Failure::parse)?,
        error: at.take()?,
        dead_at: at.optional_time()?,
        dlq_retries: at.number()?,
        dlq_note: at.take()?,
        delivered_at: at.optional_time()?,
        ended_at: at.optional_time()?,
        counting: Counting::from_stored(at.take()?),
    })
}

pub(super) const ATTEMPT: &str =
    "number, started_at, took_ms, failure, status, error, response_headers, response_body, response_bytes, incomplete";

pub(super) fn push_attempt<'a>(to: &mut Columns<'a>, id: DeliveryId, attempt: &'a Attempt) -> Result<(), StoreError> {
    to.key(id);
    to.int(attempt.number);
    to.time(attempt.started_at);
    to.int(signed(attempt.took.as_millis()));
    to.optional_text(attempt.failure.map(Failure::as_str));
    to.optional_int(attempt.status);
    to.optional_text(attempt.error.as_deref());
    to.text(json(&attempt.response_headers)?);
    to.bytes(&attempt.response_body);
    to.int(signed(attempt.response_bytes));
    to.flag(attempt.incomplete);
    Ok(())
}

pub(super) fn read_attempt(row: &Row) -> Result<Attempt, StoreError> {
    let mut at = Cells { row, next: 0 };
    Ok(Attempt {
        number: at.number()?,
        started_at: at.time()?,
        took: Wait::from_millis(at.count()?),
        failure: at.optional_word(Failure::parse)?,
        status: at.optional_number()?,
        error: at.take()?,
        response_headers: from_json(at.text()?, "an attempt's headers")?,
        response_body: at.body()?,
        response_bytes: at.count()?,
        incomplete: at.take()?,
    })
}

pub(super) const CONNECTION: &str = "id, project_id, kind, name, written, paused, version, created_at, updated_at";

pub(super) fn read_connection(row: &Row) -> Result<Connection, StoreError> {
    let mut at = Cells { row, next: 0 };
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
        version: at.number()?,
        created_at: at.time()?,
        updated_at: at.time()?,
    })
}

/// Reads a row's columns from left to right.
pub(super) struct Cells<'r> {
    pub row: &'r Row,
    pub next: usize,
}

impl<'r> Cells<'r> {
    pub fn of(row: &'r Row) -> Self {
        Cells { row, next: 0 }
    }

    pub fn take<T: FromSql<'r>>(&mut self) -> Result<T, StoreError> {
        let value =
            self.row.try_get(self.next).map_err(|error| StoreError::Corrupt(super::failures::causes(&error)))?;
        self.next += 1;
        Ok(value)
    }

    pub fn text(&mut self) -> Result<&'r str, StoreError> {
        self.take()
    }

    pub fn body(&mut self) -> Result<Bytes, StoreError> {
        Ok(Bytes::copy_from_slice(self.take::<&[u8]>()?))
    }

    pub fn id(&mut self) -> Result<u128, StoreError> {
        Ok(self.take::<Key>()?.number())
    }

    pub fn optional_id(&mut self) -> Result<Option<u128>, StoreError> {
        Ok(self.take::<Option<Key>>()?.map(Key::number))
    }

    pub fn count(&mut self) -> Result<u64, StoreError> {
        unsigned(self.take()?)
    }

    /// Every number is stored as `bigint`; this one is read as a smaller one.
    pub fn number<T: TryFrom<i64>>(&mut self) -> Result<T, StoreError> {
        narrowed(self.take()?)
    }

    pub fn optional_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, StoreError> {
        self.take::<Option<i64>>()?.map(narrowed).transpose()
    }

    pub fn time(&mut self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_millis(self.take()?))
    }

    pub fn optional_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_millis))
    }

    pub fn word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
        let text = self.text()?;
        parse(text).ok_or_else(|| StoreError::Corrupt(format!("the word `{text}`")))
    }

    pub fn optional_word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, StoreError> {
        let text: Option<&str> = self.take()?;
        text.map(|text| parse(text).ok_or_else(|| StoreError::Corrupt(format!("the word `{text}`")))).transpose()
    }
}

fn narrowed<T: TryFrom<i64>>(stored: i64) -> Result<T, StoreError> {
    T::try_from(stored).map_err(|_| StoreError::Corrupt(format!("the number {stored}")))
}
