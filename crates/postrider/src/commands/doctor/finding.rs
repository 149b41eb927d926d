//! One thing that was looked at, how it is, and what to do about it.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Nothing is wrong, and yet somebody may want to know.
    Note,
    Wrong,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub level: Level,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

impl Finding {
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { check, level: Level::Ok, detail: detail.into(), action: None }
    }

    pub fn note(check: &'static str, detail: impl Into<String>, action: impl Into<String>) -> Finding {
        Finding { check, level: Level::Note, detail: detail.into(), action: Some(action.into()) }
    }

    pub fn wrong(check: &'static str, detail: impl Into<String>, action: impl Into<String>) -> Finding {
        Finding { check, level: Level::Wrong, detail: detail.into(), action: Some(action.into()) }
    }
}

/// At most a few names in one line.
pub fn listed(names: &[String]) -> String {
    const SHOWN_MAX: usize = 10;
    let shown: Vec<String> = names.iter().take(SHOWN_MAX).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(SHOWN_MAX);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
