//! E-mail: one trait, and SMTP behind it (P09).
//!
//! It must not know what a mail is about, nor when one is tried again.

mod server;
mod smtp;

use async_trait::async_trait;
use postrider_core::Timestamp;

pub use server::{MailTls, SmtpServer};
pub use smtp::SmtpMailer;

/// A mail in plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Names it, also when it is tried again: a receiver that sees it twice can tell.
    pub id: String,
    pub at: Timestamp,
    /// Addresses that `is_address` has passed.
    pub to: Vec<String>,
    pub subject: String,
    pub text: String,
}

/// Why a mail was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMailed {
    /// It may be taken another time: no answer, a 4xx reply, a name that does not resolve.
    #[error("{0}")]
    Later(String),
    /// The server refused it for good (5xx).
    #[error("{0}")]
    Never(String),
}

/// Hands mails to a mail server. Each call ends within its own time, whatever the server does.
#[async_trait]
pub trait Mailer: Send + Sync {
    async fn mail(&self, mail: &Mail) -> Result<(), NotMailed>;
}

/// Whether a text is an address such as `ada@example.org`: in ASCII and in one piece, so that nothing can be smuggled into a command.
pub fn is_address(text: &str) -> bool {
    let is_local = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&c);
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    text.len() <= 254
        && text.rsplit_once('@').is_some_and(|(local, domain)| {
            (1..=64).contains(&local.len()) && local.bytes().all(is_local) && domain.split('.').all(is_label)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_one_piece() {
        for good in ["ada@example.org", "a.b+c@host", "x@a-b.example"] {
            assert!(is_address(good), "{good}");
        }
        for bad in
            ["", "ada", "@example.org", "ada@", "a b@c", "a@b\r\nRCPT TO:<x@y>", "a@b>", "<a@b", "a@b..c", "ä@b.c"]
        {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
