//! The configuration as a YAML file: import with its difference, and export.

use std::collections::BTreeMap;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::page::query;
use super::{Client, ClientError, FieldProblem};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Only say what would change.
    pub dry_run: bool,
    /// Values for `Env.NAME` in the file, by name. The server reads nothing of its own environment.
    pub env: BTreeMap<String, String>,
    /// `Imported::plan` of the difference that somebody has agreed to: refused when it would be another one by now.
    pub plan: Option<String>,
}

/// What a file changes, or has changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    pub created: Vec<ImportedObject>,
    pub changed: Vec<ImportedObject>,
    /// As it was: its `keys` are empty.
    pub unchanged: Vec<ImportedObject>,
    #[serde(default)]
    pub warnings: Vec<FieldProblem>,
    /// `false` after a dry run.
    pub applied: bool,
    /// Stands for this very difference.
    pub plan: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedObject {
    pub section: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Where it stands in the file.
    pub line: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ImportedKey>,
}

/// One key that differs; null is not set, so that the default holds. Secrets are masked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedKey {
    pub key: String,
    pub old: Value,
    pub new: Value,
    #[serde(default)]
    pub default: Option<String>,
}

impl Client {
    /// Makes the file true, all of it or nothing: what it does not speak of is left alone, and a key that an object in it leaves out has its
    /// default. Objects that name no project belong to the client's.
    ///
    /// A file that is refused comes as `ClientError::Refused`, with the line of every error.
    pub async fn import(&self, yaml: &str, options: &ImportOptions) -> Result<Imported, ClientError> {
        let mut pairs = vec![("project", self.project.clone()), ("dry_run", options.dry_run.to_string())];
        pairs.extend(options.plan.clone().map(|plan| ("plan", plan)));
        let body = json!({"yaml": yaml, "env": options.env});
        self.transport.json(Method::POST, &format!("/api/v1/import{}", query(&pairs)), &body).await
    }

    /// The configuration of the client's project as a file that `import` takes: what differs from the defaults, without secrets.
    pub async fn export(&self) -> Result<String, ClientError> {
        self.exported(&[("project", self.project.clone())]).await
    }

    /// The same of all projects.
    pub async fn export_all(&self) -> Result<String, ClientError> {
        self.exported(&[]).await
    }

    async fn exported(&self, pairs: &[(&'static str, String)]) -> Result<String, ClientError> {
        let bytes = self.transport.bytes(&format!("/api/v1/export{}", query(pairs))).await?;
        String::from_utf8(bytes.into())
            .map_err(|error| ClientError::Unreadable { server: self.server().to_owned(), reason: error.to_string() })
    }
}
