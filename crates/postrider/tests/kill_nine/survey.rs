//! At the end: waits until everything has come to rest, then reads every delivery, attempt and topic message over the API into the books.
//!
//! It must not know what is right.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::books::{EDITED, Letter, Listed, Shared, Try};
use crate::harness::Api;
use crate::scenario::{PLANS, Plan, TOPIC};

const BASE: &str = "/api/v1/projects/default";
const STATUSES: [&str; 8] = ["PENDING", "PROCESSING", "SUCCESS", "FAILED", "DLQ", "DISCARDED", "FORWARDED", "EXPIRED"];
const REST_WITHIN: Duration = Duration::from_secs(300);
/// Attempts are read by so many at a time.
const READERS: usize = 8;

/// Nothing waits, and no dead letter has an action before it.
pub async fn wait_for_rest(api: &Api) {
    let deadline = Instant::now() + REST_WITHIN;
    for plan in &PLANS {
        while !at_rest(api, plan).await {
            assert!(Instant::now() < deadline, "{} has not come to rest within {REST_WITHIN:?}", plan.name);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn at_rest(api: &Api, plan: &Plan) -> bool {
    let queue = format!("/connections/{}/queue?limit=1", plan.name);
    if !rows(&read(api, &queue).await).is_empty() {
        return false;
    }
    if !plan.dlq_empties {
        return true;
    }
    // A retry may lie between the two: the queue is read again.
    rows(&read(api, &format!("/connections/{}/dlq?limit=1", plan.name)).await).is_empty()
        && rows(&read(api, &queue).await).is_empty()
}

pub async fn survey(api: &Api, books: &Shared) {
    let mut listed = Vec::new();
    for plan in &PLANS {
        for status in STATUSES {
            let path = format!("/deliveries?connection={}&status={status}", plan.name);
            listed.extend(pages(api, &path).await.iter().map(|item| as_listed(item, plan.name, status)));
        }
    }
    let per_reader = listed.len().div_ceil(READERS).max(1);
    let readers: Vec<_> =
        listed.chunks(per_reader).map(|part| tokio::spawn(with_attempts(api.clone(), part.to_vec()))).collect();
    let mut complete = Vec::new();
    for reader in readers {
        complete.extend(reader.await.unwrap());
    }
    let letters = pages(api, &format!("/topics/{TOPIC}/messages?")).await.iter().map(as_letter).collect();
    let mut books = books.open();
    books.listed = complete;
    books.letters = letters;
}

/// `status` is the one that was asked for: what the row says of itself must be the same.
fn as_listed(item: &Value, connection: &'static str, status: &str) -> Listed {
    let says = item["status"].as_str().unwrap_or_default();
    Listed {
        id: text(item, "id"),
        connection,
        status: if says == status { status.to_owned() } else { format!("{says} under {status}") },
        attempts: item["attempts"].as_u64().unwrap_or_default(),
        tries: Vec::new(),
        has_note: ["failure", "error", "deadAt"].iter().all(|field| item[field].is_string())
            && item["rounds"].as_u64().is_some(),
    }
}

async fn with_attempts(api: Api, mut listed: Vec<Listed>) -> Vec<Listed> {
    for item in &mut listed {
        let attempts = read(&api, &format!("/deliveries/{}/attempts", item.id)).await;
        item.tries = rows(&attempts).iter().map(as_try).collect();
    }
    listed
}

fn as_try(attempt: &Value) -> Try {
    Try {
        number: attempt["number"].as_u64().unwrap_or_default(),
        status: attempt["status"].as_u64().and_then(|status| u16::try_from(status).ok()),
        interrupted: attempt["failure"] == "interrupted",
    }
}

fn as_letter(message: &Value) -> Letter {
    Letter {
        id: text(message, "id"),
        key: text(message, "body").trim_matches('"').trim_end_matches(EDITED).to_owned(),
        has_note: message["headers"]["x-postrider-dlq-reason"].is_string(),
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

async fn pages(api: &Api, path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = read(api, &format!("{path}&limit=1000{cursor}")).await;
        all.extend_from_slice(rows(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

async fn read(api: &Api, path: &str) -> Value {
    let path = format!("{BASE}{}", path.replace("?&", "?"));
    let (status, body) = api.call("GET", &path, "").await.unwrap();
    assert_eq!(status, 200, "GET {path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn rows(page: &Value) -> &[Value] {
    page["data"].as_array().map_or(&[], Vec::as_slice)
}
