//! AMQP 0-9-1, the protocol of RabbitMQ, as far as publishing with confirms needs it: frames, methods and the properties of a message.
//!
//! It must not know of sockets, nor what an answer means.

use bytes::{Buf as _, Bytes, BytesMut};

/// What a client begins with.
pub const GREETING: &[u8] = b"AMQP\x00\x00\x09\x01";
/// Before tuning, and the least that a peer may ask for.
pub const FRAME_BYTES_MIN: usize = 4096;
/// Of a frame around its payload.
pub const FRAME_OVERHEAD: usize = 8;
const END: u8 = 0xCE;
pub const METHOD: u8 = 1;
pub const HEADER: u8 = 2;
pub const BODY: u8 = 3;
pub const HEARTBEAT: u8 = 8;
const BASIC: u16 = 60;
/// A message that does not expire with the broker.
const PERSISTENT: u8 = 2;

/// Class and number of the methods that are spoken here.
pub mod method {
    pub const START: (u16, u16) = (10, 10);
    pub const START_OK: (u16, u16) = (10, 11);
    pub const TUNE: (u16, u16) = (10, 30);
    pub const TUNE_OK: (u16, u16) = (10, 31);
    pub const OPEN: (u16, u16) = (10, 40);
    pub const OPEN_OK: (u16, u16) = (10, 41);
    pub const CLOSE: (u16, u16) = (10, 50);
    pub const CHANNEL_OPEN: (u16, u16) = (20, 10);
    pub const CHANNEL_OPEN_OK: (u16, u16) = (20, 11);
    pub const CHANNEL_FLOW: (u16, u16) = (20, 20);
    pub const CHANNEL_FLOW_OK: (u16, u16) = (20, 21);
    pub const CHANNEL_CLOSE: (u16, u16) = (20, 40);
    pub const PUBLISH: (u16, u16) = (60, 40);
    pub const RETURN: (u16, u16) = (60, 50);
    pub const ACK: (u16, u16) = (60, 80);
    pub const NACK: (u16, u16) = (60, 120);
    pub const CONFIRM: (u16, u16) = (85, 10);
    pub const CONFIRM_OK: (u16, u16) = (85, 11);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub channel: u16,
    pub payload: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it speaks no AMQP 0-9-1: {0}")]
pub struct Garbled(&'static str);

const SHORT: Garbled = Garbled("a method that ends too early");

/// Takes the next frame out of the buffer. `None`: not all of it has come.
pub fn next(buffer: &mut BytesMut, frame_bytes_max: usize) -> Result<Option<Frame>, Garbled> {
    if buffer.starts_with(b"AMQP") {
        return Err(Garbled("it wants another version of the protocol"));
    }
    let Some(head) = buffer.get(..7) else { return Ok(None) };
    let (kind, channel) = (head[0], u16::from_be_bytes([head[1], head[2]]));
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    if !matches!(kind, METHOD | HEADER | BODY | HEARTBEAT) {
        return Err(Garbled("a frame of no known kind"));
    }
    if length + FRAME_OVERHEAD > frame_bytes_max {
        return Err(Garbled("a frame that is too long"));
    }
    if buffer.len() < length + FRAME_OVERHEAD {
        return Ok(None);
    }
    buffer.advance(7);
    let payload = buffer.split_to(length).freeze();
    if buffer.get_u8() != END {
        return Err(Garbled("a frame without its end"));
    }
    Ok(Some(Frame { kind, channel, payload }))
}

/// A method's arguments, one after another.
pub struct Arguments(Bytes);

impl Frame {
    /// Class, number and arguments.
    pub fn method(&self) -> Result<((u16, u16), Arguments), Garbled> {
        let mut rest = Arguments(self.payload.clone());
        Ok(((rest.u16()?, rest.u16()?), rest))
    }
}

impl Arguments {
    pub fn u8(&mut self) -> Result<u8, Garbled> {
        if self.0.is_empty() { Err(SHORT) } else { Ok(self.0.get_u8()) }
    }

    pub fn u16(&mut self) -> Result<u16, Garbled> {
        if self.0.len() < 2 { Err(SHORT) } else { Ok(self.0.get_u16()) }
    }

    pub fn u32(&mut self) -> Result<u32, Garbled> {
        if self.0.len() < 4 { Err(SHORT) } else { Ok(self.0.get_u32()) }
    }

    pub fn u64(&mut self) -> Result<u64, Garbled> {
        if self.0.len() < 8 { Err(SHORT) } else { Ok(self.0.get_u64()) }
    }

    pub fn short_text(&mut self) -> Result<String, Garbled> {
        let length = usize::from(self.u8()?);
        if self.0.len() < length {
            return Err(SHORT);
        }
        Ok(String::from_utf8_lossy(&self.0.split_to(length)).into_owned())
    }
}

/// What is written: a method, a header of properties, or a table of fields.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn method((class, number): (u16, u16)) -> Writer {
        Writer::default().u16(class).u16(number)
    }

    #[must_use]
    pub fn u8(mut self, value: u8) -> Writer {
        self.0.push(value);
        self
    }

    #[must_use]
    pub fn u16(mut self, value: u16) -> Writer {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn u32(mut self, value: u32) -> Writer {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn u64(mut self, value: u64) -> Writer {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// At most 255 bytes; what is longer is cut at a character.
    #[must_use]
    pub fn short_text(mut self, text: &str) -> Writer {
        let mut end = text.len().min(255);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.0.push(u8::try_from(end).unwrap_or(u8::MAX));
        self.0.extend_from_slice(&text.as_bytes()[..end]);
        self
    }

    #[must_use]
    pub fn long_text(self, bytes: &[u8]) -> Writer {
        let mut written = self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        written.0.extend_from_slice(bytes);
        written
    }

    /// Fields that are texts.
    #[must_use]
    pub fn table<'f>(self, fields: impl Iterator<Item = (&'f str, &'f str)>) -> Writer {
        let all = fields.fold(Writer::default(), |all, (name, value)| {
            all.short_text(name).u8(b'S').long_text(value.as_bytes())
        });
        self.long_text(&all.0)
    }

    /// What we can: confirms, refusals of single messages, and a word when a log-in is refused.
    #[must_use]
    pub fn capabilities(self) -> Writer {
        let able = ["publisher_confirms", "basic.nack", "authentication_failure_close"];
        let able = able.iter().fold(Writer::default(), |all, name| all.short_text(name).u8(b't').u8(1));
        let product = Writer::default().short_text("product").u8(b'S').long_text(b"postrider");
        let all = product.short_text("capabilities").u8(b'F').long_text(&able.0);
        self.long_text(&all.0)
    }

    pub fn into_frame(self, kind: u8, channel: u16) -> Vec<u8> {
        framed(kind, channel, &self.0)
    }
}

/// What a message says beside its body.
pub struct Properties<'a> {
    pub content_type: Option<&'a str>,
    pub headers: &'a [(String, String)],
    pub correlation_id: &'a str,
    pub message_id: &'a str,
}

/// The frames of a message: its publication, its properties, its body in as many as it needs.
pub fn publication(
    channel: u16,
    (exchange, routing_key): (&str, &str),
    properties: &Properties<'_>,
    body: &[u8],
    frame_bytes_max: usize,
) -> Vec<u8> {
    const MANDATORY: u8 = 1;
    let publish = Writer::method(method::PUBLISH).u16(0).short_text(exchange).short_text(routing_key).u8(MANDATORY);
    let mut bytes = publish.into_frame(METHOD, channel);
    // Content type, headers, delivery mode, correlation id, message id, application: in the order of their bits.
    let content_type_bit = if properties.content_type.is_some() { 1 << 15 } else { 0 };
    let flags: u16 = content_type_bit | 1 << 13 | 1 << 12 | 1 << 10 | 1 << 7 | 1 << 3;
    let mut header = Writer::default().u16(BASIC).u16(0).u64(body.len() as u64).u16(flags);
    if let Some(content_type) = properties.content_type {
        header = header.short_text(content_type);
    }
    let fields = properties.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let header = header.table(fields).u8(PERSISTENT).short_text(properties.correlation_id);
    let header = header.short_text(properties.message_id).short_text("postrider");
    bytes.extend(header.into_frame(HEADER, channel));
    let chunk_bytes = frame_bytes_max.saturating_sub(FRAME_OVERHEAD).max(1);
    for chunk in body.chunks(chunk_bytes) {
        bytes.extend(framed(BODY, channel, chunk));
    }
    bytes
}

fn framed(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + FRAME_OVERHEAD);
    bytes.push(kind);
    bytes.extend_from_slice(&channel.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes.push(END);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p02_frames_are_read_in_pieces_and_methods_argument_by_argument() {
        let closed = Writer::method(method::CHANNEL_CLOSE).u16(404).short_text("NOT_FOUND").into_frame(METHOD, 1);
        let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
        for byte in closed.iter().chain(&[HEARTBEAT, 0, 0, 0, 0, 0, 0, END]) {
            buffer.extend_from_slice(&[*byte]);
            frames.extend(next(&mut buffer, FRAME_BYTES_MIN).unwrap());
        }
        assert_eq!((frames.len(), frames[1].kind, frames[0].channel), (2, HEARTBEAT, 1));
        let (called, mut arguments) = frames[0].method().unwrap();
        assert_eq!((called, arguments.u16().unwrap()), (method::CHANNEL_CLOSE, 404));
        assert_eq!(arguments.short_text().unwrap(), "NOT_FOUND");
        assert!(arguments.u8().is_err() && arguments.u64().is_err());
    }

    #[test]
    fn p02_what_is_no_amqp_ends_the_connection() {
        for bytes in [
            &b"AMQP\x00\x01\x00\x00"[..],
            b"HTTP/1.1 400 Bad Request",
            b"\x01\x00\x00\xff\xff\xff\xff",
            b"\x08\x00\x00\x00\x00\x00\x00\x00",
        ] {
            assert!(next(&mut BytesMut::from(bytes), FRAME_BYTES_MIN).is_err(), "{bytes:?}");
        }
        assert!(Frame { kind: METHOD, channel: 0, payload: Bytes::from_static(b"\x00") }.method().is_err());
    }

    #[test]
    fn p02_a_body_is_cut_into_frames_and_nothing_of_it_is_lost() {
        let properties = Properties {
            content_type: Some("text/plain"),
            headers: &[("x-a".to_owned(), "ä".to_owned())],
            correlation_id: "cid",
            message_id: "msg_1",
        };
        let bytes = publication(1, ("", "orders"), &properties, &[7; 10], FRAME_OVERHEAD + 4);
        let mut buffer = BytesMut::from(&bytes[..]);
        let mut frames = Vec::new();
        while let Some(frame) = next(&mut buffer, FRAME_BYTES_MIN).unwrap() {
            frames.push(frame);
        }
        assert_eq!(frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(), [METHOD, HEADER, BODY, BODY, BODY]);
        assert_eq!(frames[2..].iter().map(|frame| frame.payload.len()).sum::<usize>(), 10);
        let header = &frames[1].payload;
        for text in ["text/plain", "x-a", "ä", "cid", "msg_1"] {
            assert!(header.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
        }
        let long = Writer::default().short_text(&"ä".repeat(200));
        assert_eq!(usize::from(long.0[0]), 254, "cut at a character");
    }
}
