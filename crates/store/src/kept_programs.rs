//! The transformation of a subscription that is gone, for as long as a delivery may still need it: never is the raw body sent in its place (R13).
//!
//! How it is written among the named values. It must not know what a program says.

use postrider_core::Timestamp;
use postrider_core::id::SubscriptionId;
use postrider_core::subscription::PushSubscription;
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// What their names begin with.
pub(crate) const PREFIX: &str = "transformation.of.";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptProgram {
    pub program: String,
    /// When its subscription went.
    pub kept_at: Timestamp,
}

impl KeptProgram {
    pub fn name(of: SubscriptionId) -> String {
        format!("{PREFIX}{of}")
    }

    /// What has to be kept of a subscription that goes: its name and value, or nothing.
    pub fn of(going: &PushSubscription, now: Timestamp) -> Result<Option<(String, String)>, StoreError> {
        let Some(program) = going.spec.transformation.clone() else { return Ok(None) };
        let kept = KeptProgram { program, kept_at: now };
        let written = serde_json::to_string(&kept).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(Some((KeptProgram::name(going.id), written)))
    }

    pub fn read(written: &str) -> Result<Self, StoreError> {
        serde_json::from_str(written).map_err(|error| StoreError::Corrupt(format!("a kept transformation: {error}")))
    }

    /// Of which subscription, for one that was kept before that time.
    pub fn kept_before(name: &str, written: &str, before: Timestamp) -> Result<Option<SubscriptionId>, StoreError> {
        let of = name.strip_prefix(PREFIX).and_then(|of| of.parse().ok());
        let of = of.ok_or_else(|| StoreError::Corrupt(format!("a kept transformation is named `{name}`")))?;
        Ok(Some(of).filter(|_| KeptProgram::read(written).is_ok_and(|kept| kept.kept_at < before)))
    }
}
