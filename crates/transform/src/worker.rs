//! What runs in a worker's process: one program after another, until the server closes the pipe.
//!
//! It must not know who asks. When the server is gone it ends, and what loops on then is ended by its limit of CPU time.

use std::io::{self, Read, Write};

use bytes::Bytes;

use crate::confine::{confine, grant_cpu};
use crate::frame::{Answer, READY, REQUEST_HEAD, RequestHead};
use crate::program::Programs;

/// Serves programs on standard input and output.
///
/// # Errors
/// The limits cannot be set, or the pipe broke.
pub fn work(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    let mut programs = Programs::default();
    // What every program stands on is there before the memory is counted.
    let _ = programs.check(".");
    confine(memory_bytes)?;
    let (mut from, mut to) = (io::stdin().lock(), io::stdout().lock());
    to.write_all(&[READY])?;
    to.flush()?;
    let mut head = [0; REQUEST_HEAD];
    loop {
        match from.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        grant_cpu(cpu_seconds)?;
        let answer = answer(&mut programs, RequestHead::read(head), &mut from)?;
        let (head, bytes) = answer.write();
        to.write_all(&head)?;
        to.write_all(&bytes)?;
        to.flush()?;
    }
}

fn answer(programs: &mut Programs, head: RequestHead, from: &mut impl Read) -> io::Result<Answer> {
    let program = String::from_utf8(take(from, head.program)?).map_err(io::Error::other)?;
    let result = match head.body {
        None => programs.check(&program).map(|()| Bytes::new()),
        Some(length) => {
            let body = take(from, length)?;
            let most = usize::try_from(head.output_max).unwrap_or(usize::MAX);
            programs.run(&program, &body, most).map(Bytes::from)
        }
    };
    Ok(result.map_or_else(Answer::Error, Answer::Output))
}

fn take(from: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
