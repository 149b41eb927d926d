//! Those who interfere: edits, discards and retries by hand, pauses and changed settings, all in mid-flight, until the server no longer answers.
//!
//! It must not know what becomes of a delivery.

use serde_json::Value;

use crate::books::{Act, Answer, Deed, EDITED, Shared};
use crate::harness::{Api, pseudo_random};
use crate::scenario::{HEALTHY, KEPT, OPERATED, TOPIC, UNORDERED};

const BASE: &str = "/api/v1/projects/default";

/// The server was killed.
struct Gone;

pub struct Operator {
    pub api: Api,
    pub books: Shared,
    pub seed: u64,
}

impl Operator {
    /// Changes what waits: pauses, edits or discards one, resumes.
    pub async fn work_on_queue(mut self) {
        while self.queue_turn().await.is_ok() {}
    }

    /// Changes what is dead: retries, edits and discards; looks at the topic; changes settings.
    pub async fn work_on_dead_letters(mut self) {
        while self.dead_letter_turn().await.is_ok() {}
    }

    async fn queue_turn(&mut self) -> Result<(), Gone> {
        // A kill may have left it paused.
        self.set("POST", &format!("/connections/{OPERATED}/resume"), "").await?;
        if self.dice(2) == 0 {
            self.set("POST", &format!("/connections/{OPERATED}/pause"), "").await?;
        }
        for _ in 0..3 {
            let Some((id, key)) = self.pick(&format!("/connections/{OPERATED}/queue?limit=20")).await? else {
                continue;
            };
            let deed = if self.dice(2) == 0 { Deed::Edit } else { Deed::Discard };
            self.act(&id, &key, deed).await?;
        }
        Ok(())
    }

    async fn dead_letter_turn(&mut self) -> Result<(), Gone> {
        if let Some((id, key)) = self.pick(&format!("/connections/{KEPT}/dlq?limit=20")).await? {
            match self.dice(5) {
                0 => self.act(&id, &key, Deed::Discard).await?,
                1 => {
                    self.act(&id, &key, Deed::Edit).await?;
                    self.act(&id, &key, Deed::Retry).await?;
                }
                _ => self.act(&id, &key, Deed::Retry).await?,
            }
        }
        match self.dice(4) {
            0 => {
                let setting = format!(r#"{{"max_retries":{}}}"#, self.dice(2));
                self.set("PATCH", &format!("/connections/{KEPT}"), &setting).await?;
            }
            1 => {
                let setting = format!(r#"{{"concurrency":{}}}"#, 3 + self.dice(3));
                self.set("PATCH", &format!("/connections/{UNORDERED}"), &setting).await?;
            }
            2 => {
                self.set("POST", &format!("/connections/{HEALTHY}/pause"), "").await?;
                self.set("POST", &format!("/connections/{HEALTHY}/resume"), "").await?;
            }
            _ => self.look_at_topic().await?,
        }
        Ok(())
    }

    /// What is on the topic has left the DLQ, at every instant (Z22).
    async fn look_at_topic(&mut self) -> Result<(), Gone> {
        let page = self.read(&format!("/topics/{TOPIC}/messages?limit=5")).await?;
        for message in page["data"].as_array().into_iter().flatten() {
            let id = message["id"].as_str().unwrap_or_default().replacen("evt_", "msg_", 1);
            let delivery = self.read(&format!("/deliveries/{id}")).await?;
            if delivery["status"] != "FORWARDED" {
                self.complain(format!("{id} is on the topic and {}", delivery["status"]));
            }
        }
        Ok(())
    }

    /// One of a list at random, if its key was told.
    async fn pick(&mut self, list: &str) -> Result<Option<(String, String)>, Gone> {
        let page = self.read(list).await?;
        let ids: Vec<&str> =
            page["data"].as_array().into_iter().flatten().filter_map(|item| item["id"].as_str()).collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let id = ids[self.dice(ids.len() as u64) as usize].to_owned();
        let key = self.books.open().keys.get(&id).cloned();
        Ok(key.map(|key| (id, key)))
    }

    async fn act(&mut self, id: &str, key: &str, deed: Deed) -> Result<(), Gone> {
        // One edit for each, so that what is right to receive is known.
        if deed == Deed::Edit && !self.books.open().edited.insert(id.to_owned()) {
            return Ok(());
        }
        let (method, path, body) = match deed {
            Deed::Edit => ("PATCH", format!("{BASE}/deliveries/{id}"), format!(r#"{{"body":"{key}{EDITED}"}}"#)),
            Deed::Discard => ("DELETE", format!("{BASE}/deliveries/{id}"), String::new()),
            Deed::Retry => ("POST", format!("{BASE}/deliveries/{id}/retry"), String::new()),
        };
        let asked = self.books.tick();
        let answered = self.api.call(method, &path, &body).await;
        let mut books = self.books.open();
        let (known, life) = (books.next_tick(), books.life);
        let answer = match &answered {
            Ok((200, _)) => Answer::Done,
            Ok((409, _)) => Answer::Refused,
            Ok((status, text)) => {
                books.complaints.push(format!("{deed:?} of {id} was answered {status} {text}"));
                Answer::Nothing
            }
            Err(_) => Answer::Nothing,
        };
        books.acts.push(Act { id: id.to_owned(), deed, asked, known, life, answer });
        if answered.is_err() { Err(Gone) } else { Ok(()) }
    }

    async fn set(&mut self, method: &str, path: &str, body: &str) -> Result<(), Gone> {
        let (status, text) = self.api.call(method, &format!("{BASE}{path}"), body).await.map_err(|_| Gone)?;
        if status != 200 {
            self.complain(format!("{method} {path} {body} was answered {status} {text}"));
        }
        Ok(())
    }

    async fn read(&mut self, path: &str) -> Result<Value, Gone> {
        let (status, text) = self.api.call("GET", &format!("{BASE}{path}"), "").await.map_err(|_| Gone)?;
        if status != 200 {
            self.complain(format!("GET {path} was answered {status} {text}"));
        }
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    fn complain(&self, what: String) {
        self.books.open().complaints.push(what);
    }

    fn dice(&mut self, sides: u64) -> u64 {
        pseudo_random(&mut self.seed) % sides
    }
}
