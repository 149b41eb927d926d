//! Connections: list, show, create, replace, change, delete, pause and resume.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::page::query;
use super::{Client, ClientError, Page, PageQuery};

/// A connection as the server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    pub name: String,
    /// Empty for a service, which has none.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(default)]
    pub state: ConnectionState,
    /// The keys as written, and what else the server tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// How a connection stands now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionState {
    #[serde(default)]
    pub paused: bool,
    /// Deliveries in its queue.
    #[serde(default)]
    pub waiting: u64,
    /// Deliveries in its DLQ.
    #[serde(default)]
    pub dead: u64,
    /// Everything else that the server tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Client {
    /// By name, in pages.
    pub async fn connections(&self, page: &PageQuery) -> Result<Page<Connection>, ClientError> {
        self.transport.get(&self.under_project(&format!("/connections{}", query(&page.pairs())))).await
    }

    pub async fn connection(&self, name: &str) -> Result<Connection, ClientError> {
        self.transport.get(&self.under_connection(name, "")).await
    }

    /// `settings` are the YAML keys with `name` and `type`. A refusal names each field that is wrong.
    pub async fn create_connection(&self, settings: &Map<String, Value>) -> Result<Connection, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/connections"), settings).await
    }

    /// Replaces all settings; another `name` renames it and keeps its queue.
    pub async fn replace_connection(
        &self,
        name: &str,
        settings: &Map<String, Value>,
    ) -> Result<Connection, ClientError> {
        self.transport.json(Method::PUT, &self.under_connection(name, ""), settings).await
    }

    /// Changes the settings given and leaves the others; `null` takes a setting back to its default.
    pub async fn change_connection(
        &self,
        name: &str,
        settings: &Map<String, Value>,
    ) -> Result<Connection, ClientError> {
        self.transport.json(Method::PATCH, &self.under_connection(name, ""), settings).await
    }

    /// Refused while anything is in its queue or DLQ, unless `forced`: then those end as discarded, in the log (Z18).
    pub async fn delete_connection(&self, name: &str, forced: bool) -> Result<(), ClientError> {
        let path = self.under_connection(name, if forced { "?force=true" } else { "" });
        self.transport.bare(Method::DELETE, &path).await
    }

    /// From now on calls are stored and nothing is sent.
    pub async fn pause_connection(&self, name: &str) -> Result<Connection, ClientError> {
        self.transport.act(Method::POST, &self.under_connection(name, "/pause")).await
    }

    pub async fn resume_connection(&self, name: &str) -> Result<Connection, ClientError> {
        self.transport.act(Method::POST, &self.under_connection(name, "/resume")).await
    }
}
