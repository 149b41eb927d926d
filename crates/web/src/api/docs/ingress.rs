//! Of `ingress`.

use http::StatusCode;
use serde_json::json;

use crate::openapi::{Operation, Schema, Tag, always, optional};

pub fn receive() -> Operation {
    let answer = Schema::object([
        always("status", Schema::words(["accepted", "duplicate", "pong"])),
        optional("eventId", Schema::id("evt_")),
        optional("cid", Schema::text()),
    ]);
    let mut operation = Operation::new(Tag::Incoming, "receiveWebhook", "Where a provider sends its webhooks")
        .details(
            "The token in the path is the credential; no key is needed. 202 once the webhook is stored with its forwards. 401 without a valid \
             signature or when it was replayed, 404 for another token, 410 for a source that is switched off, 429 above its rate. Slack's \
             `url_verification` is answered with its challenge, GitHub's `ping` with `pong`; neither is stored. Twilio is answered 204.",
        )
        .takes_as(&["*/*"], Schema::any().describe("The webhook, byte for byte."), false, Some(json!("…")))
        .answers(StatusCode::ACCEPTED, "It is stored.", answer.clone())
        .answers(StatusCode::OK, "It came before, or it was a handshake.", answer.example(json!({"status": "duplicate"})))
        .empties("It is stored; for Twilio.")
        .refuses([
            StatusCode::UNAUTHORIZED,
            StatusCode::NOT_FOUND,
            StatusCode::GONE,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::SERVICE_UNAVAILABLE,
        ]);
    operation.takes_anything = true;
    operation
}
