//! Spans in the JSON encoding of OTLP: ids in hexadecimal, times in nanoseconds as text. It must not know where they go.

use postrider_core::trace::{Span, SpanKind};
use serde_json::{Value, json};

const SERVER: u8 = 2;
const CLIENT: u8 = 3;
const STATUS_ERROR: u8 = 2;

/// `ExportTraceServiceRequest`.
pub(super) fn request(spans: &[Span]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let version = env!("CARGO_PKG_VERSION");
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "postrider"), text("service.version", version)]},
        "scopeSpans": [{"scope": {"name": "postrider", "version": version}, "spans": spans}],
    }]})
}

fn span(span: &Span) -> Value {
    let (kind, name) = match span.kind {
        SpanKind::Accept => (SERVER, "accept"),
        SpanKind::Attempt => (CLIENT, "attempt"),
    };
    let mut attributes = vec![
        text("postrider.connection", &span.connection),
        text("messaging.message.id", &span.msg_id),
        text("postrider.cid", &span.cid),
    ];
    attributes.extend(span.attempt.map(|number| int("postrider.attempt", number.into())));
    attributes.extend(span.status.map(|status| int("http.response.status_code", status.into())));
    attributes.extend(span.failure.map(|failure| text("error.type", failure.as_str())));
    let mut value = json!({
        "traceId": span.trace_id.to_string(),
        "spanId": span.span_id.to_string(),
        "name": format!("{name} {}", span.connection),
        "kind": kind,
        "startTimeUnixNano": nanos(span.began.as_millis()),
        "endTimeUnixNano": nanos(span.ended.as_millis()),
        "attributes": attributes,
    });
    if let Some(parent) = span.parent {
        value["parentSpanId"] = parent.to_string().into();
    }
    if !span.state.is_empty() {
        value["traceState"] = span.state.as_str().into();
    }
    if let Some(failure) = span.failure {
        value["status"] = json!({"code": STATUS_ERROR, "message": failure.as_str()});
    }
    value
}

fn nanos(millis: i64) -> String {
    (i128::from(millis.max(0)) * 1_000_000).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// 64-bit integers are text in this encoding.
fn int(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
