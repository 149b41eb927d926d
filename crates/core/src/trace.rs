//! W3C Trace Context (Recommendation of 2021-11-23): read from callers, kept with the request, and sent on with the attempt's own span.
//!
//! What cannot be read is ignored, as the recommendation has it: a broken header of somebody else's never refuses a request. It must not
//! know where spans are sent, nor where ids come from.

use serde::{Deserialize, Serialize};

use crate::{Failure, Timestamp};

/// Longer lists of `tracestate` are dropped (section 3.3.1.5 asks for at least 512).
const STATE_BYTES_MAX: usize = 512;
const STATE_MEMBERS_MAX: usize = 32;
const SAMPLED: u8 = 1;

/// Never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

/// Never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

/// Which trace something belongs to, and the span that it is a child of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Headers", into = "Headers")]
pub struct TraceContext {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    flags: u8,
    /// As it came; empty when there is none.
    state: String,
}

/// How it is written, on the wire and in the store.
#[derive(Serialize, Deserialize)]
struct Headers {
    traceparent: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tracestate: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no traceparent")]
pub struct NoTraceParent;

impl TraceId {
    /// From random bits.
    pub fn from_bits(bits: u128) -> TraceId {
        TraceId(bits.max(1))
    }
}

impl SpanId {
    /// From random bits.
    pub fn from_bits(bits: u64) -> SpanId {
        SpanId(bits.max(1))
    }
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::fmt::Display for SpanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::fmt::Debug for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Debug for SpanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl TraceContext {
    /// A trace that begins here, and is sampled.
    pub fn root(trace_id: TraceId, span_id: SpanId) -> TraceContext {
        TraceContext { trace_id, span_id, flags: SAMPLED, state: String::new() }
    }

    /// Reads `traceparent` (section 3.2) and with it `tracestate`; a list that is too long or no list is left out.
    pub fn parse(parent: &str, state: Option<&str>) -> Result<TraceContext, NoTraceParent> {
        let (trace_id, span_id, flags) = read_parent(parent.trim()).ok_or(NoTraceParent)?;
        let state = state.map(str::trim).filter(|state| is_state(state)).unwrap_or_default();
        Ok(TraceContext { trace_id, span_id, flags, state: state.to_owned() })
    }

    /// The same trace, with another span to be a child of.
    #[must_use]
    pub fn child(&self, span_id: SpanId) -> TraceContext {
        TraceContext { span_id, ..self.clone() }
    }

    /// Whether whoever began the trace records it.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    pub fn parent(&self) -> String {
        // Other flags than these are not ours to send on (section 3.2.2.5.2).
        format!("00-{}-{}-{:02x}", self.trace_id, self.span_id, self.flags & SAMPLED)
    }

    /// `tracestate`, where there is one.
    pub fn state(&self) -> Option<&str> {
        Some(self.state.as_str()).filter(|state| !state.is_empty())
    }
}

impl TryFrom<Headers> for TraceContext {
    type Error = NoTraceParent;
    fn try_from(headers: Headers) -> Result<Self, NoTraceParent> {
        TraceContext::parse(&headers.traceparent, Some(&headers.tracestate))
    }
}

impl From<TraceContext> for Headers {
    fn from(context: TraceContext) -> Headers {
        Headers { traceparent: context.parent(), tracestate: context.state }
    }
}

fn read_parent(text: &str) -> Option<(TraceId, SpanId, u8)> {
    const LENGTH: usize = 55;
    let (known, more) = text.split_at_checked(LENGTH)?;
    let bytes = known.as_bytes();
    if bytes[2] != b'-' || bytes[35] != b'-' || bytes[52] != b'-' {
        return None;
    }
    let version = hex(&known[..2])?;
    // A later version may have more behind what this one knows; `ff` is none.
    let fits = if version == 0 { more.is_empty() } else { more.is_empty() || more.starts_with('-') };
    if version == 0xff || !fits {
        return None;
    }
    let trace_id = hex(&known[3..35]).filter(|id| *id != 0)?;
    let span_id = u64::try_from(hex(&known[36..52])?).ok().filter(|id| *id != 0)?;
    let flags = u8::try_from(hex(&known[53..])?).ok()?;
    Some((TraceId(trace_id), SpanId(span_id), flags))
}

/// In lower case only (section 3.2.2).
fn hex(text: &str) -> Option<u128> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    is_hex.then(|| u128::from_str_radix(text, 16).ok())?
}

/// A list of `key=value`, in visible ASCII.
fn is_state(text: &str) -> bool {
    let members = || text.split(',').map(str::trim).filter(|member| !member.is_empty());
    text.len() <= STATE_BYTES_MAX
        && text.bytes().all(|byte| byte == b' ' || byte == b'\t' || byte.is_ascii_graphic())
        && members().count() <= STATE_MEMBERS_MAX
        && members()
            .all(|member| member.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty()))
}

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A request was taken in.
    Accept,
    /// An attempt at the remote system.
    Attempt,
}

/// A piece of work that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub kind: SpanKind,
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub parent: Option<SpanId>,
    /// `tracestate` as it came.
    pub state: String,
    pub began: Timestamp,
    pub ended: Timestamp,
    pub connection: String,
    pub msg_id: String,
    pub cid: String,
    /// Of an attempt, from 1.
    pub attempt: Option<u32>,
    pub status: Option<u16>,
    pub failure: Option<Failure>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    // proves: P06
    #[test]
    fn p06_what_came_goes_on_under_the_same_trace() {
        let context = TraceContext::parse(PARENT, Some("congo=t61rcWkgMzE, rojo=00f067aa0ba902b7")).unwrap();
        assert_eq!(context.parent(), PARENT);
        assert_eq!(context.state(), Some("congo=t61rcWkgMzE, rojo=00f067aa0ba902b7"));
        let child = context.child(SpanId::from_bits(0xab));
        assert_eq!(child.parent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000ab-01");
        assert!(child.is_sampled());
        let stored = serde_json::to_string(&child).unwrap();
        assert_eq!(serde_json::from_str::<TraceContext>(&stored).unwrap(), child);
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known_and_what_is_broken_is_none() {
        for good in [
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes",
        ] {
            assert!(TraceContext::parse(good, None).is_ok(), "{good}");
        }
        let broken = [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            &PARENT.to_uppercase(),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            &format!("{PARENT}-x"),
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ];
        for text in broken {
            assert_eq!(TraceContext::parse(text, None), Err(NoTraceParent), "{text}");
        }
        for state in ["a", "=b", "a=", "a=\u{1}", &"a=b,".repeat(33), &format!("a={}", "b".repeat(511))] {
            assert_eq!(TraceContext::parse(PARENT, Some(state)).unwrap().state(), None, "{state}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_read_panics(parent in "\\PC{0,70}", state in "\\PC{0,40}") {
            let _ = TraceContext::parse(&parent, Some(&state));
        }

        #[test]
        fn what_is_written_is_read_back(trace in any::<u128>(), span in any::<u64>()) {
            let context = TraceContext::root(TraceId::from_bits(trace), SpanId::from_bits(span));
            prop_assert_eq!(TraceContext::parse(&context.parent(), None), Ok(context));
        }
    }
}
