//! What people did (the audit log) and what was wrong (alerts), newest first. It must not know who writes either.

use axum::response::Response;
use postrider_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::fault::{Fault, sentence};
use super::listing::{Cell, Empty, Listing, column};
use super::parts::{Badge, Moment, Paging, Tone};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    at: Timestamp,
    actor: Actor,
    action: String,
    object: Option<String>,
    object_name: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
    times: u64,
}

#[derive(Deserialize)]
struct Actor {
    name: String,
    address: Option<String>,
}

#[derive(Deserialize)]
struct Entries {
    data: Vec<Entry>,
    next_cursor: Option<String>,
}

/// Keys whose value is not the same before and after, each in a line.
fn difference(before: Option<&Value>, after: Option<&Value>) -> String {
    let of = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (of(before), of(after));
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let changed = names.filter(|name| before.get(*name) != after.get(*name)).map(|name| {
        let shown = |value: Option<&Value>| value.map_or_else(|| "not set".to_owned(), Value::to_string);
        format!("{name}: {} → {}", shown(before.get(name)), shown(after.get(name)))
    });
    let all: Vec<String> = changed.collect();
    let text = all.join("; ");
    if text.chars().count() > 300 { text.chars().take(300).collect::<String>() + "…" } else { text }
}

pub async fn audit(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let path = visit.of_project(format!("/audit?limit=100{more}"));
    let found: Entries = visit.api.get(&path).await?;
    let now = visit.now();
    let rows = found.data.iter().map(|entry| {
        let times = if entry.times > 1 { format!(" ({} times)", entry.times) } else { String::new() };
        let object = entry.object_name.clone().or_else(|| entry.object.clone()).unwrap_or_default();
        vec![
            Cell::Time(Some(Moment { at: entry.at, now })),
            Cell::Two(entry.actor.name.clone(), entry.actor.address.clone().unwrap_or_default()),
            Cell::Text(format!("{}{times}", entry.action)),
            Cell::Two(object, difference(entry.before.as_ref(), entry.after.as_ref())),
        ]
    });
    show(&Listing {
        title: "Audit log".to_owned(),
        intro: "Who changed what, who looked at a body, and what was refused.".to_owned(),
        heads: Vec::new(),
        columns: vec![column("When"), column("Who"), column("What"), column("To what")],
        order: None,
        rows: rows.collect(),
        paging: Paging::of(&visit.page_of_project("/audit"), cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty { title: "Nothing yet", text: "Every change that somebody makes stands here.", example: "" },
        frame: visit.frame("Audit log", "audit").await?,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    state: String,
    connection: Option<String>,
    detail: String,
    action: String,
    raised_at: Timestamp,
    recovered_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Alerts {
    data: Vec<Alert>,
    next_cursor: Option<String>,
}

pub async fn alerts(mut visit: Visit) -> Result<Response, Fault> {
    let cursor = visit.query.take("cursor");
    let more = cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
    let path = visit.of_project(format!("/alerts?limit=100{more}"));
    let found: Alerts = visit.api.get(&path).await?;
    let now = visit.now();
    let rows = found.data.iter().map(|alert| {
        let (tone, word) = if alert.state == "open" { (Tone::Bad, "open") } else { (Tone::Quiet, "over") };
        let todo = if alert.state == "open" { sentence(&alert.action) } else { String::new() };
        vec![
            Cell::Two(sentence(&alert.detail), todo),
            Cell::State(Badge { tone, word }),
            Cell::Text(alert.connection.clone().unwrap_or_default()),
            Cell::Time(Some(Moment { at: alert.raised_at, now })),
            Cell::Time(alert.recovered_at.map(|at| Moment { at, now })),
        ]
    });
    show(&Listing {
        title: "Alerts".to_owned(),
        intro: "Somebody is told once when a threshold is crossed, and once when it has recovered. The thresholds are settings of the project."
            .to_owned(),
        heads: Vec::new(),
        columns: vec![column("What"), column("State"), column("Connection"), column("Raised"), column("Recovered")],
        order: None,
        rows: rows.collect(),
        paging: Paging::of(&visit.page_of_project("/alerts"), cursor.as_deref(), found.next_cursor.as_deref()),
        empty: Empty { title: "No alert yet", text: "Nothing has been blocked, late or dead for longer than the project allows.", example: "" },
        frame: visit.frame("Alerts", "alerts").await?,
    })
}

#[cfg(test)]
mod tests {
    use super::difference;
    use serde_json::json;

    #[test]
    fn a_change_is_told_by_what_differs() {
        let (before, after) = (json!({"a": 1, "b": 2, "gone": true}), json!({"a": 1, "b": 3, "new": "x"}));
        assert_eq!(difference(Some(&before), Some(&after)), "b: 2 → 3; gone: true → not set; new: not set → \"x\"");
        assert_eq!(difference(None, None), "");
    }
}
