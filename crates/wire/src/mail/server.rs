//! Which mail server, and how: `smtp://[user:password@]host[:port][?tls=off]` or `smtps://…`. It must not know how it is spoken to.

use percent_encoding::percent_decode_str;
use postrider_core::{MASK, Secret, SettingError};

use crate::egress::Host;

const ALLOWED: &str = "an address such as smtp://user:password@mail.example.org:587 (STARTTLS), smtps://mail.example.org (TLS from the first byte), or smtp://localhost:25?tls=off";

/// How the conversation is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// Begins in the clear and goes on in TLS; a server that does not offer it gets no mail.
    StartTls,
    /// From the first byte.
    Implicit,
    /// Never: for a server on this machine or in a closed network.
    Off,
}

#[derive(Clone, Debug)]
pub struct SmtpServer {
    pub host: Host,
    pub tls: MailTls,
    pub login: Option<(String, Secret)>,
}

impl SmtpServer {
    /// # Errors
    /// It is no such address, or would send a password in the clear. The password is never shown.
    pub fn parse(name: &'static str, text: &str) -> Result<SmtpServer, SettingError> {
        let refused = || {
            let shown = text.rsplit_once('@').map_or_else(|| text.to_owned(), |(_, rest)| format!("{MASK}@{rest}"));
            SettingError::new(name, shown, ALLOWED)
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(refused)?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let tls = match (scheme, query) {
            ("smtp", None) => MailTls::StartTls,
            ("smtp", Some("tls=off")) => MailTls::Off,
            ("smtps", None) => MailTls::Implicit,
            _ => return Err(refused()),
        };
        let (login, authority) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((login, authority)) => (Some(read_login(login).ok_or_else(refused)?), authority),
        };
        if login.is_some() && tls == MailTls::Off {
            return Err(refused());
        }
        let authority: http::uri::Authority = authority.trim_end_matches('/').parse().map_err(|_| refused())?;
        if authority.host().is_empty() {
            return Err(refused());
        }
        let port = authority.port_u16().unwrap_or(if tls == MailTls::Implicit { 465 } else { 587 });
        Ok(SmtpServer { host: Host::new(authority.host(), port), tls, login })
    }
}

fn read_login(text: &str) -> Option<(String, Secret)> {
    let (user, password) = text.split_once(':')?;
    let decoded = |part: &str| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned());
    let (user, password) = (decoded(user)?, decoded(password)?);
    let is_plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    (is_plain(&user) && is_plain(&password)).then(|| (user, Secret::new(password)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SmtpServer, String> {
        SmtpServer::parse("POSTRIDER_SMTP_URL", text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_says_host_port_encryption_and_login() {
        let server = read("smtp://ada%40example.org:p%3Aw@mail.example.org").unwrap();
        assert_eq!((server.host.shown(), server.tls), ("mail.example.org:587", MailTls::StartTls));
        let (user, password) = server.login.unwrap();
        assert_eq!((user.as_str(), password.expose()), ("ada@example.org", "p:w"));
        assert_eq!(read("smtps://mail.example.org").unwrap().host.shown(), "mail.example.org:465");
        let local = read("smtp://[::1]:2525?tls=off").unwrap();
        assert_eq!((local.host.literal(), local.tls), (Some("::1".parse().unwrap()), MailTls::Off));
    }

    #[test]
    fn what_is_refused_never_shows_the_password() {
        for bad in [
            "",
            "mail.example.org",
            "http://a",
            "smtp://",
            "smtp://u:sesame@h?tls=off",
            "smtp://u:sesame@h?tls=maybe",
            "smtps://u:sesame@",
            "smtp://usesame@h",
            "smtp://u:sesame%0d%0a@h",
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.starts_with("`POSTRIDER_SMTP_URL`") && !error.contains("sesame"), "{error}");
        }
    }
}
