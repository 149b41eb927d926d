//! A connection's `url_path` with `{placeholders}`, filled from a request's params.

use serde::{Deserialize, Serialize};

/// To be completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathTemplate(String);
