//! A body read line by line, so that never more than one line of it is in memory.
//!
//! It must not know what a line means.

use axum::body::Body;
use bytes::{Buf, Bytes, BytesMut};

use super::body::{BodyBounds, Paced};
use crate::problem::Problem;

pub struct Lines {
    body: Paced,
    bytes_max: usize,
    /// What has come and is not yet given out.
    buffer: BytesMut,
    /// Bytes at the front of the buffer in which there is no end of line.
    searched: usize,
    /// Of a line that is too long, the rest is read and dropped.
    dropping: bool,
    ended: bool,
    number: u64,
}

/// One line that is not empty.
#[derive(Debug)]
pub struct Line {
    /// Counted from 1, empty lines included.
    pub number: u64,
    /// Without its end; `None` when it has more bytes than a request may have.
    pub content: Option<Bytes>,
}

impl Lines {
    pub fn new(body: Body, bounds: &BodyBounds) -> Self {
        Lines {
            body: Paced::new(body, bounds),
            bytes_max: usize::try_from(bounds.request_bytes_max()).unwrap_or(usize::MAX),
            buffer: BytesMut::new(),
            searched: 0,
            dropping: false,
            ended: false,
            number: 0,
        }
    }

    /// The next line that holds more than white space; the last one needs no end. `None` when there is no more.
    pub async fn next(&mut self) -> Result<Option<Line>, Problem> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let content = self.buffer.split_to(self.searched + end).freeze();
                self.buffer.advance(1);
                if let Some(line) = self.line(content) {
                    return Ok(Some(line));
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.searched > self.bytes_max {
                self.dropping = true;
            }
            if self.dropping {
                self.buffer.clear();
                self.searched = 0;
            }
            if self.ended {
                let content = self.buffer.split().freeze();
                let is_there = self.dropping || !content.is_empty();
                return Ok(if is_there { self.line(content) } else { None });
            }
            match self.body.next().await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => self.ended = true,
            }
        }
    }

    /// What was done with the lines so far took its time.
    pub fn begin_window(&mut self) {
        self.body.begin_window();
    }

    fn line(&mut self, content: Bytes) -> Option<Line> {
        self.searched = 0;
        self.number += 1;
        if std::mem::take(&mut self.dropping) || content.len() > self.bytes_max {
            return Some(Line { number: self.number, content: None });
        }
        let is_empty = content.iter().all(u8::is_ascii_whitespace);
        (!is_empty).then_some(Line { number: self.number, content: Some(content) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    fn bounds() -> BodyBounds {
        BodyBounds { body_bytes_max: 1, ..BodyBounds::default() }
    }

    /// Lines as they come in these pieces.
    async fn lines(pieces: Vec<Vec<u8>>) -> Vec<(u64, Option<Vec<u8>>)> {
        let body = Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>)));
        let mut lines = Lines::new(body, &bounds());
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push((line.number, line.content.map(|content| content.to_vec())));
        }
        read
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_are_cut_on_the_way() {
        let text = b"{\"a\":1}\r\n\n  \n{}\nlast";
        let wanted = vec![(1, Some(b"{\"a\":1}\r".to_vec())), (4, Some(b"{}".to_vec())), (5, Some(b"last".to_vec()))];
        for size in 1..=text.len() {
            assert_eq!(lines(text.chunks(size).map(<[u8]>::to_vec).collect()).await, wanted, "{size}");
        }
        assert_eq!(lines(vec![]).await, []);
        assert_eq!(lines(vec![b"\n\n".to_vec()]).await, []);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_named_and_the_next_one_is_read() {
        let fits = vec![b'x'; usize::try_from(bounds().request_bytes_max()).unwrap()];
        let long = [&fits[..], b"x"].concat();
        for size in [1 << 10, 100 << 10, 1 << 20] {
            let text = [&long[..], b"\n{}\n", &fits, b"\n", &long].concat();
            let read = lines(text.chunks(size).map(<[u8]>::to_vec).collect()).await;
            // Not `assert_eq!`, which would print them.
            assert!(read == [(1, None), (2, Some(b"{}".to_vec())), (3, Some(fits.clone())), (4, None)], "{size}");
        }
    }
}
