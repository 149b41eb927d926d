//! Of `raw`.

use http::StatusCode;

use super::takes_cid;
use crate::openapi::{Operation, Schema, Tag, shapes};

pub fn raw() -> Operation {
    let key = Schema::text().length(1, super::KEY_BYTES_MAX).pattern("^[ -~]+$").example("invoice-17");
    let operation = Operation::new(Tag::Sending, "raw", "Pass a request through as it is")
        .details(
            "A drop-in proxy: method, path behind `raw`, query, headers and body go to the remote system, and its own answer comes back. Any \
             method is taken. `Authorization` and `Idempotency-Key` belong to the remote system here; ours are `X-API-Key` and \
             `X-Postrider-Idempotency-Key`.",
        )
        .header("X-Postrider-Idempotency-Key", key, "As `Idempotency-Key` elsewhere.");
    takes_cid(operation)
        .answers(StatusCode::ACCEPTED, "The result: it is in the queue.", shapes::queued_result())
        .answers(StatusCode::BAD_GATEWAY, "The result: there is no answer, or it is in the DLQ.", shapes::result())
        .answers(StatusCode::GATEWAY_TIMEOUT, "The result: no answer came in time.", shapes::result())
        .answers_as(None, "The remote system's own answer, or a problem of ours.", "*/*", Schema::any().example("…"))
        .with_header("X-Postrider-Msg-Id", "The delivery's id, if there is one.")
        .with_header("X-Postrider-Cid", "The correlation id.")
        .is_raw()
}
