//! What a filter asks beyond id, project, connection, status and time of arrival, as SQL. It must not know in which order rows are read.

use postrider_core::Timestamp;
use rusqlite::types::Value;

use super::rows::key;
use crate::filter::label_condition;
use crate::{CountColumn, CountRange, DeliveryFilter, TimeColumn, TimeRange};

/// The first parameter that a condition may use; those before are the stream's.
pub(super) const FIRST_FREE: usize = 7;

/// ` AND … AND …`, with the values of its parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    pub sql: String,
    pub values: Vec<Value>,
    /// Needs a look at rows that it may not let through.
    scans: bool,
}

impl Conditions {
    pub fn of(filter: &DeliveryFilter) -> Self {
        let mut made = Conditions::default();
        if let Some(label) = filter.label {
            made.scans = true;
            made.sql.push_str(&label_condition(label));
        }
        made.scan_for_text("failure =", filter.failure.map(|failure| failure.as_str()));
        made.scan_for_text("cid =", filter.cid.as_deref());
        made.scan_for_text("event_type =", filter.event_type.as_deref());
        if let Some(id) = filter.event_id {
            made.scan("event_id =", Value::Blob(key(id.as_u128()).to_vec()));
        }
        if let Some(id) = filter.subscription_id {
            made.scan("subscription_id =", Value::Blob(key(id.as_u128()).to_vec()));
        }
        made.scan_for_text("origin =", filter.origin.map(|origin| origin.as_str()));
        made.scan_for_text("json_extract(head, '$.method') =", filter.method.as_deref());
        made.scan_for_text("coalesce(json_extract(head, '$.path'), '') =", filter.path.as_deref());
        if let Some(part) = &filter.error_text {
            made.scan("instr(lower(error), lower(", Value::Text(part.clone()));
            made.sql.push_str(")) > 0");
        }
        if let Some(edited) = filter.edited {
            made.scans = true;
            made.sql.push_str(if edited {
                " AND original_body_id IS NOT NULL"
            } else {
                " AND original_body_id IS NULL"
            });
        }
        filter.times.iter().for_each(|range| made.time(range));
        filter.counts.iter().for_each(|range| made.count(range));
        made
    }

    /// An index answers it all.
    pub fn is_empty(&self) -> bool {
        !self.scans
    }

    fn add(&mut self, condition: &str, value: Value) {
        let number = FIRST_FREE + self.values.len();
        self.sql.push_str(&format!(" AND {condition} ?{number}"));
        self.values.push(value);
    }

    fn scan(&mut self, condition: &str, value: Value) {
        self.scans = true;
        self.add(condition, value);
    }

    fn scan_for_text(&mut self, condition: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.scan(condition, Value::Text(text.to_owned()));
        }
    }

    fn time(&mut self, range: &TimeRange) {
        let column = match range.column {
            TimeColumn::LastAttempt => "last_attempt_at",
            TimeColumn::NextAttempt => "due_at",
            TimeColumn::Delivered => "delivered_at",
            TimeColumn::Dead => "dead_at",
            TimeColumn::Ended => "ended_at",
        };
        self.scans = true;
        self.sql.push_str(&format!(" AND {column} IS NOT NULL"));
        match range.column {
            TimeColumn::NextAttempt => self.sql.push_str(" AND status = 'PENDING'"),
            TimeColumn::Dead => self.sql.push_str(" AND status = 'DLQ'"),
            TimeColumn::LastAttempt | TimeColumn::Delivered | TimeColumn::Ended => {}
        }
        let millis = |time: Timestamp| Value::Integer(time.as_millis());
        if let Some(from) = range.from {
            self.scan(&format!("{column} >="), millis(from));
        }
        if let Some(before) = range.before {
            self.scan(&format!("{column} <"), millis(before));
        }
    }

    fn count(&mut self, range: &CountRange) {
        let column = match range.column {
            CountColumn::Attempts => "attempts",
            CountColumn::Rounds => "rounds",
            CountColumn::BodyBytes => "body_bytes",
            CountColumn::DlqRetries => "dlq_retries",
        };
        let count = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
        if let Some(min) = range.min {
            self.scan(&format!("{column} >="), count(min));
        }
        if let Some(max) = range.max {
            self.scan(&format!("{column} <="), count(max));
        }
    }
}
