//! Alerts: what is wrong now, and what was.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::page::query;
use super::{Client, ClientError, Page, PageQuery, Whose};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Alert {
    pub id: String,
    /// Such as `oldest_waiting`.
    pub kind: String,
    /// `open` or `past`.
    pub state: String,
    pub connection: Option<String>,
    pub detail: String,
    pub action: String,
    pub raised_at: String,
    pub recovered_at: Option<String>,
    /// What a newer server says beside.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Client {
    /// Newest first; `state` is `open` or `past`, and both without it.
    pub async fn alerts(
        &self,
        whose: Whose,
        state: Option<&str>,
        page: &PageQuery,
    ) -> Result<Page<Alert>, ClientError> {
        let mut pairs = page.pairs();
        pairs.extend(state.map(|state| ("state", state.to_owned())));
        let path = self.of(whose, &format!("/alerts{}", query(&pairs)));
        self.transport.get(&path).await
    }
}
