//! What is wrong with a file, or worth a word: where, what, and what is allowed instead. It must not know how people are told.

use postrider_core::SettingError;
use serde_json::{Value, json};

use crate::document::Place;

/// So many are told of one file; the rest is counted.
pub const FINDINGS_SHOWN_MAX: usize = 1000;

/// An error or a warning about one place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub place: Place,
    /// Such as `outgoing_rest[2].max_retries`, counted from 0; empty for the file as a whole.
    pub path: String,
    /// What was wrong, and what is allowed, in one sentence.
    pub message: String,
    pub allowed: Option<String>,
}

/// A file that is refused: everything that is wrong with it, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} in the configuration; nothing was applied", counted(.0.len()))]
pub struct Refused(pub Vec<Finding>);

fn counted(errors: usize) -> String {
    if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") }
}

impl Finding {
    pub fn new(place: Place, path: impl Into<String>, message: impl Into<String>) -> Self {
        Finding { place, path: path.into(), message: message.into(), allowed: None }
    }

    #[must_use]
    pub fn allowing(self, allowed: impl Into<String>) -> Self {
        Finding { allowed: Some(allowed.into()), ..self }
    }

    pub fn refused(place: Place, path: impl Into<String>, error: &SettingError) -> Self {
        Finding::new(place, path, error.to_string()).allowing(&error.allowed)
    }

    /// `FILE:LINE:COLUMN: path: message`, as compilers write it, so that editors jump there.
    pub fn line(&self, file: &str) -> String {
        let Place { line, column } = self.place;
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        format!("{file}:{line}:{column}: {path}{}", self.message)
    }

    /// A member of a problem's `errors`, or of the answer's `warnings`.
    pub fn to_json(&self) -> Value {
        json!({
            "field": self.path,
            "message": self.message,
            "allowed": self.allowed,
            "line": self.place.line,
            "column": self.place.column,
        })
    }
}

/// In the order of the file, each once.
pub fn in_order(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| (a.place, &a.path, &a.message).cmp(&(b.place, &b.path, &b.message)));
    findings.dedup();
    findings
}
