//! Where a REST connection's requests go.

use super::{DataFormat, TlsSettings};
use crate::path_template::PathTemplate;

#[derive(Clone, Debug, PartialEq)]
pub struct RestTarget {
    /// `http://…` or `https://…`: scheme, host and port, no path, no user info, no slash at the end.
    pub host: String,
    pub url_path: PathTemplate,
    pub content_type: Option<String>,
    pub data_format: DataFormat,
    /// Sockets kept open at most, and attempts at once at most.
    pub pool_size: u32,
    pub tls: TlsSettings,
}

impl RestTarget {
    /// Placeholders as written.
    pub fn address(&self) -> String {
        format!("{}{}", self.host, self.url_path.as_str())
    }
}
