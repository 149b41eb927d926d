//! What the server and a worker say to each other: a head of fixed length, then as many bytes as it says.
//!
//! It must not know how either end reads and writes, nor what a program is.

use bytes::Bytes;
use postrider_engine::TransformError;

/// Both ends are of one binary, so this changes with it and has no version.
pub const REQUEST_HEAD: usize = 16;
pub const ANSWER_HEAD: usize = 5;
/// Of the words of an error.
pub const ERROR_BYTES_MAX: usize = 2000;

/// The first byte that a worker writes: it is confined and waits.
pub const READY: u8 = b'r';

/// The head of a request: `u32` bytes of program, `u32` bytes of body, `u64` bytes of output at most; all little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub program: u32,
    /// `None`: the program is only compiled.
    pub body: Option<u32>,
    pub output_max: u64,
}

const NO_BODY: u32 = u32::MAX;

impl RequestHead {
    pub fn write(self) -> [u8; REQUEST_HEAD] {
        let mut head = [0; REQUEST_HEAD];
        head[..4].copy_from_slice(&self.program.to_le_bytes());
        head[4..8].copy_from_slice(&self.body.unwrap_or(NO_BODY).to_le_bytes());
        head[8..].copy_from_slice(&self.output_max.to_le_bytes());
        head
    }

    pub fn read(head: [u8; REQUEST_HEAD]) -> Self {
        let [a, b, c, d, e, f, g, h, output @ ..] = head;
        let body = u32::from_le_bytes([e, f, g, h]);
        RequestHead {
            program: u32::from_le_bytes([a, b, c, d]),
            body: (body != NO_BODY).then_some(body),
            output_max: u64::from_le_bytes(output),
        }
    }
}

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Output(Bytes),
    Error(TransformError),
}

/// A word for each way in which a program itself can fail; the other ways are the pool's to see.
const OUTPUT: u8 = 0;
const BAD_PROGRAM: u8 = 1;
const RAISED: u8 = 2;
const NOT_JSON: u8 = 3;
const NOT_ONE: u8 = 4;
const OUTPUT_TOO_LARGE: u8 = 5;

impl Answer {
    /// Its head, and the bytes that follow it.
    pub fn write(self) -> ([u8; ANSWER_HEAD], Bytes) {
        let (word, bytes) = match self {
            Answer::Output(bytes) => (OUTPUT, bytes),
            Answer::Error(TransformError::BadProgram(words)) => (BAD_PROGRAM, clipped(&words)),
            Answer::Error(TransformError::NotJson) => (NOT_JSON, Bytes::new()),
            Answer::Error(TransformError::NotOne) => (NOT_ONE, Bytes::new()),
            Answer::Error(TransformError::OutputTooLarge) => (OUTPUT_TOO_LARGE, Bytes::new()),
            Answer::Error(TransformError::Raised(words)) => (RAISED, clipped(&words)),
            Answer::Error(other) => (RAISED, clipped(&other.to_string())),
        };
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let [a, b, c, d] = length.to_le_bytes();
        ([word, a, b, c, d], bytes)
    }

    /// `None`: no worker of ours says this.
    pub fn read(word: u8, bytes: Bytes) -> Option<Answer> {
        let words = || String::from_utf8_lossy(&bytes).into_owned();
        Some(match word {
            OUTPUT => Answer::Output(bytes),
            BAD_PROGRAM => Answer::Error(TransformError::BadProgram(words())),
            RAISED => Answer::Error(TransformError::Raised(words())),
            NOT_JSON => Answer::Error(TransformError::NotJson),
            NOT_ONE => Answer::Error(TransformError::NotOne),
            OUTPUT_TOO_LARGE => Answer::Error(TransformError::OutputTooLarge),
            _ => return None,
        })
    }
}

/// How long the rest of an answer is, by its head.
pub fn length(head: [u8; ANSWER_HEAD]) -> usize {
    let [_, a, b, c, d] = head;
    usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX)
}

fn clipped(words: &str) -> Bytes {
    let mut end = words.len().min(ERROR_BYTES_MAX);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    Bytes::copy_from_slice(&words.as_bytes()[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_answers_read_back() {
        for body in [None, Some(0), Some(77)] {
            let head = RequestHead { program: 12, body, output_max: 1 << 40 };
            assert_eq!(RequestHead::read(head.write()), head);
        }
        let errors = [
            TransformError::BadProgram("é".to_owned()),
            TransformError::Raised("x".to_owned()),
            TransformError::NotJson,
            TransformError::NotOne,
            TransformError::OutputTooLarge,
        ];
        for answer in errors.into_iter().map(Answer::Error).chain([Answer::Output(Bytes::from_static(b"{}"))]) {
            let (head, bytes) = answer.clone().write();
            assert_eq!(length(head), bytes.len());
            assert_eq!(Answer::read(head[0], bytes), Some(answer));
        }
        assert_eq!(Answer::read(9, Bytes::new()), None);
        assert_eq!(clipped(&"é".repeat(ERROR_BYTES_MAX)).len(), ERROR_BYTES_MAX);
    }
}
