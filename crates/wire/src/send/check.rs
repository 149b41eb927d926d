//! What can be said of a message without sending it: whether it could ever be sent to where it is meant to go, and what an answer to it
//! meant.
//!
//! It must not know what is refused for other reasons, such as a full queue.

use postrider_core::connection::{Connection, RestTarget, Target};
use postrider_core::message::{HeaderList, Message, Method};
use postrider_core::{Said, SettingError};

/// # Errors
/// The part of the message that is at fault, and what is allowed.
pub fn check(connection: &Connection, message: &Message) -> Result<(), SettingError> {
    match &connection.spec.target {
        Target::Rest(rest) => over_rest(rest, message),
        Target::Webhook(_) => at_an_endpoint(message),
        Target::Mllp(mllp) => super::mllp::check(mllp, message),
        Target::Soap(soap) => over_rest(&soap.http, message).and_then(|()| super::soap::check(soap, message)),
        Target::Fhir(fhir) => over_rest(&fhir.http, message),
        Target::Channel(_) | Target::Service(_) => super::service::check(&message.head),
    }
}

/// What the settings of a connection say that only a codec can judge.
///
/// # Errors
/// The key that is at fault, and what is allowed.
pub fn check_target(target: &Target) -> Result<(), SettingError> {
    match target {
        Target::Rest(_)
        | Target::Mllp(_)
        | Target::Fhir(_)
        | Target::Webhook(_)
        | Target::Channel(_)
        | Target::Service(_) => Ok(()),
        Target::Soap(soap) => super::soap::check_target(soap),
    }
}

/// What an answer that was kept says about the outcome, where its protocol says it in the body.
pub fn said(connection: &Connection, headers: &HeaderList, body: &[u8], is_cut: bool) -> Option<Said> {
    match &connection.spec.target {
        Target::Rest(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => None,
        Target::Mllp(_) => super::mllp::ack_of(body).map(Said::Ack),
        Target::Soap(_) => Some(super::soap::said(headers.get("content-type"), body, is_cut)),
        Target::Fhir(_) => Some(super::fhir::said(headers, body, is_cut)),
    }
}

/// Its address is whole, and everything is a POST.
fn at_an_endpoint(message: &Message) -> Result<(), SettingError> {
    let head = &message.head;
    if head.method != Method::POST {
        return Err(SettingError::new("method", &head.method, "POST: an endpoint takes nothing else"));
    }
    if !head.path.is_empty() || !head.params.is_empty() {
        return Err(SettingError::new("path", &head.path, "nothing here: an endpoint's address is whole"));
    }
    Ok(())
}

fn over_rest(rest: &RestTarget, message: &Message) -> Result<(), SettingError> {
    rest.url_path.fill(&message.head.params, &message.head.path).map(drop).map_err(|error| {
        let path = format!("{}{}", rest.url_path.as_str(), message.head.path);
        SettingError::new("path", path, format!("one that can be built: {error}"))
    })
}
