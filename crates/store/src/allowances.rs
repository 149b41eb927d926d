//! How often something was done lately, as it stands among the named values. It must not know what is counted.

use postrider_core::quota::{Allowance, Quota};
use postrider_core::{Timestamp, Wait};

use crate::StoreError;

pub(crate) fn value_name(name: &str) -> String {
    format!("allowance.{name}")
}

/// The value as it is to be written; or, where nothing is left, how long it is until something is.
pub(crate) fn take(
    written: Option<&str>,
    allowance: Allowance,
    now: Timestamp,
) -> Result<Result<String, Wait>, StoreError> {
    let corrupt = |error: serde_json::Error| StoreError::Corrupt(format!("an allowance: {error}"));
    let kept: Vec<u64> = written.map(serde_json::from_str).transpose().map_err(corrupt)?.unwrap_or_default();
    let now = Wait::from_millis(u64::try_from(now.as_millis()).unwrap_or(0));
    let mut quota = Quota::kept(kept, allowance, now);
    match quota.take(allowance, now) {
        Ok(()) => Ok(Ok(serde_json::to_string(&quota.as_millis()).map_err(corrupt)?)),
        Err(wait) => Ok(Err(wait)),
    }
}
