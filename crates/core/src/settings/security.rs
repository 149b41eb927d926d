//! The keys of security definitions. The secret is taken apart from the rest at once and is in no refusal.
//!
//! This module must not know how credentials are sent or sealed.

use serde_json::{Map, Value};

use super::headers::is_reserved_header;
use super::keys::{EXTRA_PARAMS_MAX, SCOPES_MAX};
use super::reader::Reader;
use super::{SettingError, security_keys, tls};
use crate::http_url::HttpUrl;
use crate::security::{ClientAuth, ClientCredentials, PasswordType, SecurityKind, SecuritySpec, SigningAlgorithm};
use crate::{MASK, Secret};

/// Of a secret that travels in a header or a form.
pub const SECRET_CHARS_MAX: usize = 8192;
const NAME_CHARS_MAX: usize = 1024;
/// What the request for a token says itself.
const TOKEN_PARAMS: [&str; 6] =
    ["grant_type", "scope", "client_id", "client_secret", "client_assertion", "client_assertion_type"];

/// A definition as it was written, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadSecurity {
    pub spec: SecuritySpec,
    /// What may be stored and shown.
    pub written: Map<String, Value>,
    /// `None`: not given, so the one that is set stays.
    pub secret: Option<Secret>,
}

/// Reads the keys as written, without `name` and `type`. Whether the secret may be left out is the caller's business.
///
/// # Errors
/// All that is refused, each with its field, and never the secret.
pub fn parse(kind: SecurityKind, written: &Map<String, Value>) -> Result<ReadSecurity, Vec<SettingError>> {
    let mut reader = Reader::new(written, security_keys(kind).iter());
    let secret = secret(&mut reader, kind);
    let spec = match kind {
        SecurityKind::BasicAuth => basic_auth(&mut reader),
        SecurityKind::ApiKey => api_key(&mut reader),
        SecurityKind::Bearer => Some(SecuritySpec::Bearer),
        SecurityKind::OAuth2 => oauth2(&mut reader),
        SecurityKind::Smart => smart(&mut reader),
        SecurityKind::Wss => wss(&mut reader),
        SecurityKind::WebhookSignature => Some(SecuritySpec::WebhookSignature),
    };
    reader.refuse_unknown_keys(|_| false);
    let shown = written.iter().filter(|(key, value)| *key != kind.secret_key() && !value.is_null());
    let shown = shown.map(|(key, value)| (key.clone(), value.clone())).collect();
    reader.finish(spec.map(|spec| ReadSecurity { spec, written: shown, secret }))
}

fn secret(reader: &mut Reader<'_>, kind: SecurityKind) -> Option<Secret> {
    let key = kind.secret_key();
    let value = reader.value(key)?;
    let fits = |text: &&str| {
        let chars = text.chars().count();
        let shaped = match kind {
            SecurityKind::BasicAuth | SecurityKind::OAuth2 | SecurityKind::Wss => !text.chars().any(char::is_control),
            SecurityKind::ApiKey => text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) && text.trim() == *text,
            SecurityKind::Bearer | SecurityKind::WebhookSignature => text.bytes().all(|b| b.is_ascii_graphic()),
            SecurityKind::Smart => text.trim_start().starts_with("-----BEGIN ") && text.is_ascii(),
        };
        shaped
            && chars <= SECRET_CHARS_MAX
            && (chars > 0 || matches!(kind, SecurityKind::BasicAuth | SecurityKind::Wss))
    };
    let read = value.as_str().filter(fits).map(Secret::new);
    if read.is_none() {
        let allowed = reader.allowed(key);
        reader.refuse(key, MASK, allowed);
    }
    read
}

fn basic_auth(reader: &mut Reader<'_>) -> Option<SecuritySpec> {
    // RFC 7617, section 2: the first colon ends the user's name.
    let username = required(reader, "username", |text| is_name(text) && !text.contains(':'))?;
    Some(SecuritySpec::BasicAuth { username })
}

fn wss(reader: &mut Reader<'_>) -> Option<SecuritySpec> {
    let username = required(reader, "username", is_name);
    let password_type = reader.choice("password_type", |text| match text {
        "text" => Some(PasswordType::Text),
        "digest" => Some(PasswordType::Digest),
        _ => None,
    });
    Some(SecuritySpec::Wss { username: username?, password_type: password_type.unwrap_or(PasswordType::Text) })
}

fn api_key(reader: &mut Reader<'_>) -> Option<SecuritySpec> {
    let header = reader.text("header").unwrap_or("X-API-Key");
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    // What opens a host of services is ours to write, and yet a key.
    let is_ours = is_reserved_header(header) && !header.eq_ignore_ascii_case("x-postrider-token");
    let fits = (1..=256).contains(&header.len())
        && header.bytes().all(is_token)
        && !is_ours
        && !header.eq_ignore_ascii_case("user-agent");
    if !fits {
        let allowed = reader.allowed("header");
        reader.refuse("header", header.escape_debug(), allowed);
    }
    fits.then(|| SecuritySpec::ApiKey { header: header.to_owned() })
}

fn oauth2(reader: &mut Reader<'_>) -> Option<SecuritySpec> {
    let client_auth = reader.choice("client_auth", |text| match text {
        "basic" => Some(ClientAuth::Basic),
        "body" => Some(ClientAuth::Body),
        _ => None,
    });
    client(reader, client_auth.unwrap_or(ClientAuth::Basic)).map(SecuritySpec::OAuth2)
}

fn smart(reader: &mut Reader<'_>) -> Option<SecuritySpec> {
    let client = client(reader, ClientAuth::Assertion);
    let key_id = required(reader, "key_id", is_name);
    let algorithm = reader.choice("algorithm", |text| match text {
        "RS384" => Some(SigningAlgorithm::Rs384),
        "ES384" => Some(SigningAlgorithm::Es384),
        _ => None,
    });
    let algorithm = algorithm.unwrap_or(SigningAlgorithm::Rs384);
    Some(SecuritySpec::Smart { client: client?, algorithm, key_id: key_id? })
}

fn client(reader: &mut Reader<'_>, client_auth: ClientAuth) -> Option<ClientCredentials> {
    let token_url = token_url(reader);
    let client_id = required(reader, "client_id", is_name);
    let scopes = scopes(reader);
    let extra_params = extra_params(reader);
    let tls = tls::read(reader);
    let (token_url, client_id) = token_url.zip(client_id)?;
    Some(ClientCredentials { token_url, client_id, scopes, extra_params, client_auth, tls })
}

fn token_url(reader: &mut Reader<'_>) -> Option<HttpUrl> {
    if !reader.has("token_url") {
        let allowed = reader.allowed("token_url");
        reader.refuse("token_url", "missing", allowed);
        return None;
    }
    let text = reader.text("token_url")?;
    HttpUrl::parse(text)
        .map_err(|allowed| reader.refuse("token_url", super::host::without_user_info(text), allowed))
        .ok()
}

/// RFC 6749, section 3.3: visible ASCII but for `"` and `\`.
fn scopes(reader: &mut Reader<'_>) -> Vec<String> {
    let Some(value) = reader.value("scopes") else { return Vec::new() };
    let read: Option<Vec<&str>> = match value {
        Value::String(text) => Some(text.split_whitespace().collect()),
        Value::Array(list) => list.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let is_scope = |text: &&str| {
        (1..=NAME_CHARS_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
    };
    match read.filter(|scopes| scopes.len() <= SCOPES_MAX && scopes.iter().all(is_scope)) {
        Some(scopes) => scopes.into_iter().map(str::to_owned).collect(),
        None => {
            reader.refuse_value("scopes", value);
            Vec::new()
        }
    }
}

/// Values are not repeated in a refusal: somebody may have put a secret here.
fn extra_params(reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let Some(value) = reader.value("extra_params") else { return Vec::new() };
    let params = value.as_object().filter(|params| params.len() <= EXTRA_PARAMS_MAX);
    let read = params.and_then(|params| {
        let pair = |(name, value): (&String, &Value)| {
            let value = value.as_str().filter(|value| value.len() <= SECRET_CHARS_MAX)?;
            let taken = TOKEN_PARAMS.contains(&name.as_str());
            (is_name(name) && !taken).then(|| (name.clone(), value.to_owned()))
        };
        params.iter().map(pair).collect::<Option<Vec<_>>>()
    });
    if read.is_none() {
        let allowed = reader.allowed("extra_params");
        reader.refuse("extra_params", "something else", allowed);
    }
    read.unwrap_or_default()
}

fn required(reader: &mut Reader<'_>, key: &'static str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let given = if reader.has(key) { reader.text(key)? } else { "" };
    if !fits(given) {
        let allowed = reader.allowed(key);
        reader.refuse(key, if given.is_empty() { "missing".into() } else { given.escape_debug().to_string() }, allowed);
        return None;
    }
    Some(given.to_owned())
}

fn is_name(text: &str) -> bool {
    let chars = text.chars().count();
    (1..=NAME_CHARS_MAX).contains(&chars) && !text.chars().any(char::is_control)
}
