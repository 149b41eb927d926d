//! Redis Streams: a message is delivered when `XADD` has answered with the id of its entry.
//!
//! Redis itself drops no duplicates, so each entry has the delivery's id in its field `msg_id`. It must not know of pools or deadlines.

use postrider_core::connection::Place;
use serde_json::{Value, json};

use super::{Failed, Link, Publication};
use crate::auth::Login;
use crate::codec::resp::{self, Answer};

pub(super) struct Redis;

async fn ask(link: &mut Link, words: &[&[u8]]) -> Result<Answer, Failed> {
    link.write(&resp::command(words)).await?;
    loop {
        let answer = resp::next(&mut link.buffer).map_err(|error| Failed::Garbled(error.to_string()))?;
        match answer {
            Some(answer) => return Ok(answer),
            None => link.read_more().await?,
        }
    }
}

/// A command that says no more than that it was done.
async fn done(link: &mut Link, words: &[&[u8]]) -> Result<(), Failed> {
    match ask(link, words).await? {
        Answer::Error(error) => Err(Failed::not_taken(format!("the server refused us: {error}"), false)),
        _ => Ok(()),
    }
}

impl Redis {
    pub(super) async fn log_in(link: &mut Link, login: &Login, database: u32) -> Result<Redis, Failed> {
        match (&login.username, &login.secret) {
            (Some(user), Some(password)) if !user.is_empty() => {
                done(link, &[b"AUTH", user.as_bytes(), password.expose().as_bytes()]).await?;
            }
            (_, Some(password)) => done(link, &[b"AUTH", password.expose().as_bytes()]).await?,
            (_, None) => {}
        }
        if database > 0 {
            done(link, &[b"SELECT", database.to_string().as_bytes()]).await?;
        }
        Ok(Redis)
    }

    pub(super) async fn publish(&mut self, link: &mut Link, message: &Publication<'_>) -> Result<Value, Failed> {
        let Place::Redis { stream, entries_max, .. } = &message.target.place else {
            return Err(Failed::Garbled("this connection is to no stream".to_owned()));
        };
        let (id, cid) = (message.outgoing.delivery_id.to_string(), message.outgoing.cid.as_str());
        let entries_max = entries_max.map(|entries| entries.to_string());
        let mut words: Vec<&[u8]> = vec![b"XADD", stream.as_bytes()];
        if let Some(entries_max) = &entries_max {
            words.extend([&b"MAXLEN"[..], b"~", entries_max.as_bytes()]);
        }
        words.extend([&b"*"[..], b"msg_id", id.as_bytes(), b"cid", cid.as_bytes()]);
        for (name, value) in message.fields.iter().filter(|(name, _)| !name.starts_with("x-postrider-")) {
            words.extend([name.as_bytes(), value.as_bytes()]);
        }
        for (name, value) in message.fields.iter().filter(|(name, _)| name.starts_with("x-postrider-event")) {
            words.extend([name.as_bytes(), value.as_bytes()]);
        }
        words.extend([&b"body"[..], &message.outgoing.body]);
        match ask(link, &words).await? {
            Answer::Bytes(Some(entry)) => Ok(json!({"id": String::from_utf8_lossy(&entry)})),
            // Out of memory, read-only, loading, of another type, not allowed: none of it is the message's fault.
            Answer::Error(error) => Err(Failed::not_taken(error, true)),
            Answer::Text(_) | Answer::Number(_) | Answer::Bytes(None) => {
                Err(Failed::Garbled("XADD was answered without the id of an entry".to_owned()))
            }
        }
    }
}
