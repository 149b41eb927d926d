//! Why the engine did not do what it was asked: our own refusals, never a remote system's.

use postrider_core::{SettingError, Wait};
use postrider_store::StoreError;

/// A refusal leaves nothing behind: nothing is half-stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{what} `{name}` does not exist")]
    NotFound { what: &'static str, name: String },
    /// One or more settings or fields, each with what is allowed.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<SettingError>),
    /// `is_active: false` refuses new calls (Z16).
    #[error("connection `{0}` is not active")]
    Inactive(String),
    #[error("the body has {given} bytes: at most {allowed} are allowed (`body_bytes_max`)")]
    TooLarge { given: u64, allowed: u64 },
    #[error("{0}")]
    Conflict(String),
    /// D15: a call with this idempotency key was cut off by a crash, so nobody knows what the remote system did.
    #[error("a call with this idempotency key was cut off: whether the remote system has acted on it is not known")]
    OutcomeUnknown { msg_id: postrider_core::id::DeliveryId },
    #[error(transparent)]
    NotNow(#[from] postrider_core::decide::Refused),
    #[error("the store is full: limit `{limit}` is reached")]
    Full { limit: &'static str },
    /// A quota of what people may ask for by hand is used up (V09).
    #[error("{what}; the next may come in {} seconds", .retry_after.as_millis().div_ceil(1000))]
    TooMany { what: &'static str, retry_after: Wait },
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    #[error("the server is stopping")]
    Stopping,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { limit } => Refusal::Full { limit },
            StoreError::Conflict(text) => Refusal::Conflict(text),
            StoreError::NotFound { what } => Refusal::NotFound { what, name: String::new() },
            StoreError::Closed => Refusal::Stopping,
            StoreError::LeaseLost | StoreError::Unavailable(_) | StoreError::Corrupt(_) => {
                Refusal::Unavailable(error.to_string())
            }
        }
    }
}
