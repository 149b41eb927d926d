//! RabbitMQ: a message is delivered when the broker has confirmed it (publisher confirms), and had a queue to put it into.
//!
//! Messages are persistent and mandatory: one that no queue takes comes back, and is none that was delivered. `message-id` is the delivery's id.
//! It must not know of pools or deadlines.

use postrider_core::connection::Place;
use serde_json::{Value, json};

use super::{Failed, Link, Publication};
use crate::auth::Login;
use crate::codec::amqp::{self, Arguments, FRAME_BYTES_MIN, Frame, Properties, Writer, method};

const CHANNEL: u16 = 1;
/// What we take and send at most, whatever the broker would.
const FRAME_BYTES_MAX: u32 = 131_072;
/// As the broker ships, and from its own machine only.
const GUEST: &str = "guest";
/// The broker's code for a message that its settings forbid, by its size for example.
const PRECONDITION_FAILED: u16 = 406;

pub(super) struct RabbitMq {
    frame_bytes_max: usize,
    published: u64,
}

fn garbled(error: amqp::Garbled) -> Failed {
    Failed::Garbled(error.to_string())
}

async fn next(link: &mut Link, frame_bytes_max: usize) -> Result<Frame, Failed> {
    loop {
        while let Some(frame) = amqp::next(&mut link.buffer, frame_bytes_max).map_err(garbled)? {
            if frame.kind != amqp::HEARTBEAT {
                return Ok(frame);
            }
        }
        link.read_more().await?;
    }
}

/// The method that is due now. Anything else is a refusal, or no AMQP.
async fn expected(link: &mut Link, wanted: (u16, u16)) -> Result<Arguments, Failed> {
    let frame = next(link, FRAME_BYTES_MAX as usize).await?;
    let (called, arguments) = frame.method().map_err(garbled)?;
    if called == wanted {
        return Ok(arguments);
    }
    match called {
        method::CLOSE | method::CHANNEL_CLOSE => Err(closed(arguments)?),
        _ => Err(Failed::Garbled("it speaks no AMQP 0-9-1: another method than the one that is due".to_owned())),
    }
}

/// What the broker says when it ends the channel or the connection.
fn closed(mut arguments: Arguments) -> Result<Failed, Failed> {
    let code = arguments.u16().map_err(garbled)?;
    let words = arguments.short_text().map_err(garbled)?;
    let is_about_size = code == PRECONDITION_FAILED && words.contains("message size");
    Ok(if is_about_size { Failed::unfit(words, false) } else { Failed::not_taken(words, false) })
}

impl RabbitMq {
    pub(super) async fn log_in(link: &mut Link, login: &Login, vhost: &str) -> Result<RabbitMq, Failed> {
        link.write(amqp::GREETING).await?;
        expected(link, method::START).await?;
        let (user, password) = match &login.secret {
            Some(secret) => (login.user(), secret.expose()),
            None => (GUEST, GUEST),
        };
        let response = format!("\0{user}\0{password}");
        let start_ok = Writer::method(method::START_OK).capabilities().short_text("PLAIN");
        let start_ok = start_ok.long_text(response.as_bytes()).short_text("en_US");
        link.write(&start_ok.into_frame(amqp::METHOD, 0)).await?;
        let mut tune = expected(link, method::TUNE).await?;
        let channels_max = tune.u16().map_err(garbled)?;
        let asked = tune.u32().map_err(garbled)?;
        let frame_max = if asked == 0 { FRAME_BYTES_MAX } else { asked.clamp(FRAME_BYTES_MIN as u32, FRAME_BYTES_MAX) };
        // No heartbeats: a connection rests for less than a minute, and an attempt has its own time.
        let tune_ok = Writer::method(method::TUNE_OK).u16(channels_max).u32(frame_max).u16(0);
        let open = Writer::method(method::OPEN).short_text(vhost).short_text("").u8(0);
        link.write(&[tune_ok.into_frame(amqp::METHOD, 0), open.into_frame(amqp::METHOD, 0)].concat()).await?;
        expected(link, method::OPEN_OK).await?;
        link.write(&Writer::method(method::CHANNEL_OPEN).short_text("").into_frame(amqp::METHOD, CHANNEL)).await?;
        expected(link, method::CHANNEL_OPEN_OK).await?;
        link.write(&Writer::method(method::CONFIRM).u8(0).into_frame(amqp::METHOD, CHANNEL)).await?;
        expected(link, method::CONFIRM_OK).await?;
        Ok(RabbitMq { frame_bytes_max: frame_max as usize, published: 0 })
    }

    pub(super) async fn publish(&mut self, link: &mut Link, message: &Publication<'_>) -> Result<Value, Failed> {
        let Place::RabbitMq { exchange, routing_key, .. } = &message.target.place else {
            return Err(Failed::Garbled("this connection is to no exchange".to_owned()));
        };
        let content_type = message.fields.iter().find(|(name, _)| name == "content-type");
        let id = message.outgoing.delivery_id.to_string();
        let properties = Properties {
            content_type: content_type.map(|(_, value)| value.as_str()),
            headers: message.fields,
            correlation_id: message.outgoing.cid.as_str(),
            message_id: &id,
        };
        self.published += 1;
        let place = (exchange.as_str(), routing_key.as_str());
        let bytes = amqp::publication(CHANNEL, place, &properties, &message.outgoing.body, self.frame_bytes_max);
        link.write(&bytes).await?;
        self.confirmed(link).await
    }

    /// A message that comes back is confirmed too, behind what comes back.
    async fn confirmed(&self, link: &mut Link) -> Result<Value, Failed> {
        let mut returned = None;
        loop {
            let frame = next(link, self.frame_bytes_max).await?;
            if frame.kind != amqp::METHOD {
                // Of what comes back: its properties and its body.
                continue;
            }
            let (called, mut arguments) = frame.method().map_err(garbled)?;
            match called {
                method::ACK | method::NACK if arguments.u64().map_err(garbled)? < self.published => {}
                method::ACK => {
                    return match returned {
                        None => Ok(json!({"confirmed": true})),
                        Some(words) => Err(Failed::not_taken(words, true)),
                    };
                }
                method::NACK => return Err(Failed::not_taken("the broker could not keep the message (nack)", true)),
                method::RETURN => {
                    let code = arguments.u16().map_err(garbled)?;
                    let words = arguments.short_text().map_err(garbled)?;
                    returned = Some(format!("no queue takes what is published here ({code} {words})"));
                }
                method::CHANNEL_FLOW => {
                    let is_active = arguments.u8().map_err(garbled)?;
                    let flow_ok = Writer::method(method::CHANNEL_FLOW_OK).u8(is_active);
                    link.write(&flow_ok.into_frame(amqp::METHOD, CHANNEL)).await?;
                }
                method::CLOSE | method::CHANNEL_CLOSE => return Err(closed(arguments)?),
                _ => {}
            }
        }
    }
}
