//! RESP2, the protocol of Redis, as far as single commands and their answers need it. It must not know of sockets, nor what an answer means.

use bytes::{Buf as _, Bytes, BytesMut};

const LINE_BYTES_MAX: usize = 16 * 1024;
const BULK_BYTES_MAX: usize = 64 * 1024;

/// What a server answers to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Text(String),
    Error(String),
    Number(i64),
    Bytes(Option<Bytes>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it speaks no RESP: {0}")]
pub struct Garbled(&'static str);

/// A command with its arguments.
pub fn command(words: &[&[u8]]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(words.iter().map(|word| word.len() + 16).sum());
    bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.freeze()
}

/// Takes the next answer out of the buffer. `None`: not all of it has come.
pub fn next(buffer: &mut BytesMut) -> Result<Option<Answer>, Garbled> {
    let Some(end) = memchr::memchr(b'\n', buffer) else {
        return if buffer.len() > LINE_BYTES_MAX { Err(Garbled("a line without an end")) } else { Ok(None) };
    };
    if end > LINE_BYTES_MAX {
        return Err(Garbled("a line that is too long"));
    }
    let (kind, line) = buffer[..end].trim_ascii_end().split_first().ok_or(Garbled("an empty line"))?;
    let text = || String::from_utf8_lossy(line).into_owned();
    let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    let answer = match kind {
        b'+' => Answer::Text(text()),
        b'-' => Answer::Error(text()),
        b':' => Answer::Number(number().ok_or(Garbled("a number that is none"))?),
        b'$' => match number() {
            Some(-1) => Answer::Bytes(None),
            Some(length) => {
                let length = usize::try_from(length).ok().filter(|length| *length <= BULK_BYTES_MAX);
                return bulk(buffer, end + 1, length.ok_or(Garbled("a text that is too long"))?);
            }
            None => return Err(Garbled("a length that is none")),
        },
        _ => return Err(Garbled("an answer of a kind that no command here has")),
    };
    buffer.advance(end + 1);
    Ok(Some(answer))
}

fn bulk(buffer: &mut BytesMut, start: usize, length: usize) -> Result<Option<Answer>, Garbled> {
    if buffer.len() < start + length + 2 {
        return Ok(None);
    }
    buffer.advance(start);
    let bytes = buffer.split_to(length).freeze();
    if &buffer[..2] != b"\r\n" {
        return Err(Garbled("a text without its end"));
    }
    buffer.advance(2);
    Ok(Some(Answer::Bytes(Some(bytes))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p02_answers_are_read_in_pieces_and_commands_count_their_bytes() {
        let (mut buffer, mut answers) = (BytesMut::new(), Vec::new());
        for byte in b"+OK\r\n-OOM command not allowed\r\n:7\r\n$-1\r\n$4\r\n1\r\n2\r\n" {
            buffer.extend_from_slice(&[*byte]);
            answers.extend(next(&mut buffer).unwrap());
        }
        assert_eq!(
            answers,
            [
                Answer::Text("OK".to_owned()),
                Answer::Error("OOM command not allowed".to_owned()),
                Answer::Number(7),
                Answer::Bytes(None),
                Answer::Bytes(Some(Bytes::from_static(b"1\r\n2"))),
            ]
        );
        assert_eq!(&command(&[b"XADD", b"\xff\r\n"])[..], b"*2\r\n$4\r\nXADD\r\n$3\r\n\xff\r\n\r\n");
    }

    #[test]
    fn p02_what_is_no_resp_ends_the_connection() {
        for bytes in [&b"HTTP/1.1 400\r\n"[..], b"\r\n", b":x\r\n", b"$99999999\r\n", b"$-2\r\n", b"$1\r\nabc", b"*1\r\n"] {
            assert!(next(&mut BytesMut::from(bytes)).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
        assert!(next(&mut BytesMut::from(&[b'+'; LINE_BYTES_MAX + 1][..])).is_err());
    }
}
