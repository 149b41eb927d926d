//! Security definitions: list, show, create, replace, change and delete. Secrets go in and never come back.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::page::query;
use super::{Client, ClientError, Page, PageQuery, segment};

/// A security definition as the server shows it, without its secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecurityDefinition {
    pub name: String,
    /// `basic_auth`, `apikey`, `bearer` or `oauth2`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub state: SecurityState,
    /// The keys as written, and what else the server tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// How a definition stands now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecurityState {
    /// The key of the secret, such as `password`.
    #[serde(default)]
    pub secret: String,
    #[serde(default)]
    pub is_set: bool,
    /// Why the secret cannot be read, if it cannot: attempts that need it fail as `secret_unreadable`.
    #[serde(default)]
    pub unreadable: Option<String>,
    /// The connections that refer to it.
    #[serde(default, rename = "usedBy")]
    pub used_by: Vec<String>,
}

impl Client {
    /// By name, in pages.
    pub async fn security_definitions(&self, page: &PageQuery) -> Result<Page<SecurityDefinition>, ClientError> {
        self.transport.get(&self.under_project(&format!("/security{}", query(&page.pairs())))).await
    }

    pub async fn security_definition(&self, name: &str) -> Result<SecurityDefinition, ClientError> {
        self.transport.get(&self.under_security(name)).await
    }

    /// `settings` are the YAML keys with `name`, `type` and the secret. A refusal names each field that is wrong.
    pub async fn create_security_definition(
        &self,
        settings: &Map<String, Value>,
    ) -> Result<SecurityDefinition, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/security"), settings).await
    }

    /// Replaces all settings; a secret that is left out stays as it is.
    pub async fn replace_security_definition(
        &self,
        name: &str,
        settings: &Map<String, Value>,
    ) -> Result<SecurityDefinition, ClientError> {
        self.transport.json(Method::PUT, &self.under_security(name), settings).await
    }

    /// Changes the settings given and leaves the others; the change holds from the next attempt on.
    pub async fn change_security_definition(
        &self,
        name: &str,
        settings: &Map<String, Value>,
    ) -> Result<SecurityDefinition, ClientError> {
        self.transport.json(Method::PATCH, &self.under_security(name), settings).await
    }

    /// Refused, with their names, while connections refer to it.
    pub async fn delete_security_definition(&self, name: &str) -> Result<(), ClientError> {
        self.transport.bare(Method::DELETE, &self.under_security(name)).await
    }

    fn under_security(&self, name: &str) -> String {
        self.under_project(&format!("/security/{}", segment(name)))
    }
}
