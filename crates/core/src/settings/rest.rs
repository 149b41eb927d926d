//! The keys of `outgoing_rest`.
use serde_json::{Map, Value};

use super::SettingError;
use crate::connection::ConnectionSpec;

/// To be completed.
pub fn parse(_written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    Err(Vec::new())
}
