//! Projects, API keys and the audit log.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::page::query;
use super::{Client, ClientError, Page, PageQuery, segment};

/// A project: everything else belongs to one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub owner_email: Option<String>,
    #[serde(default)]
    pub entitled: bool,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An API key. `key` is its text, and is there only in the answer that made it.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    pub id: String,
    pub name: String,
    /// `read`, `send`, `operate`, `admin`.
    pub scopes: Vec<String>,
    /// Its first letters.
    #[serde(default)]
    pub hint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default)]
    pub expires_at: Option<String>,
    #[serde(default)]
    pub last_used_at: Option<String>,
    /// Until when the key before the last rotation works.
    #[serde(default)]
    pub former_works_until: Option<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whose keys, or whose audit log: the client's project, or the installation's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whose {
    #[default]
    Project,
    /// Needs a key of the installation. Its audit log holds that of every project.
    Installation,
}

/// One thing that somebody did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    pub id: String,
    pub at: String,
    pub action: String,
    #[serde(default)]
    pub actor: AuditActor,
    #[serde(default)]
    pub object: Option<String>,
    #[serde(default)]
    pub object_name: Option<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AuditActor {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub address: Option<String>,
}

/// Which entries; all conditions must hold. Times are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// A key's id, `bootstrap` or `system`.
    pub actor: Option<String>,
    /// `connection` finds `connection.create` and all others of its kind.
    pub action: Option<String>,
    pub object: Option<String>,
    pub from: Option<String>,
    pub before: Option<String>,
    pub page: PageQuery,
}

impl Client {
    /// Those that the key may see.
    pub async fn projects(&self) -> Result<Page<Project>, ClientError> {
        self.transport.get("/api/v1/projects").await
    }

    /// The client's own project.
    pub async fn project(&self) -> Result<Project, ClientError> {
        self.transport.get(&self.under_project("")).await
    }

    /// `settings`: `ownerEmail`, `entitled`, `rateLimitPerSecond`, `concurrency`.
    pub async fn create_project(&self, name: &str, settings: &Map<String, Value>) -> Result<Project, ClientError> {
        let mut body = settings.clone();
        body.insert("name".into(), name.into());
        self.transport.json(Method::POST, "/api/v1/projects", &body).await
    }

    /// What is given replaces, null takes the default, the rest stays.
    pub async fn change_project(&self, settings: &Map<String, Value>) -> Result<Project, ClientError> {
        self.transport.json(Method::PATCH, &self.under_project(""), settings).await
    }

    pub async fn api_keys(&self, whose: Whose) -> Result<Page<ApiKey>, ClientError> {
        self.transport.get(&self.of(whose, "/keys")).await
    }

    /// The answer holds the key's text, this once.
    pub async fn create_api_key(
        &self,
        whose: Whose,
        name: &str,
        scopes: &[String],
        expires_at: Option<&str>,
    ) -> Result<ApiKey, ClientError> {
        let mut body = json!({"name": name, "scopes": scopes});
        if let Some(end) = expires_at {
            body["expiresAt"] = end.into();
        }
        self.transport.json(Method::POST, &self.of(whose, "/keys"), &body).await
    }

    /// A new text for the key, by id or name; the former one works on for the overlap (a day when `None`).
    pub async fn rotate_api_key(
        &self,
        whose: Whose,
        key: &str,
        overlap_seconds: Option<u64>,
    ) -> Result<ApiKey, ClientError> {
        let body = overlap_seconds.map_or_else(|| json!({}), |seconds| json!({"overlap_seconds": seconds}));
        self.transport.json(Method::POST, &self.of(whose, &format!("/keys/{}/rotate", segment(key))), &body).await
    }

    /// The key, by id or name, ends now.
    pub async fn revoke_api_key(&self, whose: Whose, key: &str) -> Result<(), ClientError> {
        self.transport.bare(Method::DELETE, &self.of(whose, &format!("/keys/{}", segment(key)))).await
    }

    /// Newest first.
    pub async fn audit(&self, whose: Whose, asked: &AuditQuery) -> Result<Page<AuditEntry>, ClientError> {
        let mut pairs = asked.page.pairs();
        for (name, value) in [
            ("actor", &asked.actor),
            ("action", &asked.action),
            ("object", &asked.object),
            ("from", &asked.from),
            ("before", &asked.before),
        ] {
            pairs.extend(value.clone().map(|value| (name, value)));
        }
        self.transport.get(&self.of(whose, &format!("/audit{}", query(&pairs)))).await
    }

    pub(super) fn of(&self, whose: Whose, rest: &str) -> String {
        match whose {
            Whose::Project => self.under_project(rest),
            Whose::Installation => format!("/api/v1{rest}"),
        }
    }
}
