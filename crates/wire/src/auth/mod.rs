//! What a security definition puts on the wire: the header that proves who we are, made anew for each attempt.
//!
//! Nothing here is recorded, and neither `Debug` nor an error shows a secret. It must not know where definitions are kept or how secrets
//! are sealed.

mod admit;
mod answer;
mod assertion;
mod cache;
mod oauth2;

pub use admit::{Admission, Doorkeeper};

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, StatusCode};
use postrider_core::security::{PasswordType, SecuritySpec};
use postrider_core::{MASK, NoAnswer, NoAnswerKind, Secret};

use crate::send::Stamp;
use crate::send::connect::Connector;
use crate::signature::SigningKey;
use assertion::Signer;
use cache::Token;
use oauth2::TokenSource;

/// Credentials, ready to be used by many attempts at once. A token that was fetched lives as long as they do.
pub struct Credentials(Kind);

enum Kind {
    Fixed(Authorization),
    OAuth2(Arc<TokenSource>),
    /// Nothing for a header: it goes into the envelope.
    Wss(UserPassword),
    /// Nothing to send: what requests to us are signed with.
    Signature(Box<SigningKey>),
}

/// Who a UsernameToken is for.
pub(crate) struct UserPassword {
    pub(crate) username: String,
    pub(crate) password: Secret,
    pub(crate) password_type: PasswordType,
}

/// One header of one attempt.
#[derive(Clone)]
pub(crate) struct Authorization {
    pub(crate) name: HeaderName,
    /// Marked as sensitive, so that no `Debug` shows it.
    pub(crate) value: HeaderValue,
    /// Where it came from, if it was fetched.
    token: Option<Arc<Token>>,
}

/// Why credentials cannot be used; it names the key of the definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    #[error("`{key}` has characters that a header cannot carry")]
    NotAHeader { key: &'static str },
    #[error("`secret` is no signing key: allowed is {}", crate::signature::KEYS)]
    NotAKey,
    #[error("`token_url` is not an address")]
    TokenUrl,
    #[error("`private_key` {0}")]
    PrivateKey(&'static str),
}

impl Credentials {
    /// What a definition and its secret, in the clear, come to.
    ///
    /// # Errors
    /// What the definition's own checks have not refused and cannot be sent all the same.
    pub fn new(spec: &SecuritySpec, secret: &Secret) -> Result<Credentials, CredentialsError> {
        let key = spec.kind().secret_key();
        let fixed = |name: HeaderName, text: &str| {
            let mut value = HeaderValue::from_str(text).map_err(|_| CredentialsError::NotAHeader { key })?;
            value.set_sensitive(true);
            Ok(Credentials(Kind::Fixed(Authorization { name, value, token: None })))
        };
        match spec {
            SecuritySpec::BasicAuth { username } => fixed(AUTHORIZATION, &basic(username, secret)),
            SecuritySpec::ApiKey { header } => {
                let name = HeaderName::from_bytes(header.as_bytes());
                fixed(name.map_err(|_| CredentialsError::NotAHeader { key: "header" })?, secret.expose())
            }
            SecuritySpec::Bearer => fixed(AUTHORIZATION, &format!("Bearer {}", secret.expose())),
            SecuritySpec::OAuth2(client) => {
                let source = TokenSource::new(client, secret, None).map_err(|_| CredentialsError::TokenUrl)?;
                Ok(Credentials(Kind::OAuth2(Arc::new(source))))
            }
            SecuritySpec::Smart { client, algorithm, key_id } => {
                let names = [key_id.clone(), client.client_id.clone(), client.token_url.to_string()];
                let signer = Signer::new(*algorithm, secret, names).map_err(CredentialsError::PrivateKey)?;
                let source = TokenSource::new(client, secret, Some(signer)).map_err(|_| CredentialsError::TokenUrl)?;
                Ok(Credentials(Kind::OAuth2(Arc::new(source))))
            }
            SecuritySpec::Wss { username, password_type } => Ok(Credentials(Kind::Wss(UserPassword {
                username: username.clone(),
                password: secret.clone(),
                password_type: *password_type,
            }))),
            SecuritySpec::WebhookSignature => {
                let key = SigningKey::read(secret).map_err(|_| CredentialsError::NotAKey)?;
                Ok(Credentials(Kind::Signature(Box::new(key))))
            }
        }
    }

    /// What goes into an envelope instead of a header.
    pub(crate) fn in_envelope(&self) -> Option<&UserPassword> {
        match &self.0 {
            Kind::Wss(user) => Some(user),
            Kind::Fixed(_) | Kind::OAuth2(_) | Kind::Signature(_) => None,
        }
    }

    /// Whether each attempt needs a time and a nonce of its own.
    pub fn is_stamped(&self) -> bool {
        match &self.0 {
            Kind::Fixed(_) | Kind::Signature(_) => false,
            Kind::OAuth2(source) => source.is_stamped(),
            Kind::Wss(_) => true,
        }
    }

    /// The header, if it can be had without waiting.
    pub(crate) fn ready(&self) -> Option<Authorization> {
        match &self.0 {
            Kind::Fixed(fixed) => Some(fixed.clone()),
            Kind::OAuth2(_) | Kind::Wss(_) | Kind::Signature(_) => None,
        }
    }

    /// The header, fetched if need be. Dropping the future ends the waiting and not the fetch.
    /// `stamp` is that of the attempt, where [`Credentials::is_stamped`] asks for one.
    pub(crate) async fn fetched(
        &self,
        connector: &Arc<Connector>,
        stamp: Option<Stamp>,
    ) -> Result<Authorization, NoAnswer> {
        match &self.0 {
            Kind::Fixed(fixed) => Ok(fixed.clone()),
            Kind::OAuth2(source) => {
                let token = source.token(connector, stamp).await?;
                Ok(Authorization { name: AUTHORIZATION, value: token.header.clone(), token: Some(token) })
            }
            Kind::Wss(_) => {
                let detail = "a security definition of type wss is for connections of type soap".to_owned();
                Err(NoAnswer { kind: NoAnswerKind::Unsendable, detail })
            }
            Kind::Signature(_) => {
                let detail = "a security definition of type webhook_signature is for channels".to_owned();
                Err(NoAnswer { kind: NoAnswerKind::Unsendable, detail })
            }
        }
    }

    /// The status that an attempt with this header was answered. A token that was refused is not used again.
    pub(crate) fn answered(&self, used: &Authorization, status: StatusCode) {
        if let (Kind::OAuth2(source), Some(token), StatusCode::UNAUTHORIZED) = (&self.0, &used.token, status) {
            source.refused(token);
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({MASK})")
    }
}

/// RFC 7617, in UTF-8.
fn basic(user: &str, password: &Secret) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(spec: &SecuritySpec, secret: &str) -> (String, String) {
        let credentials = Credentials::new(spec, &Secret::new(secret)).unwrap();
        let Authorization { name, value, .. } = credentials.ready().unwrap();
        assert!(!format!("{credentials:?} {value:?}").contains(secret));
        (name.to_string(), value.to_str().unwrap().to_owned())
    }

    #[test]
    fn each_kind_has_its_header() {
        // The example of RFC 7617, section 2.
        let aladdin = SecuritySpec::BasicAuth { username: "Aladdin".to_owned() };
        let shown = ("authorization".to_owned(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned());
        assert_eq!(header(&aladdin, "open sesame"), shown);
        // And of section 2.1: UTF-8.
        let test = SecuritySpec::BasicAuth { username: "test".to_owned() };
        assert_eq!(header(&test, "123\u{a3}").1, "Basic dGVzdDoxMjPCow==");
        let key = SecuritySpec::ApiKey { header: "X-API-Key".to_owned() };
        assert_eq!(header(&key, "hunter2"), ("x-api-key".to_owned(), "hunter2".to_owned()));
        assert_eq!(header(&SecuritySpec::Bearer, "mF_9.B5f-4.1JqM").1, "Bearer mF_9.B5f-4.1JqM");
    }

    #[test]
    fn what_no_header_can_carry_is_refused_without_being_shown() {
        let refused = Credentials::new(&SecuritySpec::Bearer, &Secret::new("hunter2\n")).unwrap_err();
        assert_eq!(refused, CredentialsError::NotAHeader { key: "token" });
        assert!(!refused.to_string().contains("hunter2"));
    }
}
