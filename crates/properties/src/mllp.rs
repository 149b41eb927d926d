//! MLLP frames: what a stream holds does not depend on how it is cut, and what is framed comes out as it was.
//!
//! The model reads the whole stream at once, byte by byte, as the protocol and the reports from the field have it.

use bytes::BytesMut;
use postrider_core::connection::Framing;
use postrider_wire::codec::mllp::{Decoder, FrameError, encode};

const VT: u8 = 0x0B;
const FS: u8 = 0x1C;
const CR: u8 = 0x0D;
const MESSAGE_BYTES_MAX: usize = 64;
const JUNK_BYTES_MAX: usize = 64 * 1024;

/// The first byte says how the rest is cut.
pub fn holds(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let wanted = model(stream);
    for piece_bytes in [stream.len().max(1), 1, usize::from(*cut % 13) + 1] {
        assert_eq!(read(stream, piece_bytes), wanted, "in pieces of {piece_bytes}");
    }
    comes_out_as_it_was(stream);
}

type Read = (Vec<Vec<u8>>, Result<(), &'static str>);

fn read(stream: &[u8], piece_bytes: usize) -> Read {
    let mut decoder = Decoder::new(Framing::standard(), MESSAGE_BYTES_MAX);
    let mut messages = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message.to_vec()),
                Ok(None) => break,
                Err(error) => return (messages, Err(name(error))),
            }
        }
    }
    messages.extend(decoder.finish().map(|message| message.to_vec()));
    (messages, Ok(()))
}

const fn name(error: FrameError) -> &'static str {
    match error {
        FrameError::TooLong { .. } => "too long",
        FrameError::Junk => "junk",
        FrameError::EndInside => "end inside",
    }
}

fn model(stream: &[u8]) -> Read {
    let mut messages = Vec::new();
    let mut junk = 0;
    let mut at = 0;
    while at < stream.len() {
        if stream[at] != VT {
            junk += usize::from(!is_space(stream[at]));
            at += 1;
            if junk > JUNK_BYTES_MAX {
                return (messages, Err("junk"));
            }
            continue;
        }
        let from = at + 1;
        let mut to = from;
        while to < stream.len() && stream[to] != VT && stream[to] != FS {
            to += 1;
            if to - from > MESSAGE_BYTES_MAX {
                return (messages, Err("too long"));
            }
        }
        match stream.get(to) {
            None => return (messages, Ok(())),
            Some(&VT) => {
                junk += to - from;
                at = to;
                continue;
            }
            Some(_) => {}
        }
        at = to + 1;
        match stream.get(at) {
            Some(&CR) => at += 1,
            Some(&next) if next != VT && !is_space(next) => return (messages, Err("end inside")),
            _ => {}
        }
        messages.push(stream[from..to].to_vec());
        junk = 0;
    }
    (messages, Ok(()))
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn comes_out_as_it_was(message: &[u8]) {
    let message = &message[..message.len().min(MESSAGE_BYTES_MAX)];
    let mut frame = BytesMut::new();
    let framed = encode(&Framing::standard(), message, &mut frame);
    assert_eq!(framed.is_err(), message.iter().any(|byte| [VT, FS].contains(byte)));
    match framed {
        Ok(()) => assert_eq!(read(&frame, 1), (vec![message.to_vec()], Ok(()))),
        Err(found) => assert!(frame.is_empty() && message[found.at] == found.byte),
    }
}
