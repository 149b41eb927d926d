//! The record of one time on the wire. Records are appended and never changed (oracle 4).
//!
//! This module must not know how records are stored.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::message::HeaderList;
use crate::{Failure, Timestamp, Wait};

/// How many bytes of an answer the log keeps (V07).
pub const LOGGED_ANSWER_BYTES_MAX: usize = 2048;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// 1, 2, 3, … without gaps.
    pub number: u32,
    pub started_at: Timestamp,
    pub took: Wait,
    /// `None`: delivered.
    pub failure: Option<Failure>,
    pub status: Option<u16>,
    /// One sentence for people; `None` when delivered.
    pub error: Option<String>,
    pub response_headers: HeaderList,
    /// The first 2 KB of the answer.
    #[serde(skip)]
    pub response_body: Bytes,
    /// The whole answer's size in bytes, as far as it was read.
    pub response_bytes: u64,
    pub incomplete: bool,
}
