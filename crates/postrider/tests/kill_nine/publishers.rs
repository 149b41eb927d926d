//! Those who ask: a publisher for each connection, and callers who wait for the outcome, until the server no longer answers.
//!
//! It must not know what becomes of a request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::books::{Id, Shared, Told};
use crate::harness::Api;
use crate::scenario::{PLANS, key};

/// The next number of each connection's requests.
#[derive(Clone)]
pub struct Numbers(Arc<BTreeMap<&'static str, AtomicU64>>);

impl Numbers {
    pub fn new() -> Numbers {
        Numbers(Arc::new(PLANS.iter().map(|plan| (plan.name, AtomicU64::new(0))).collect()))
    }
}

#[derive(Clone, Copy)]
pub enum How {
    Publish,
    Send,
}

/// Each waits for the answer before the next, so that the order of acceptance is known.
pub async fn ask_until_killed(api: Api, books: Shared, numbers: Numbers, connection: &'static str, how: How) {
    let verb = match how {
        How::Publish => "publish",
        How::Send => "send",
    };
    let path = format!("/api/v1/projects/default/connections/{connection}/{verb}");
    loop {
        let key = key(connection, numbers.0[connection].fetch_add(1, Ordering::Relaxed));
        let asked = books.tick();
        let answer = api.call("POST", &path, &format!(r#"{{"body":"{key}"}}"#)).await;
        let mut books = books.open();
        let Ok((status, text)) = answer else {
            books.note_told(connection, key, asked, Told::Nothing);
            return;
        };
        match told(status, &text, how) {
            Some(told) => books.note_told(connection, key, asked, told),
            None => {
                books.complaints.push(format!("{verb} {key} was answered {status} {text}"));
                books.note_told(connection, key, asked, Told::Nothing);
            }
        }
    }
}

/// `None`: an answer that no request of this run may get.
fn told(status: u16, text: &str, how: How) -> Option<Told> {
    let result: Value = serde_json::from_str(text).ok()?;
    let id: Id = result["msg_id"].as_str()?.to_owned();
    let flags = ["is_ok", "is_in_queue", "is_in_dlq"].map(|flag| result[flag].as_bool().unwrap_or(false));
    match (status, flags, how) {
        (202, [false, true, false], _) => Some(Told::Queued(id)),
        (200, [true, false, false], How::Send) => Some(Told::Delivered(id)),
        (200, [false, false, true], How::Send) => Some(Told::Dead(id)),
        _ => None,
    }
}
