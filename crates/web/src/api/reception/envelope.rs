//! SOAP at a channel: requests are read for what they ask, and refusals become faults (Z42, Z43). It must not know what is stored.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use postrider_core::connection::{Connection, SoapDoor};
use postrider_core::soap::SoapVersion;
use postrider_engine::envelopes::{self, Blame, NotTaken, Offer};

use crate::problem::Problem;

pub use postrider_engine::envelopes::{Asked, acknowledgment, content_type};

const SOAP_ACTION: &str = "soapaction";

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

pub fn action_of(headers: &HeaderMap) -> String {
    envelopes::action_of(text(headers, SOAP_ACTION), text(headers, CONTENT_TYPE.as_str()))
}

/// # Errors
/// 400, or 415 where the whole kind of message is not taken.
pub fn read(soap: &SoapDoor, headers: &HeaderMap, body: &[u8]) -> Result<Asked, Problem> {
    envelopes::read(soap.version, text(headers, CONTENT_TYPE.as_str()), body).map_err(|error| {
        let status = match error {
            NotTaken::InParts => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            NotTaken::Version { .. } => VERSION,
            NotTaken::NoEnvelope(_) | NotTaken::NoOperation | NotTaken::NotUtf8 => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, error.to_string())
    })
}

/// Stands for a mismatch of versions until the fault is written: HTTP has no status for it, and no refusal of ours has this one.
const VERSION: StatusCode = StatusCode::HTTP_VERSION_NOT_SUPPORTED;

/// SOAP 1.1 over HTTP has 500 for every fault (section 6.2), SOAP 1.2 tells the caller's from the server's (part 2, section 7.5.2.2). What says more than
/// that to any client of HTTP keeps its status: who must show what, how much is too much, and when to come again.
pub fn fault_of(version: SoapVersion, problem: &Problem) -> Response {
    let status = problem.status();
    let blame = match status {
        VERSION => Blame::Version,
        status if status.is_client_error() => Blame::Caller,
        _ => Blame::Server,
    };
    let kept = [
        StatusCode::UNAUTHORIZED,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let shown = match (blame, version) {
        _ if kept.contains(&status) => status,
        (Blame::Caller, SoapVersion::V12) => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = answered(shown, version, envelopes::fault(version, blame, problem.detail()));
    if let Some((name, value)) = problem.header().filter(|(name, _)| [RETRY_AFTER, WWW_AUTHENTICATE].contains(name)) {
        response.headers_mut().insert(name, value.clone());
    }
    response
}

/// Channels share the path, and none of them takes this action. The version is the caller's own.
pub fn refused_action(headers: &HeaderMap, action: &str) -> Response {
    let is_new = text(headers, CONTENT_TYPE.as_str()).is_some_and(|text| text.starts_with("application/soap+xml"));
    let version = if is_new { SoapVersion::V12 } else { SoapVersion::V11 };
    let shown: String = action.chars().filter(|c| !c.is_control()).take(200).collect();
    fault_of(version, &Problem::new(StatusCode::BAD_REQUEST, format!("nothing here takes the action `{shown}`")))
}

pub fn described(channel: &Connection, soap: &SoapDoor, request: &axum::extract::Request) -> Response {
    let host = text(request.headers(), HOST.as_str()).unwrap_or("localhost");
    // Whoever stands in front speaks TLS, and says so.
    let scheme = match text(request.headers(), "x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    let address = format!("{scheme}://{host}{}", request.uri().path());
    let wsdl = envelopes::wsdl(&Offer {
        name: &channel.name,
        version: soap.version,
        namespace: &soap.namespace,
        action: &soap.action,
        operations: &soap.operations,
        address: &address,
        is_queued: channel.spec.policy.queue.use_queue,
    });
    (StatusCode::OK, [(CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"))], wsdl).into_response()
}

fn answered(status: StatusCode, version: SoapVersion, envelope: String) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static(content_type(version)))], envelope).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z42_a_refusal_is_a_fault_with_the_status_of_its_version() {
        let shown = |version, status| fault_of(version, &Problem::new(status, "why")).status().as_u16();
        for (status, old, new) in [
            (StatusCode::BAD_REQUEST, 500, 400),
            (StatusCode::CONFLICT, 500, 400),
            (VERSION, 500, 500),
            (StatusCode::BAD_GATEWAY, 500, 500),
            (StatusCode::UNAUTHORIZED, 401, 401),
            (StatusCode::PAYLOAD_TOO_LARGE, 413, 413),
            (StatusCode::SERVICE_UNAVAILABLE, 503, 503),
        ] {
            assert_eq!((shown(SoapVersion::V11, status), shown(SoapVersion::V12, status)), (old, new), "{status}");
        }
        let full = fault_of(SoapVersion::V11, &super::super::unavailable("full"));
        assert_eq!(full.headers()[RETRY_AFTER], "5");
    }
}
