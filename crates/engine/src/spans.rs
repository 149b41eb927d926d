//! Traces: the context that came with a request goes on with it, and what was done becomes spans where somebody takes them (P06).
//!
//! It must not know who takes them, nor wait for it.

use postrider_core::Timestamp;
use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::id::{Cid, DeliveryId};
use postrider_core::message::RequestHead;
use postrider_core::trace::{Span, SpanId, SpanKind, TraceContext, TraceId};
use postrider_wire::Outgoing;

use crate::shared::Shared;

/// A request that is being taken in, and traced.
pub(crate) struct Accepting {
    context: TraceContext,
    parent: Option<SpanId>,
    began: Timestamp,
}

impl Shared {
    fn new_span_id(&self) -> SpanId {
        SpanId::from_bits(self.dice.bits() as u64)
    }
}

/// Gives the request the context under which its attempts are made: the caller's, or with somebody to take spans a child of it, or a new
/// one. `given`: of the caller's own request; else the context in the headers that are sent on counts.
pub(crate) fn begin(shared: &Shared, head: &mut RequestHead, given: Option<TraceContext>) -> Option<Accepting> {
    let in_headers = || {
        let parent = head.headers.get("traceparent")?;
        TraceContext::parse(parent, head.headers.get("tracestate")).ok()
    };
    let given = given.or_else(in_headers);
    if shared.options.spans.get().is_none() {
        head.trace = given;
        return None;
    }
    let own = shared.new_span_id();
    let parent = given.as_ref().map(|given| given.span_id);
    let context = match given {
        Some(given) => given.child(own),
        None => TraceContext::root(TraceId::from_bits(shared.dice.bits()), own),
    };
    head.trace = Some(context.clone());
    context.is_sampled().then(|| Accepting { context, parent, began: shared.now() })
}

impl Accepting {
    /// It has been stored, or its call has ended.
    pub fn end(self, shared: &Shared, connection: &str, id: Option<DeliveryId>, cid: &Cid) {
        let Some(sink) = shared.options.spans.get() else { return };
        sink.ended(Span {
            kind: SpanKind::Accept,
            trace_id: self.context.trace_id,
            span_id: self.context.span_id,
            parent: self.parent,
            state: self.context.state().unwrap_or_default().to_owned(),
            began: self.began,
            ended: shared.now(),
            connection: connection.to_owned(),
            msg_id: id.map(|id| id.to_string()).unwrap_or_default(),
            cid: cid.to_string(),
            attempt: None,
            status: None,
            failure: None,
        });
    }
}

/// The context that goes out with an attempt: a span of its own.
pub(crate) fn of_attempt(shared: &Shared, outgoing: &Outgoing) -> Option<TraceContext> {
    let of_request = outgoing.head.trace.as_ref()?;
    Some(of_request.child(shared.new_span_id()))
}

/// An attempt has ended.
pub(crate) fn attempted(
    shared: &Shared,
    connection: &Connection,
    (id, cid): (DeliveryId, &Cid),
    (of_request, of_attempt): (Option<&TraceContext>, Option<&TraceContext>),
    attempt: &Attempt,
) {
    let (Some(sink), Some(of_request), Some(own)) = (shared.options.spans.get(), of_request, of_attempt) else {
        return;
    };
    if !own.is_sampled() {
        return;
    }
    sink.ended(Span {
        kind: SpanKind::Attempt,
        trace_id: own.trace_id,
        span_id: own.span_id,
        parent: Some(of_request.span_id),
        state: own.state().unwrap_or_default().to_owned(),
        began: attempt.started_at,
        ended: attempt.started_at + attempt.took,
        connection: connection.name.clone(),
        msg_id: id.to_string(),
        cid: cid.to_string(),
        attempt: Some(attempt.number),
        status: attempt.status,
        failure: attempt.failure,
    });
}
