//! NATS JetStream: a message is delivered when the stream that its subject belongs to has acknowledged it.
//!
//! `Nats-Msg-Id` is the delivery's id, the same over all attempts, so that a stream drops what it has already (its duplicate window). It must not
//! know of pools or deadlines.

use bytes::Bytes;
use postrider_core::connection::Place;
use serde_json::{Value, json};

use super::{Failed, Link, Publication};
use crate::auth::Login;
use crate::codec::nats::{self, Message, Said};
use crate::send::Outgoing;

/// Of the API of JetStream: the message is larger than its stream takes.
const TOO_LARGE_FOR_STREAM: u64 = 10054;
const NOBODY: u16 = 503;

pub(super) struct Nats {
    /// What our inboxes begin with; each publication has its own.
    inbox: String,
    published: u64,
    payload_bytes_max: usize,
}

/// What a server says first.
pub(super) struct Greeting {
    payload_bytes_max: usize,
}

fn garbled(error: nats::Garbled) -> Failed {
    Failed::Garbled(error.to_string())
}

/// The next word of the server's that is not about keeping the connection.
async fn next(link: &mut Link) -> Result<Said, Failed> {
    loop {
        while let Some(said) = nats::next(&mut link.buffer).map_err(garbled)? {
            match said {
                Said::Ping => link.write(b"PONG\r\n").await?,
                Said::Ok => {}
                other => return Ok(other),
            }
        }
        link.read_more().await?;
    }
}

impl Greeting {
    pub(super) async fn read(link: &mut Link) -> Result<Greeting, Failed> {
        let info = match next(link).await? {
            Said::Info(info) => serde_json::from_slice::<Value>(&info).unwrap_or_default(),
            Said::Error(error) => return Err(Failed::not_taken(error, false)),
            _ => return Err(Failed::Garbled("it speaks no NATS: it does not begin with INFO".to_owned())),
        };
        if info["headers"] != true {
            return Err(Failed::not_taken("the server takes no headers, which JetStream needs", false));
        }
        let bytes_max = info["max_payload"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
        Ok(Greeting { payload_bytes_max: bytes_max.unwrap_or(1 << 20) })
    }

    pub(super) async fn log_in(
        self,
        link: &mut Link,
        login: &Login,
        outgoing: &Outgoing,
        has_tls: bool,
    ) -> Result<Nats, Failed> {
        let mut connect = json!({
            "verbose": false, "pedantic": false, "echo": false, "headers": true, "no_responders": true, "protocol": 1,
            "tls_required": has_tls, "name": "postrider", "lang": "rust", "version": env!("CARGO_PKG_VERSION"),
        });
        match (&login.username, &login.secret) {
            (Some(user), Some(password)) => {
                connect["user"] = user.as_str().into();
                connect["pass"] = password.expose().into();
            }
            (None, Some(token)) => connect["auth_token"] = token.expose().into(),
            (_, None) => {}
        }
        // Ids have 80 random bits, and nobody else subscribes under this one.
        let inbox = format!("_INBOX.{}.{}", outgoing.delivery_id, outgoing.attempt);
        link.write(format!("CONNECT {connect}\r\nSUB {inbox}.* 1\r\nPING\r\n").as_bytes()).await?;
        loop {
            match next(link).await? {
                Said::Pong => break,
                Said::Info(_) => {}
                Said::Error(error) => return Err(Failed::not_taken(format!("the server refused us: {error}"), false)),
                _ => return Err(Failed::Garbled("it speaks no NATS: a message before the log-in".to_owned())),
            }
        }
        Ok(Nats { inbox, published: 0, payload_bytes_max: self.payload_bytes_max })
    }
}

impl Nats {
    pub(super) async fn publish(&mut self, link: &mut Link, message: &Publication<'_>) -> Result<Value, Failed> {
        let Place::Nats { subject } = &message.target.place else {
            return Err(Failed::Garbled("this connection is to no subject".to_owned()));
        };
        self.published += 1;
        let reply = format!("{}.{}", self.inbox, self.published);
        let id = message.outgoing.delivery_id.to_string();
        let headers = message.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = [("Nats-Msg-Id", id.as_str())].into_iter().chain(headers);
        let bytes: Bytes = nats::publication(subject, &reply, headers, &message.outgoing.body);
        if bytes.len() > self.payload_bytes_max {
            let max = self.payload_bytes_max;
            return Err(Failed::unfit(format!("the message is longer than the server's max_payload of {max} bytes"), true));
        }
        link.write(&bytes).await?;
        loop {
            match next(link).await? {
                Said::Message(answer) if answer.subject == reply => return read(subject, &answer),
                // Of an earlier one that nobody waits for any more; and news of the cluster.
                Said::Message(_) | Said::Info(_) | Said::Pong => {}
                Said::Error(error) => return Err(Failed::not_taken(error, false)),
                Said::Ping | Said::Ok => {}
            }
        }
    }
}

/// `{"stream", "seq", "duplicate"}`, or `{"error": {"code", "err_code", "description"}}`.
fn read(subject: &str, answer: &Message) -> Result<Value, Failed> {
    if answer.status == Some(NOBODY) {
        return Err(Failed::not_taken(format!("no stream of JetStream takes the subject `{subject}`"), true));
    }
    let said = serde_json::from_slice::<Value>(&answer.payload).unwrap_or_default();
    let error = &said["error"];
    if !error.is_null() {
        let words = error["description"].as_str().unwrap_or("JetStream refused the message").to_owned();
        let is_too_large = error["err_code"] == TOO_LARGE_FOR_STREAM;
        return Err(if is_too_large { Failed::unfit(words, true) } else { Failed::not_taken(words, true) });
    }
    if said["stream"].is_string() && said["seq"].is_u64() {
        return Ok(said);
    }
    // Somebody who is no stream listens to the subject and has answered.
    Err(Failed::not_taken(format!("what answers at `{subject}` is no stream of JetStream"), true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::broker::BrokerAnswer;

    fn answer(status: Option<u16>, payload: &'static str) -> Result<Value, BrokerAnswer> {
        let message = Message { subject: "_INBOX.a.1".to_owned(), status, payload: Bytes::from_static(payload.as_bytes()) };
        read("orders", &message).map_err(|failed| match failed {
            Failed::Said { answer, goes_on: true } => answer,
            _ => panic!("the connection goes on"),
        })
    }

    #[test]
    fn p02_only_a_streams_acknowledgment_is_a_delivery() {
        assert!(answer(None, r#"{"stream":"ORDERS","seq":7,"duplicate":true}"#).is_ok());
        let told = |status, payload| answer(status, payload).unwrap_err();
        assert!(matches!(told(Some(503), ""), BrokerAnswer::NotTaken(why) if why.contains("no stream")));
        let full = r#"{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}"#;
        assert_eq!(told(None, full), BrokerAnswer::NotTaken("maximum messages exceeded".to_owned()));
        let large = r#"{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}"#;
        assert!(matches!(told(None, large), BrokerAnswer::Unfit(_)));
        assert!(matches!(told(None, "thanks"), BrokerAnswer::NotTaken(why) if why.contains("no stream of JetStream")));
    }
}
