//! What reading and framing cost, in CPU time of the thread: ten times as much message takes about ten times as long, whatever it is made of.
//! That fifty megabytes go out and are acknowledged is in `sockets`.

use bytes::{Buf as _, BytesMut};
use postrider_core::connection::Framing;
use postrider_wire::codec::{hl7, mllp};

const SMALL: usize = 1 << 20;
const LARGE: usize = 10 << 20;
/// What looks back over all that it has read takes a hundred times as long.
const RATIO_MAX: f64 = 30.0;

/// Nanoseconds that this thread has had a processor; other threads and processes do not count.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

/// The kernel counts in ticks of some milliseconds, so that less than several of them says nothing.
const SPAN_NS: u64 = 20_000_000;

/// Of one run, the least of three spans.
fn cost(work: impl Fn()) -> f64 {
    let once = |_| {
        let (before, mut runs) = (cpu_ns(), 0.0);
        loop {
            work();
            runs += 1.0;
            let spent = cpu_ns() - before;
            if spent >= SPAN_NS {
                return spent as f64 / runs;
            }
        }
    };
    (0..3).map(once).fold(f64::MAX, f64::min)
}

/// A message of so many bytes that says one thing again and again.
fn message(piece: &str, bytes: usize) -> Vec<u8> {
    let mut message = b"MSH|^~\\&|HIS|GH|LIS|GH|20260312||ORU^R01|M1|P|2.5\r".to_vec();
    message.extend_from_slice(piece.repeat(bytes / piece.len()).as_bytes());
    message.push(b'\r');
    message
}

const PIECES: [(&str, &str); 7] = [
    ("one field", "AAAAAAAAAAAAAAAA"),
    ("fields", "|"),
    ("segments", "OBX|1|NM|x||1\r"),
    ("empty segments", "\r"),
    ("line feeds", "OBX|1\r\n"),
    ("acknowledgments", "MSA|AA|M1|text\r"),
    ("headers", "MSH|^~\\&|||||||ACK|M1|P|2.5\rMSA|AE|M1\r"),
];

fn hold(name: &str, work: impl Fn(&[u8])) {
    for (what, piece) in PIECES {
        let [small, large] = [SMALL, LARGE].map(|bytes| {
            let message = message(piece, bytes);
            cost(|| work(&message))
        });
        // Below a nanosecond a byte it is caches and fresh pages of memory that make the difference.
        let ratio = large / small.max(SMALL as f64);
        // What stops early costs next to nothing for both, and says nothing.
        assert!(
            ratio < RATIO_MAX || large < 5_000_000.0,
            "{name} of {what}: {ratio:.1} times as long for ten times as much"
        );
    }
}

#[test]
fn m36_a_message_is_read_in_linear_time() {
    hold("the outline", |message| assert!(hl7::outline(message).is_ok()));
}

#[test]
fn m36_an_acknowledgment_is_read_in_linear_time() {
    hold("the acknowledgment", |message| {
        std::hint::black_box(hl7::acknowledgment(message).map(|ack| ack.items.len()).ok());
    });
}

#[test]
fn m36_frames_are_made_and_found_in_linear_time() {
    let framing = Framing::standard();
    hold("the frame", |message| {
        let mut frame = BytesMut::new();
        mllp::encode(&framing, message, &mut frame).unwrap();
        let mut decoder = mllp::Decoder::new(framing.clone(), 64 << 20);
        let mut found = 0;
        // As sockets give it: a little at a time.
        while frame.has_remaining() {
            let piece = frame.split_to(frame.len().min(16 << 10));
            decoder.buffer().extend_from_slice(&piece);
            found += usize::from(decoder.next_message().unwrap().is_some());
        }
        assert_eq!(found, 1);
    });
}
