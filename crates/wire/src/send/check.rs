//! What can be said of a message before it is stored: whether it could ever be sent to where it is meant to go.
//!
//! It must not know what is refused for other reasons, such as a full queue.

use postrider_core::SettingError;
use postrider_core::connection::{Connection, RestTarget, Target};
use postrider_core::message::{Message, Method};

/// # Errors
/// The part of the message that is at fault, and what is allowed.
pub fn check(connection: &Connection, message: &Message) -> Result<(), SettingError> {
    match &connection.spec.target {
        Target::Rest(rest) => over_rest(rest, message),
        Target::Webhook(_) => at_an_endpoint(message),
        Target::Mllp(_) => Ok(()),
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
