//! Trace contexts (W3C Trace Context, sections 3.2 and 3.3): what is read is what the grammar has, and what is written is read back.

use postrider_core::trace::TraceContext;

/// The first line is `traceparent`, all behind it `tracestate`.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let text = crate::unescaped(text);
    let (parent, state) = text.split_once('\n').map_or((text.as_str(), None), |(parent, state)| (parent, Some(state)));
    let read = TraceContext::parse(parent, state);
    let Some((trace, span, sampled)) = meant(parent.trim()) else {
        assert!(read.is_err(), "no traceparent by the model, and yet it was read: {parent:?}");
        return;
    };
    let context = read.unwrap_or_else(|error| panic!("{parent:?} was refused: {error}"));
    assert_eq!((context.trace_id.to_string(), context.span_id.to_string()), (trace, span));
    assert_eq!(context.is_sampled(), sampled);
    if let Some(kept) = context.state() {
        assert!(
            kept.len() <= 512 && kept.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\t'),
            "{kept:?}"
        );
        assert_eq!(state.map(str::trim), Some(kept), "kept as it came or not at all");
    }
    let again = TraceContext::parse(&context.parent(), context.state()).expect("what is written is read");
    assert_eq!((again.parent(), again.state()), (context.parent(), context.state()));
    let stored = serde_json::to_string(&context).expect("it is JSON");
    assert_eq!(serde_json::from_str::<TraceContext>(&stored).expect("it is read back").parent(), context.parent());
}

/// By counting dashes and digits, field by field.
fn meant(text: &str) -> Option<(String, String, bool)> {
    let fields: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags, more @ ..] = fields.as_slice() else { return None };
    let is_hex =
        |field: &str, digits: usize| field.len() == digits && field.chars().all(|c| "0123456789abcdef".contains(c));
    let shaped = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    let is_some = |field: &str| field.chars().any(|c| c != '0');
    let known = *version != "ff" && (*version != "00" || more.is_empty());
    let sampled = flags.ends_with(|c: char| "13579bdf".contains(c));
    (shaped && known && is_some(trace) && is_some(span)).then(|| ((*trace).to_owned(), (*span).to_owned(), sampled))
}
