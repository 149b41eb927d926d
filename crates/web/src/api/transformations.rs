//! `/projects/{project}/transformations`: a program is tried before a subscription gets it (R13).

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use postrider_engine::Sample;

use super::{Acting, AppState, Input, events};
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

const ONE_OF: &str = "`body`, or an `event` with `type` and `data`";

/// `{program, body}` or `{program, event: {type, data}}` → `{output}`. Nothing is stored or sent.
pub async fn preview(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    state.project(&segments).await?;
    let (program, sample) = read(&state, input.fields)?;
    let output = state.engine.preview_transformation(&program, sample).await?;
    // As it would be sent: no number is read and written again.
    let answer = [&br#"{"output":"#[..], &output[..], &b"}"[..]].concat();
    Ok((StatusCode::OK, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], answer).into_response())
}

fn read(state: &AppState, mut fields: Fields) -> Result<(String, Sample), Problem> {
    let program = fields.required_text("program");
    let has_body = fields.has("body");
    let (body, event) = (fields.take("body"), fields.take("event"));
    if has_body == event.is_some() {
        fields.refuse("body", "`body` and `event` are both there, or neither", ONE_OF);
    }
    let body = has_body.then(|| fields.compacted("body", body.as_deref()).map(Bytes::from));
    fields.finish(&["program", "body", "event"])?;
    let sample = match (body.flatten(), event) {
        (Some(body), _) => {
            state.check_body_size(&body)?;
            Sample::Body(body)
        }
        (None, Some(event)) => {
            let event = events::read(state, Fields::parse(event.get().as_bytes())?)?;
            Sample::Event { event_type: event.event_type, data: event.body }
        }
        (None, None) => return Err(Problem::field("body", "`body` is missing", ONE_OF)),
    };
    let program = program.ok_or_else(|| Problem::field("program", "`program` is missing", "a jq program"))?;
    Ok((program, sample))
}
