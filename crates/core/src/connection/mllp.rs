//! Where an MLLP connection's messages go, and what it takes for an acknowledgment.
//!
//! It must not know how HL7 is read or framed.

use super::TlsSettings;
use crate::Wait;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MllpTarget {
    /// A host name or an IP address; an IPv6 address in brackets.
    pub host: String,
    pub port: u16,
    pub framing: Framing,
    /// `None`: in the clear.
    pub tls: Option<TlsSettings>,
    /// From the first look-up of the name to a socket that is ready, TLS included.
    pub connect_timeout: Wait,
    /// For writing one message.
    pub write_timeout: Wait,
    /// From the last byte written to the acknowledgment.
    pub ack_timeout: Wait,
    /// A message longer than this is refused before it is stored, an acknowledgment longer than this is none. In bytes, without framing.
    pub message_bytes_max: u32,
    /// Sockets at most; each has one message in flight.
    pub pool_size: u32,
    /// `false`: each message has a socket of its own, for receivers that get mixed up otherwise.
    pub keep_open: bool,
    /// A socket on which nothing went on for this long is closed; `None` = never.
    pub idle_close: Option<Wait>,
    /// At least this long between an acknowledgment and the next message on the same socket.
    pub gap_min: Wait,
    pub segment_ends: SegmentEnds,
    pub ack_match: AckMatch,
    pub application_ack: ApplicationAck,
    pub retry_on: RetryOn,
}

/// The bytes before and after a message on the wire; each at least one. Messages that hold the first byte of either are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framing {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
}

impl Framing {
    /// VT before, FS and CR behind, as the protocol has it.
    pub fn standard() -> Self {
        Framing { start: vec![0x0B], end: vec![0x1C, 0x0D] }
    }
}

/// What ends a segment of a message on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentEnds {
    /// What the message has: no byte is changed.
    AsIs,
    /// CR, also where the message has LF or CR LF, and behind the last segment.
    Cr,
}

/// Which acknowledgments count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckMatch {
    /// One whose MSA-2 is the message's MSH-10.
    Strict,
    /// The first that can be read; another MSA-2 is told in the server's log.
    Warn,
}

/// Where the answer of the application comes that a message asks for in MSH-16, after the commit acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationAck {
    /// On the same socket: `CA` is followed by `AA`, `AE` or `AR`, and that decides.
    Same,
    /// Elsewhere: `CA` decides.
    Other,
}

/// Which negative acknowledgments another attempt may help against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// `AE` and `CE`.
    pub errors: bool,
    /// `AR` and `CR`.
    pub rejects: bool,
}

impl RetryOn {
    /// What the codes mean: `AR` asks for another attempt, `AE` says that the message itself is at fault.
    pub const STANDARD: RetryOn = RetryOn { errors: false, rejects: true };
}

impl MllpTarget {
    /// `host:port`.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The longest that one attempt may take.
    pub fn attempt_timeout(&self) -> Wait {
        self.gap_min + self.connect_timeout + self.write_timeout + self.ack_timeout
    }
}
