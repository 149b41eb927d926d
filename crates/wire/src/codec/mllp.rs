//! MLLP's framing: a message between a start and an end sequence (HL7's Minimal Lower Layer Protocol, release 1).
//!
//! The decoder takes bytes as they come, split anywhere, and looks at each of them once. It must not know what a message says.

use bytes::{Buf as _, Bytes, BytesMut};
use postrider_core::connection::Framing;

/// Bytes outside of messages, such as the lines of somebody's log, that are skipped before a stream is given up.
pub const JUNK_BYTES_MAX: usize = 64 * 1024;

/// A message in its frame.
///
/// # Errors
/// The message holds the first byte of one of the sequences, so that its receiver would cut it there.
pub fn encode(framing: &Framing, message: &[u8], into: &mut BytesMut) -> Result<(), ForbiddenByte> {
    if let Some(forbidden) = forbidden_byte(framing, message) {
        return Err(forbidden);
    }
    into.reserve(framing.start.len() + message.len() + framing.end.len());
    into.extend_from_slice(&framing.start);
    into.extend_from_slice(message);
    into.extend_from_slice(&framing.end);
    Ok(())
}

/// A byte that a message may not have, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the byte 0x{byte:02X} at offset {at} begins or ends a message on the wire")]
pub struct ForbiddenByte {
    pub byte: u8,
    pub at: usize,
}

/// The first byte of a message that its receiver would take for framing.
pub fn forbidden_byte(framing: &Framing, message: &[u8]) -> Option<ForbiddenByte> {
    let (start, end) = (first(&framing.start), first(&framing.end));
    let at = memchr::memchr2(start, end, message)?;
    Some(ForbiddenByte { byte: message[at], at })
}

/// Why a stream cannot be read on; nothing that follows can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a message of more than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
    #[error("more than {JUNK_BYTES_MAX} bytes outside of a message")]
    Junk,
    /// What follows the end's first byte is neither the rest of it, nor a new message, nor white space.
    #[error("the byte that ends a message is inside of one")]
    EndInside,
}

/// What has come of a message that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    Nothing,
    /// So many bytes, and no start of a message.
    Junk(usize),
    /// A message has begun; so many bytes of it are there.
    Message(usize),
    /// A message whose end lacks its last bytes: whole, if nothing else comes.
    AtEnd,
}

#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    message_bytes_max: usize,
    bytes: BytesMut,
    /// Everything before this in `bytes` was looked at.
    looked_at: usize,
    state: State,
    /// Bytes skipped since the last message.
    junk: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the start sequence.
    Outside,
    /// Behind it.
    Inside,
    /// The end's first byte stands at this place of `bytes`.
    Ending(usize),
}

impl Decoder {
    pub fn new(framing: Framing, message_bytes_max: usize) -> Self {
        let bytes = BytesMut::new();
        Decoder { framing, message_bytes_max, bytes, looked_at: 0, state: State::Outside, junk: 0 }
    }

    /// Where further bytes go: what is read from a socket is appended here.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// The next whole message, as it was between its sequences. `None`: more bytes are needed.
    ///
    /// # Errors
    /// `FrameError`; the stream is of no use any more.
    pub fn next_message(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            let went_on = match self.state {
                State::Outside => self.find_start()?,
                State::Inside => self.find_end()?,
                State::Ending(at) => match self.read_end(at)? {
                    Some(message) => return Ok(Some(message)),
                    None => false,
                },
            };
            if !went_on {
                return Ok(None);
            }
        }
    }

    /// Nothing more comes, or not for a while: a message whose end lacks only its last bytes is taken for whole.
    pub fn finish(&mut self) -> Option<Bytes> {
        match self.state {
            State::Ending(at) => Some(self.cut(at, self.bytes.len() - at)),
            State::Outside | State::Inside => None,
        }
    }

    pub fn pending(&self) -> Pending {
        match self.state {
            State::Ending(_) => Pending::AtEnd,
            State::Inside => Pending::Message(self.bytes.len()),
            State::Outside => match self.junk + self.bytes.iter().filter(|byte| !is_space(**byte)).count() {
                0 => Pending::Nothing,
                junk => Pending::Junk(junk),
            },
        }
    }

    fn find_start(&mut self) -> Result<bool, FrameError> {
        let start = &self.framing.start;
        let found = memchr::memchr(first(start), &self.bytes);
        let skipped = found.unwrap_or(self.bytes.len());
        // White space between messages is nobody's mistake.
        self.junk += self.bytes[..skipped].iter().filter(|byte| !is_space(**byte)).count();
        self.bytes.advance(skipped);
        if self.junk > JUNK_BYTES_MAX {
            return Err(FrameError::Junk);
        }
        if found.is_none() {
            return Ok(false);
        }
        let known = self.bytes.len().min(start.len());
        if self.bytes[..known] != start[..known] {
            // It only looked like a start.
            self.junk += 1;
            self.bytes.advance(1);
            return Ok(true);
        }
        if known < start.len() {
            return Ok(false);
        }
        self.bytes.advance(start.len());
        (self.looked_at, self.state) = (0, State::Inside);
        Ok(true)
    }

    fn find_end(&mut self) -> Result<bool, FrameError> {
        let (start, end) = (first(&self.framing.start), first(&self.framing.end));
        let Some(at) = memchr::memchr2(start, end, &self.bytes[self.looked_at..]).map(|at| at + self.looked_at) else {
            self.looked_at = self.bytes.len();
            return self.check_length(self.looked_at).map(|()| false);
        };
        self.check_length(at)?;
        if self.bytes[at] == start {
            // The sender began anew: what came before was cut off and is no message.
            self.junk += at;
            self.bytes.advance(at);
            self.state = State::Outside;
        } else {
            self.state = State::Ending(at);
        }
        Ok(true)
    }

    /// The end may lack its last bytes where a new message begins, or a line feed stands in their place.
    fn read_end(&mut self, at: usize) -> Result<Option<Bytes>, FrameError> {
        let end = &self.framing.end;
        let came = &self.bytes[at..];
        let known = came.len().min(end.len());
        let fitting = came.iter().zip(end).take_while(|(byte, wanted)| byte == wanted).count();
        if fitting == end.len() {
            return Ok(Some(self.cut(at, fitting)));
        }
        if fitting == known {
            return Ok(None);
        }
        let next = came[fitting];
        if next != first(&self.framing.start) && !is_space(next) {
            return Err(FrameError::EndInside);
        }
        Ok(Some(self.cut(at, fitting)))
    }

    /// Takes the message before `at` out, and the `end_bytes` behind it.
    fn cut(&mut self, at: usize, end_bytes: usize) -> Bytes {
        let message = self.bytes.split_to(at).freeze();
        self.bytes.advance(end_bytes);
        (self.looked_at, self.state, self.junk) = (0, State::Outside, 0);
        message
    }

    fn check_length(&self, bytes: usize) -> Result<(), FrameError> {
        let bytes_max = self.message_bytes_max;
        if bytes > bytes_max { Err(FrameError::TooLong { bytes_max }) } else { Ok(()) }
    }
}

/// Sequences have at least one byte; see [`Framing`].
fn first(sequence: &[u8]) -> u8 {
    sequence.first().copied().unwrap_or_default()
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VT: u8 = 0x0B;
    const FS: u8 = 0x1C;

    fn decoder() -> Decoder {
        Decoder::new(Framing::standard(), 1000)
    }

    /// All messages of a stream that comes in these pieces, and how it ended.
    fn read(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut decoder = decoder();
        let mut messages = Vec::new();
        for piece in pieces {
            decoder.buffer().extend_from_slice(piece);
            while let Some(message) = decoder.next_message()? {
                messages.push(message.to_vec());
            }
        }
        messages.extend(decoder.finish().map(|message| message.to_vec()));
        Ok(messages)
    }

    fn strings(messages: Result<Vec<Vec<u8>>, FrameError>) -> Result<Vec<String>, FrameError> {
        messages.map(|all| all.into_iter().map(|one| String::from_utf8(one).unwrap()).collect())
    }

    #[test]
    fn m24_a_message_may_come_byte_by_byte() {
        let stream = b"\x0bMSH|a\rPID|b\r\x1c\r";
        let pieces: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(strings(read(&pieces)), Ok(vec!["MSH|a\rPID|b\r".to_owned()]));
    }

    #[test]
    fn m25_several_messages_may_come_in_one_read() {
        assert_eq!(strings(read(&[b"\x0ba\x1c\r\x0bb\x1c\r\x0bc"])), Ok(vec!["a".to_owned(), "b".to_owned()]));
    }

    // Three widespread receivers wait for ever for an end without its CR, and some senders leave it out.
    #[test]
    fn m23_the_last_byte_of_the_end_may_be_missing_or_come_later() {
        for pieces in [
            &[&b"\x0ba\x1c"[..], b"\r\x0bb\x1c\r"][..],
            &[b"\x0ba\x1c\x0bb\x1c\r"],
            &[b"\x0ba\x1c\n\x0bb\x1c\r\n"],
            &[b"\x0ba\x1c\r\x0bb\x1c"],
        ] {
            assert_eq!(strings(read(pieces)), Ok(vec!["a".to_owned(), "b".to_owned()]), "{pieces:?}");
        }
        assert_eq!(read(&[b"\x0ba\x1cPID|"]), Err(FrameError::EndInside));
    }

    #[test]
    fn m26_lines_of_a_log_before_a_message_are_skipped_up_to_a_limit() {
        let mut decoder = decoder();
        decoder.buffer().extend_from_slice(b"connected to lis\r\n");
        assert_eq!(decoder.next_message(), Ok(None));
        assert_eq!(decoder.pending(), Pending::Junk(14));
        decoder.buffer().extend_from_slice(b"\x0ba\x1c\r\r\n");
        assert_eq!(decoder.next_message(), Ok(Some(Bytes::from_static(b"a"))));
        assert_eq!((decoder.next_message(), decoder.pending()), (Ok(None), Pending::Nothing));
        let endless: Vec<u8> = std::iter::repeat_n(b"0123456789 ", 10_000).flatten().copied().collect();
        assert_eq!(read(&[&endless]), Err(FrameError::Junk));
    }

    #[test]
    fn a_message_that_its_sender_began_anew_is_not_two_halves_in_one() {
        assert_eq!(strings(read(&[b"\x0bMSH|half\x0bMSH|whole\x1c\r"])), Ok(vec!["MSH|whole".to_owned()]));
    }

    #[test]
    fn m36_a_message_over_the_limit_is_refused_before_it_is_held() {
        let mut long = vec![VT];
        long.extend(std::iter::repeat_n(b'x', 1001));
        assert_eq!(read(&[&long]), Err(FrameError::TooLong { bytes_max: 1000 }));
        long.pop();
        long.extend([FS, b'\r']);
        assert_eq!(read(&[&long]).map(|read| read[0].len()), Ok(1000));
    }

    #[test]
    fn m32_framing_inside_of_a_message_is_refused() {
        let mut into = BytesMut::new();
        for (message, byte, at) in [(&b"MSH|\x1c"[..], FS, 4), (b"\x0bMSH", VT, 0), (b"a\x0b\x1c", VT, 1)] {
            assert_eq!(encode(&Framing::standard(), message, &mut into), Err(ForbiddenByte { byte, at }));
        }
        assert!(into.is_empty());
        let framing = Framing { start: vec![2], end: vec![3] };
        assert_eq!(encode(&framing, b"\x0b\x1c\r", &mut into), Ok(()));
        assert_eq!(&into[..], b"\x02\x0b\x1c\r\x03");
    }

    proptest! {
        // proves: m31, oracle 8
        #[test]
        fn what_is_framed_comes_out_byte_for_byte_however_it_is_split(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6),
            cuts in prop::collection::vec(1usize..9, 0..60),
        ) {
            let framing = Framing::standard();
            let (mut stream, mut wanted) = (BytesMut::new(), Vec::new());
            for message in messages {
                match encode(&framing, &message, &mut stream) {
                    Ok(()) => wanted.push(message),
                    Err(found) => prop_assert!(found.byte == VT || found.byte == FS),
                }
            }
            let mut pieces = Vec::new();
            let mut rest = &stream[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(read(&pieces), Ok(wanted));
        }
    }
}
