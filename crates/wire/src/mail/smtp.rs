//! One mail, one conversation: through the one way out, under one deadline for all of it (RFC 5321, RFC 3207).
//!
//! A fresh socket for each mail: mails are few, and a kept one may have gone. It must not know when one is tried again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mail_send::mail_builder::MessageBuilder;
use mail_send::smtp::AssertReply as _;
use mail_send::smtp::message::Message;
use mail_send::{Credentials, Error, SmtpClient};
use postrider_core::connection::TlsSettings;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Mail, MailTls, Mailer, NotMailed, SmtpServer};
use crate::egress::{Destination, Egress, NotOpened, Progress};
use crate::guard::Policy;
use crate::tls;

/// `mail_timeout`: from the first packet to the server's last word.
const TIMEOUT: Duration = Duration::from_secs(30);
/// What a server says is cut at this length.
const DETAIL_CHARS_MAX: usize = 300;

/// A mail server, and who writes.
pub struct SmtpMailer {
    egress: Arc<Egress>,
    server: SmtpServer,
    from: String,
    trust: TlsSettings,
    timeout: Duration,
}

impl SmtpMailer {
    /// `from` has passed `is_address`. `ca_path`: a file of authorities in place of the public ones.
    pub fn new(egress: Arc<Egress>, server: SmtpServer, from: String, ca_path: Option<String>) -> Self {
        let trust = TlsSettings { ca_path, ..TlsSettings::PUBLIC };
        SmtpMailer { egress, server, from, trust, timeout: TIMEOUT }
    }

    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        SmtpMailer { timeout, ..self }
    }

    async fn send(&self, mail: &Mail) -> Result<(), NotMailed> {
        let host = &self.server.host;
        let tls = self.server.tls == MailTls::Implicit;
        let to = Destination { host, tls, policy: Policy::Connections };
        let tcp = self.egress.open(to, &Progress::new()).await.map_err(|error| match error {
            NotOpened::Refused(refused) => NotMailed::Never(refused.to_string()),
            error => NotMailed::Later(error.to_string()),
        })?;
        // The bound of the whole rings first, and says what it was.
        let mut client = SmtpClient { stream: tcp, timeout: self.timeout * 2 };
        match self.server.tls {
            MailTls::Off => {
                greeted(&mut client).await?;
                self.converse(client, mail).await
            }
            MailTls::Implicit => {
                let mut client = self.encrypted(client).await?;
                greeted(&mut client).await?;
                self.converse(client, mail).await
            }
            MailTls::StartTls => {
                greeted(&mut client).await?;
                client.ehlo(self.hello()).await.map_err(later)?;
                let answer = client.cmd("STARTTLS\r\n").await.map_err(later)?;
                if !answer.is_positive_completion() {
                    return Err(NotMailed::Later(format!("{} does not speak STARTTLS", host.shown())));
                }
                let client = self.encrypted(client).await?;
                self.converse(client, mail).await
            }
        }
    }

    async fn encrypted(
        &self,
        client: SmtpClient<TcpStream>,
    ) -> Result<SmtpClient<tokio_rustls::client::TlsStream<TcpStream>>, NotMailed> {
        let trust = self.trust.clone();
        let config = tokio::task::spawn_blocking(move || tls::client_config(&trust, tls::Speaks::Unnamed)).await;
        let config = config.map_err(|lost| NotMailed::Later(lost.to_string()))?;
        let config = config.map_err(|error| NotMailed::Later(error.to_string()))?;
        client.into_tls(&TlsConnector::from(config), self.server.host.name()).await.map_err(later)
    }

    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut client: SmtpClient<S>,
        mail: &Mail,
    ) -> Result<(), NotMailed> {
        let offered = client.ehlo(self.hello()).await.map_err(later)?;
        if let Some((username, secret)) = &self.server.login {
            let login = Credentials::Plain { username: username.as_str(), secret: secret.expose() };
            // A password may be mended, and the mail is still worth sending then.
            client.authenticate(&login, &offered).await.map_err(later)?;
        }
        let text = self.written(mail).map_err(|error| NotMailed::Never(error.to_string()))?;
        let to = mail.to.iter().map(String::as_str);
        client.send(Message::new(self.from.as_str(), to, text)).await.map_err(refused)?;
        // The mail is taken; how the server says good-bye changes nothing.
        let _ = client.cmd("QUIT\r\n").await;
        Ok(())
    }

    fn written(&self, mail: &Mail) -> std::io::Result<Vec<u8>> {
        MessageBuilder::new()
            .from(("Postrider", self.from.as_str()))
            .to(mail.to.iter().map(String::as_str).collect::<Vec<_>>())
            .message_id(format!("{}@{}", mail.id, self.hello()))
            .date(mail.at.as_millis().div_euclid(1000))
            .header("Auto-Submitted", mail_send::mail_builder::headers::raw::Raw::new("auto-generated"))
            .subject(mail.subject.as_str())
            .text_body(mail.text.as_str())
            .write_to_vec()
    }

    /// The domain of whoever writes.
    fn hello(&self) -> &str {
        self.from.rsplit_once('@').map_or("localhost", |(_, domain)| domain)
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn mail(&self, mail: &Mail) -> Result<(), NotMailed> {
        let host = self.server.host.shown();
        match tokio::time::timeout(self.timeout, self.send(mail)).await {
            Ok(sent) => sent,
            Err(_) => {
                Err(NotMailed::Later(format!("{host} did not take the mail within {} s", self.timeout.as_secs())))
            }
        }
    }
}

async fn greeted<S: AsyncRead + AsyncWrite + Unpin>(client: &mut SmtpClient<S>) -> Result<(), NotMailed> {
    client.read().await.and_then(|greeting| greeting.assert_positive_completion()).map_err(later)
}

fn later(error: Error) -> NotMailed {
    NotMailed::Later(shown(&error))
}

/// Only a 5xx about the mail itself is final.
fn refused(error: Error) -> NotMailed {
    match &error {
        Error::UnexpectedReply(reply) if reply.code() >= 500 => NotMailed::Never(shown(&error)),
        _ => later(error),
    }
}

fn shown(error: &Error) -> String {
    error.to_string().chars().filter(|c| !c.is_control()).take(DETAIL_CHARS_MAX).collect()
}
