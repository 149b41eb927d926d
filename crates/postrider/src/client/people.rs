//! Users of the dashboard.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Client, ClientError, Page, Whose, segment};

/// Who may log in to the dashboard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    pub id: String,
    pub name: String,
    /// `owner`, `developer` or `viewer`.
    pub role: String,
    pub sees_bodies: bool,
    #[serde(default)]
    pub last_log_in_at: Option<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What is to be otherwise; `None` stays.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Matters for viewers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees_bodies: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

impl std::fmt::Debug for UserChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserChange").field("role", &self.role).finish_non_exhaustive()
    }
}

impl Client {
    /// By name.
    pub async fn users(&self, whose: Whose) -> Result<Page<User>, ClientError> {
        self.transport.get(&self.of(whose, "/users")).await
    }

    /// `role`: `owner`, `developer` or `viewer`. `sees_bodies` matters for viewers.
    pub async fn create_user(
        &self,
        whose: Whose,
        name: &str,
        role: &str,
        sees_bodies: bool,
        password: &str,
    ) -> Result<User, ClientError> {
        let body = json!({"name": name, "role": role, "seesBodies": sees_bodies, "password": password});
        self.transport.json(Method::POST, &self.of(whose, "/users"), &body).await
    }

    /// By id or name. The user's sessions end.
    pub async fn change_user(&self, whose: Whose, user: &str, change: &UserChange) -> Result<User, ClientError> {
        self.transport.json(Method::PATCH, &self.of(whose, &format!("/users/{}", segment(user))), change).await
    }

    /// By id or name, with all sessions.
    pub async fn delete_user(&self, whose: Whose, user: &str) -> Result<(), ClientError> {
        self.transport.bare(Method::DELETE, &self.of(whose, &format!("/users/{}", segment(user)))).await
    }
}
