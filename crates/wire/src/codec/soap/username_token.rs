//! The header block of WS-Security with a UsernameToken (OASIS UsernameToken Profile 1.1).
//!
//! Nonce and time are given, so that this stays a function of its arguments. This module must not know where passwords are kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postrider_core::Timestamp;
use postrider_core::security::PasswordType;
use postrider_core::soap::SoapVersion;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use super::envelope::namespace;
use super::xml::escape_into;

pub const WSSE_NS: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
pub const WSU_NS: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
const PROFILE: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0";
const BASE64: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary";

pub struct UsernameToken<'a> {
    pub username: &'a str,
    pub password: &'a str,
    pub kind: PasswordType,
    /// 16 bytes that were never used before.
    pub nonce: [u8; 16],
    pub created: Timestamp,
}

pub fn block(version: SoapVersion, token: &UsernameToken<'_>) -> String {
    let created = token.created.to_string();
    let soap = namespace(version);
    let mut out = format!(
        "<wsse:Security xmlns:wsse=\"{WSSE_NS}\" xmlns:wsu=\"{WSU_NS}\" xmlns:sec=\"{soap}\" sec:mustUnderstand=\"1\">\
         <wsse:UsernameToken><wsse:Username>"
    );
    escape_into(&mut out, token.username);
    let (kind, password) = match token.kind {
        PasswordType::Text => ("PasswordText", token.password.to_owned()),
        PasswordType::Digest => ("PasswordDigest", digest(&token.nonce, &created, token.password)),
    };
    out.push_str(&format!("</wsse:Username><wsse:Password Type=\"{PROFILE}#{kind}\">"));
    escape_into(&mut out, &password);
    out.push_str(&format!(
        "</wsse:Password><wsse:Nonce EncodingType=\"{BASE64}\">{}</wsse:Nonce><wsu:Created>{created}</wsu:Created>\
         </wsse:UsernameToken></wsse:Security>",
        STANDARD.encode(token.nonce)
    ));
    out
}

/// `Base64(SHA-1(nonce + created + password))`. The profile has no other digest.
pub fn digest(nonce: &[u8], created: &str, password: &str) -> String {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(nonce);
    context.update(created.as_bytes());
    context.update(password.as_bytes());
    STANDARD.encode(context.finish())
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    /// Worked out with Python's `hashlib` and `base64`.
    #[test]
    fn the_digest_is_that_of_the_profile() {
        assert_eq!(digest(b"0123456789abcdef", "2026-03-12T12:05:34.000Z", "hunter2"), "DmjL/TzlxrqL3zkd40u2smpAXNc=");
        assert_eq!(digest(b"", "", "pässword"), "I7dElEdfX4dJgLdnbVEeI9iG2mQ=");
    }

    // proves: Z34, D32
    #[test]
    fn z34_a_token_has_user_password_nonce_and_time() {
        let token = |kind| UsernameToken {
            username: "ada & co",
            password: "p<w",
            kind,
            nonce: [7; 16],
            created: Timestamp::from_millis(1_773_317_134_000),
        };
        for (kind, shown) in [(PasswordType::Text, "p<w".to_owned()), (PasswordType::Digest, String::new())] {
            let text = block(SoapVersion::V12, &token(kind));
            let document = xml::read(&text);
            assert_eq!(document.error, None);
            let security = document.root().unwrap();
            assert_eq!(security.attribute(namespace(SoapVersion::V12), "mustUnderstand"), Some("1"));
            let inside = security.child(WSSE_NS, "UsernameToken").unwrap();
            let of = |name: &str| inside.children().find(|child| child.local() == name).unwrap().text();
            assert_eq!((of("Username"), of("Nonce")), ("ada & co".to_owned(), STANDARD.encode([7; 16])));
            let expected = if shown.is_empty() { digest(&[7; 16], &of("Created"), "p<w") } else { shown };
            assert_eq!(of("Password"), expected);
            assert_eq!(text.contains("p&lt;w"), kind == PasswordType::Text);
        }
    }
}
