//! The mail server and the collector of traces, as the environment names them. It must not know what is sent to either.

use std::sync::Arc;

use postrider_core::SettingError;
use postrider_engine::Plug;
use postrider_wire::Egress;
use postrider_wire::mail::{Mailer, SmtpMailer, SmtpServer, is_address};
use postrider_wire::otlp::{Collector, OtlpExporter, SpanSink};

pub const SMTP_URL: &str = "POSTRIDER_SMTP_URL";
pub const SMTP_FROM: &str = "POSTRIDER_SMTP_FROM";
/// A file of authorities in place of the public ones.
pub const SMTP_CA: &str = "POSTRIDER_SMTP_CA";
/// Who is told of alerts, beside the owners of projects.
pub const ALERT_TO: &str = "POSTRIDER_ALERT_TO";
pub const OTLP_ENDPOINT: &str = "POSTRIDER_OTLP_ENDPOINT";
pub const OTLP_HEADERS: &str = "POSTRIDER_OTLP_HEADERS";

const ADDRESSES_MAX: usize = 20;

/// As they are set; values that are not usable refuse the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    smtp_url: Option<String>,
    smtp_from: Option<String>,
    smtp_ca: Option<String>,
    pub alert_to: Vec<String>,
    otlp_endpoint: Option<String>,
    otlp_headers: Option<String>,
}

impl Outside {
    /// Every error there is, by the variable's name.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Outside, Vec<SettingError>> {
        let alert_to = variable(ALERT_TO).unwrap_or_default();
        let alert_to = alert_to.split(',').map(str::trim).filter(|to| !to.is_empty()).map(str::to_owned).collect();
        let outside = Outside {
            smtp_url: variable(SMTP_URL),
            smtp_from: variable(SMTP_FROM),
            smtp_ca: variable(SMTP_CA),
            alert_to,
            otlp_endpoint: variable(OTLP_ENDPOINT),
            otlp_headers: variable(OTLP_HEADERS),
        };
        let errors: Vec<SettingError> =
            [outside.server().err(), outside.collector().err(), outside.bad_address()].into_iter().flatten().collect();
        if errors.is_empty() { Ok(outside) } else { Err(errors) }
    }

    fn server(&self) -> Result<Option<SmtpServer>, SettingError> {
        self.smtp_url.as_deref().map(|url| SmtpServer::parse(SMTP_URL, url)).transpose()
    }

    fn collector(&self) -> Result<Option<Collector>, SettingError> {
        let headers = (OTLP_HEADERS, self.otlp_headers.as_deref());
        self.otlp_endpoint.as_deref().map(|url| Collector::parse((OTLP_ENDPOINT, url), headers)).transpose()
    }

    fn bad_address(&self) -> Option<SettingError> {
        let allowed = "an address such as ada@example.org";
        if let Some(from) = self.smtp_from.as_deref().filter(|from| !is_address(from)) {
            return Some(SettingError::new(SMTP_FROM, from, allowed));
        }
        if self.alert_to.len() > ADDRESSES_MAX {
            return Some(SettingError::new(
                ALERT_TO,
                self.alert_to.len(),
                format!("at most {ADDRESSES_MAX} addresses"),
            ));
        }
        let bad = self.alert_to.iter().find(|to| !is_address(to))?;
        Some(SettingError::new(ALERT_TO, bad, format!("{allowed}, several with commas between")))
    }

    /// None without `POSTRIDER_SMTP_URL`.
    pub fn mailer(&self, egress: &Arc<Egress>) -> Result<Plug<dyn Mailer>, SettingError> {
        let Some(server) = self.server()? else { return Ok(Plug::NONE) };
        let of_login = server.login.as_ref().map(|(user, _)| user.clone()).filter(|user| is_address(user));
        let from = self.smtp_from.clone().or(of_login).unwrap_or_else(|| "postrider@localhost".to_owned());
        Ok(Plug::of(Arc::new(SmtpMailer::new(Arc::clone(egress), server, from, self.smtp_ca.clone()))))
    }

    /// None without `POSTRIDER_OTLP_ENDPOINT`.
    pub fn spans(&self, egress: &Arc<Egress>) -> Result<Plug<dyn SpanSink>, SettingError> {
        let Some(collector) = self.collector()? else { return Ok(Plug::NONE) };
        let exporter: Arc<dyn SpanSink> = OtlpExporter::start(collector, Arc::clone(egress));
        Ok(Plug::of(exporter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Outside, String> {
        let variable = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        Outside::read(variable).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn p09_what_is_not_usable_is_named_and_no_secret_is_shown() {
        assert_eq!(read(&[]), Ok(Outside::default()));
        let good = read(&[
            (SMTP_URL, "smtps://a%40b.example:sesame@mail.example"),
            (ALERT_TO, "ada@b.example, bob@b.example"),
        ]);
        assert_eq!(good.unwrap().alert_to, ["ada@b.example", "bob@b.example"]);
        for (name, value) in [
            (SMTP_URL, "smtp://u:sesame@"),
            (SMTP_FROM, "nobody"),
            (ALERT_TO, "ada@b.example,nobody"),
            (OTLP_ENDPOINT, "collector:4318"),
            (OTLP_ENDPOINT, "http://u:sesame@collector:4318"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(&format!("`{name}` is ")) && !error.contains("sesame"), "{error}");
        }
        let error = read(&[(OTLP_ENDPOINT, "http://collector:4318"), (OTLP_HEADERS, "sesame")]).unwrap_err();
        assert!(error.starts_with(&format!("`{OTLP_HEADERS}` is ")) && !error.contains("sesame"), "{error}");
    }
}
