//! A security definition: who we say we are to a remote system, as a named object of a project that connections refer to.
//!
//! The secret itself is never in here in the clear: it is kept sealed beside, and opened for the attempt that needs it. This module must
//! not know how a secret is sealed nor how a header is built.

use std::fmt;

use serde_json::{Map, Value};

use crate::connection::TlsSettings;
use crate::http_url::HttpUrl;
use crate::id::{ProjectId, SecurityId};
use crate::{MASK, Timestamp};

#[derive(Clone, PartialEq)]
pub struct SecurityDefinition {
    pub id: SecurityId,
    pub project_id: ProjectId,
    /// Unique in its project, and it never changes: connections refer to it.
    pub name: String,
    /// The keys as written, without `name`, `type` and the secret.
    pub written: Map<String, Value>,
    pub spec: SecuritySpec,
    /// The secret as the vault sealed it.
    pub sealed: String,
    /// Rises with every change.
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecurityKind {
    BasicAuth,
    ApiKey,
    Bearer,
    OAuth2,
    /// Client credentials by a signed assertion: SMART Backend Services of HL7.
    Smart,
    /// WS-Security, in the envelope of SOAP.
    Wss,
    /// What requests to a channel are signed with (Standard Webhooks).
    WebhookSignature,
}

/// What a definition means, without its secret.
#[derive(Clone, Debug, PartialEq)]
pub enum SecuritySpec {
    /// RFC 7617.
    BasicAuth { username: String },
    /// A header of its own.
    ApiKey { header: String },
    /// RFC 6750.
    Bearer,
    /// Client credentials, RFC 6749, section 4.4.
    OAuth2(ClientCredentials),
    /// The same, the client proving itself by an assertion that it signs (RFC 7523).
    Smart { client: ClientCredentials, algorithm: SigningAlgorithm, key_id: String },
    /// A UsernameToken in the envelope of a SOAP request; it has no header of HTTP.
    Wss { username: String, password_type: PasswordType },
    /// Standard Webhooks 1.0.0, of requests to us; the secret is the key.
    WebhookSignature,
}

/// How a UsernameToken carries the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordType {
    /// As it is.
    Text,
    /// As a digest with a nonce and the time, made anew for every attempt (D32).
    Digest,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClientCredentials {
    pub token_url: HttpUrl,
    pub client_id: String,
    pub scopes: Vec<String>,
    /// Further parameters of the token request, such as `audience`.
    pub extra_params: Vec<(String, String)>,
    pub client_auth: ClientAuth,
    /// Of the token server.
    pub tls: TlsSettings,
}

/// How the client proves itself to the token server (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    Basic,
    Body,
    /// Nothing but the assertion.
    Assertion,
}

/// How an assertion is signed; the two that SMART asks every server for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    Rs384,
    Es384,
}

impl SigningAlgorithm {
    /// As a JWT names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            SigningAlgorithm::Rs384 => "RS384",
            SigningAlgorithm::Es384 => "ES384",
        }
    }
}

impl SecurityKind {
    pub const ALL: [SecurityKind; 7] = [
        SecurityKind::BasicAuth,
        SecurityKind::ApiKey,
        SecurityKind::Bearer,
        SecurityKind::OAuth2,
        SecurityKind::Smart,
        SecurityKind::Wss,
        SecurityKind::WebhookSignature,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            SecurityKind::BasicAuth => "basic_auth",
            SecurityKind::ApiKey => "apikey",
            SecurityKind::Bearer => "bearer",
            SecurityKind::OAuth2 => "oauth2",
            SecurityKind::Smart => "smart",
            SecurityKind::Wss => "wss",
            SecurityKind::WebhookSignature => "webhook_signature",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        SecurityKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The one key whose value is a secret.
    pub const fn secret_key(self) -> &'static str {
        match self {
            SecurityKind::BasicAuth | SecurityKind::Wss => "password",
            SecurityKind::ApiKey => "key",
            SecurityKind::Bearer => "token",
            SecurityKind::OAuth2 => "client_secret",
            SecurityKind::WebhookSignature => "secret",
            SecurityKind::Smart => "private_key",
        }
    }
}

impl SecuritySpec {
    pub const fn kind(&self) -> SecurityKind {
        match self {
            SecuritySpec::BasicAuth { .. } => SecurityKind::BasicAuth,
            SecuritySpec::ApiKey { .. } => SecurityKind::ApiKey,
            SecuritySpec::Bearer => SecurityKind::Bearer,
            SecuritySpec::OAuth2(_) => SecurityKind::OAuth2,
            SecuritySpec::Smart { .. } => SecurityKind::Smart,
            SecuritySpec::Wss { .. } => SecurityKind::Wss,
            SecuritySpec::WebhookSignature => SecurityKind::WebhookSignature,
        }
    }
}

impl SecurityDefinition {
    pub const fn kind(&self) -> SecurityKind {
        self.spec.kind()
    }
}

impl fmt::Debug for SecurityDefinition {
    /// A sealed secret shows nothing either, and is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityDefinition")
            .field("id", &self.id)
            .field("project_id", &self.project_id)
            .field("name", &self.name)
            .field("spec", &self.spec)
            .field("sealed", &MASK)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
