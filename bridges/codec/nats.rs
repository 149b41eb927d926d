//! The client's side of the NATS protocol, as far as publishing to JetStream needs it: bytes to operations, and publications to bytes.
//!
//! It must not know of sockets, nor what an answer means.

use bytes::{Buf as _, Bytes, BytesMut};

/// A control line of the server's may be this long; INFO lists every server of a cluster.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// What comes to our own inbox: an acknowledgment of JetStream is a short text in JSON.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
const VERSION: &[u8] = b"NATS/1.0";

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// In JSON.
    Info(Bytes),
    Ping,
    Pong,
    Ok,
    Error(String),
    Message(Message),
}

/// Something that came to one of our inboxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    /// Of the headers' first line, where there is one: 503 says that nobody listens to a subject.
    pub status: Option<u16>,
    pub payload: Bytes,
}

/// The bytes are nothing that a server says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it speaks no NATS: {0}")]
pub struct Garbled(&'static str);

/// Takes the next operation out of the buffer. `None`: not all of it has come.
pub fn next(buffer: &mut BytesMut) -> Result<Option<Said>, Garbled> {
    let Some(end) = memchr::memchr(b'\n', buffer) else {
        return if buffer.len() > LINE_BYTES_MAX { Err(Garbled("a line without an end")) } else { Ok(None) };
    };
    if end > LINE_BYTES_MAX {
        return Err(Garbled("a line that is too long"));
    }
    let line = buffer[..end].trim_ascii_end();
    let (name, rest) = match line.iter().position(u8::is_ascii_whitespace) {
        Some(at) => (&line[..at], line[at..].trim_ascii()),
        None => (line, &b""[..]),
    };
    let said = match name.to_ascii_uppercase().as_slice() {
        b"INFO" => Said::Info(Bytes::copy_from_slice(rest)),
        b"PING" => Said::Ping,
        b"PONG" => Said::Pong,
        b"+OK" => Said::Ok,
        b"-ERR" => Said::Error(String::from_utf8_lossy(rest).trim_matches('\'').to_owned()),
        b"MSG" => return message(buffer, end, false),
        b"HMSG" => return message(buffer, end, true),
        _ => return Err(Garbled("an operation that there is not")),
    };
    buffer.advance(end + 1);
    Ok(Some(said))
}

/// `MSG subject sid [reply] bytes`, and with headers `HMSG subject sid [reply] header-bytes bytes`.
fn message(buffer: &mut BytesMut, end: usize, has_headers: bool) -> Result<Option<Said>, Garbled> {
    const BAD: Garbled = Garbled("a message whose first line cannot be read");
    let line = std::str::from_utf8(&buffer[..end]).map_err(|_| BAD)?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let numbers = if has_headers { 2 } else { 1 };
    if words.len() < 3 + numbers || words.len() > 4 + numbers {
        return Err(BAD);
    }
    let number = |at: usize| words[at].parse::<usize>().ok().filter(|bytes| *bytes <= MESSAGE_BYTES_MAX).ok_or(BAD);
    let total = number(words.len() - 1)?;
    let headers = if has_headers { number(words.len() - 2)? } else { 0 };
    if headers > total {
        return Err(BAD);
    }
    let subject = words[1].to_owned();
    let start = end + 1;
    if buffer.len() < start + total + 2 {
        return Ok(None);
    }
    buffer.advance(start);
    let mut whole = buffer.split_to(total);
    if &buffer[..2] != b"\r\n" {
        return Err(Garbled("a message without its end"));
    }
    buffer.advance(2);
    let status = status(&whole.split_to(headers));
    Ok(Some(Said::Message(Message { subject, status, payload: whole.freeze() })))
}

/// `NATS/1.0 503` and its like.
fn status(headers: &[u8]) -> Option<u16> {
    let rest = headers.strip_prefix(VERSION)?;
    let line = &rest[..memchr::memchr(b'\r', rest).unwrap_or(rest.len())];
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// A publication with headers; `reply` is where the acknowledgment comes. Names are tokens and values have no line ends.
pub fn publication<'h>(
    subject: &str,
    reply: &str,
    headers: impl Iterator<Item = (&'h str, &'h str)>,
    payload: &[u8],
) -> Bytes {
    let mut block = Vec::from(VERSION);
    block.extend_from_slice(b"\r\n");
    for (name, value) in headers {
        for part in [name, ": ", value, "\r\n"] {
            block.extend_from_slice(part.as_bytes());
        }
    }
    block.extend_from_slice(b"\r\n");
    let total = block.len() + payload.len();
    let mut bytes = BytesMut::with_capacity(total + subject.len() + reply.len() + 64);
    bytes.extend_from_slice(format!("HPUB {subject} {reply} {} {total}\r\n", block.len()).as_bytes());
    bytes.extend_from_slice(&block);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(b"\r\n");
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Said>, Garbled> {
        // Byte by byte, as a network may bring them.
        let (mut buffer, mut said) = (BytesMut::new(), Vec::new());
        for byte in bytes {
            buffer.extend_from_slice(&[*byte]);
            while let Some(one) = next(&mut buffer)? {
                said.push(one);
            }
        }
        assert!(buffer.is_empty(), "{buffer:?}");
        Ok(said)
    }

    #[test]
    fn p02_what_a_server_says_is_read_in_pieces() {
        let said = all(
            b"INFO {\"headers\":true}\r\n+OK\r\nPING\r\npong\r\n-ERR 'Authorization Violation'\r\nMSG _INBOX.a.1 1 2\r\n{}\r\n\
              HMSG _INBOX.a.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        );
        let message = |subject: &str, status, payload: &'static [u8]| {
            Said::Message(Message { subject: subject.to_owned(), status, payload: Bytes::from_static(payload) })
        };
        assert_eq!(
            said.unwrap(),
            [
                Said::Info(Bytes::from_static(b"{\"headers\":true}")),
                Said::Ok,
                Said::Ping,
                Said::Pong,
                Said::Error("Authorization Violation".to_owned()),
                message("_INBOX.a.1", None, b"{}"),
                message("_INBOX.a.2", Some(503), b""),
            ]
        );
    }

    #[test]
    fn p02_what_is_no_nats_ends_the_connection() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b"MSG a 1 -1\r\n",
            b"MSG a 1 99999999999\r\n",
            b"MSG a\r\n",
            b"HMSG a 1 9 2\r\n",
            b"MSG a 1 2\r\n{}xx",
        ] {
            assert!(all(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
        assert!(all(&[b'x'; LINE_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn p02_a_publication_counts_its_bytes() {
        let bytes = publication("orders.new", "_INBOX.a.1", [("Nats-Msg-Id", "msg_1")].into_iter(), b"\xff{}");
        let block = "NATS/1.0\r\nNats-Msg-Id: msg_1\r\n\r\n";
        let wanted = format!("HPUB orders.new _INBOX.a.1 {} {}\r\n{block}", block.len(), block.len() + 3);
        assert_eq!(&bytes[..], [wanted.as_bytes(), b"\xff{}\r\n"].concat());
    }
}
