//! What the environment sets for a server, checked before anything is opened: a start with a setting out of range is refused by name.

use http::HeaderName;
use ipnet::IpNet;
use postrider_core::masking::MaskedHeaders;
use postrider_core::readiness::Bounds;
use postrider_core::schedule::Ladder;
use postrider_core::{SettingError, Wait};
use postrider_engine::{EngineOptions, LadderLimits};
use postrider_transform::TransformLimits;

use super::logs::LogFormat;
use super::outside::Outside;
use super::secrets_key::{self, SecretsKey};
use crate::exit::{Exit, Failed};

#[derive(Clone, Debug)]
pub struct Settings {
    pub log: String,
    pub log_format: LogFormat,
    pub admin_key: Option<String>,
    pub secrets_key: SecretsKey,
    pub engine: EngineOptions,
    pub outside: Outside,
    pub stop: Wait,
    /// Addresses opened that are closed otherwise.
    pub opened: Vec<IpNet>,
    pub transform: TransformLimits,
    /// `POSTRIDER_MASK_HEADERS`, beside those that always are (D14).
    pub masked_headers: MaskedHeaders,
}

/// A whole number in the environment, with its default and its range.
struct Number {
    name: &'static str,
    default: u64,
    min: u64,
    max: u64,
    unit: &'static str,
}

const LEASE: Number = Number { name: "POSTRIDER_LEASE_SECONDS", default: 15, min: 3, max: 3600, unit: "seconds" };
/// How long the log keeps what has ended (V07: 30 days).
const LOG_RETENTION: Number =
    Number { name: "POSTRIDER_LOG_RETENTION_SECONDS", default: 2_592_000, min: 60, max: 315_360_000, unit: "seconds" };
/// How often alerts are looked for.
const ENDPOINT_SWEEP: Number =
    Number { name: "POSTRIDER_ENDPOINT_SWEEP_SECONDS", default: 60, min: 1, max: 3600, unit: "seconds" };
const ALERT_EVERY: Number = Number { name: "POSTRIDER_ALERT_SECONDS", default: 10, min: 1, max: 3600, unit: "seconds" };
/// With fewer megabytes free, somebody is told; 0: never.
const ALERT_DISK: Number =
    Number { name: "POSTRIDER_ALERT_DISK_MB", default: 1000, min: 0, max: 1_000_000_000, unit: "megabytes" };
/// After the first try of a mail; twice as long after each.
const MAIL_RETRY: Number =
    Number { name: "POSTRIDER_MAIL_RETRY_SECONDS", default: 30, min: 1, max: 1800, unit: "seconds" };
/// From a signal to the end of the process.
const STOP: Number = Number { name: "POSTRIDER_STOP_SECONDS", default: 25, min: 1, max: 3600, unit: "seconds" };
/// Without a durable write for so long, the server is not ready (P06).
const STALLED: Number =
    Number { name: "POSTRIDER_STORE_STALLED_SECONDS", default: 15, min: 3, max: 3600, unit: "seconds" };
/// Longer than the longest attempt (R05: 60 s, D05).
const CLAIM_TIMEOUT: Number =
    Number { name: "WEBHOOK_CLAIM_TIMEOUT_SECONDS", default: 300, min: 61, max: 86_400, unit: "seconds" };
/// Of what a transformation gives; larger ones do not fit the memory that a program may take.
const TRANSFORM_OUTPUT: Number =
    Number { name: "POSTRIDER_TRANSFORM_OUTPUT_BYTES", default: 8 << 20, min: 1024, max: 32 << 20, unit: "bytes" };
/// 0 ignores the header (R08).
const RETRY_AFTER_MAX: Number =
    Number { name: "WEBHOOK_RETRY_AFTER_MAX_SECONDS", default: 21_600, min: 0, max: 2_592_000, unit: "seconds" };
const DELIVERY_CAP: Number =
    Number { name: "DELIVERY_ESCALATION_HARD_CAP_HOURS", default: 96, min: 1, max: 8760, unit: "hours" };
const FORWARD_CAP: Number =
    Number { name: "FORWARD_ESCALATION_HARD_CAP_HOURS", default: 24, min: 1, max: 8760, unit: "hours" };

/// How long the audit log keeps its entries (P07).
const AUDIT_DAYS: Number = Number { name: "POSTRIDER_AUDIT_DAYS", default: 365, min: 1, max: 36_500, unit: "days" };

/// How log lines look.
const LOG_FORMAT: &str = "POSTRIDER_LOG_FORMAT";

/// Header names whose values nobody is shown, with commas between.
const MASKED: &str = "POSTRIDER_MASK_HEADERS";

/// Addresses opened that are closed otherwise, with commas between (D33).
const OPENED: &str = "POSTRIDER_ALLOW_PRIVATE";

impl Settings {
    pub fn from_env(demo: bool) -> Result<Settings, Failed> {
        // The demo's guide is not to drown in logs.
        Settings::read(|name| std::env::var(name).ok(), if demo { "warn" } else { "info" })
    }

    fn read(variable: impl Fn(&str) -> Option<String>, log_default: &str) -> Result<Settings, Failed> {
        // An empty variable is no value.
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut errors = Vec::new();
        let mut number = |number: &Number| match number.read(variable(number.name).as_deref()) {
            Ok(value) => value,
            Err(error) => {
                errors.push(error);
                number.default
            }
        };
        let lease_s = number(&LEASE);
        let audit_days = number(&AUDIT_DAYS);
        let stalled_s = number(&STALLED);
        let stop_s = number(&STOP);
        let (alert_every_s, alert_disk_mb, mail_retry_s) =
            (number(&ALERT_EVERY), number(&ALERT_DISK), number(&MAIL_RETRY));
        let endpoint_sweep_s = number(&ENDPOINT_SWEEP);
        let log_retention_s = number(&LOG_RETENTION);
        let claim_timeout_s = number(&CLAIM_TIMEOUT);
        let transform = TransformLimits { output_bytes: number(&TRANSFORM_OUTPUT), ..TransformLimits::default() };
        let retry_after_s = number(&RETRY_AFTER_MAX);
        let caps = [(&DELIVERY_CAP, Ladder::webhook()), (&FORWARD_CAP, Ladder::forward())];
        let caps = caps.map(|(cap, ladder)| (cap, number(cap), ladder));
        errors.extend(caps.iter().filter_map(|(cap, hours, ladder)| does_not_fit(cap, *hours, ladder)));
        let opened = opened(variable(OPENED).as_deref()).unwrap_or_else(|error| {
            errors.push(error);
            Vec::new()
        });
        let masked_headers = masked(variable(MASKED).as_deref()).unwrap_or_else(|error| {
            errors.push(error);
            MaskedHeaders::default()
        });
        let given = (variable(secrets_key::VARIABLE), variable(secrets_key::FILE_VARIABLE));
        let secrets_key = SecretsKey::read(given.0.as_deref(), given.1.as_deref()).unwrap_or_else(|error| {
            errors.push(error);
            SecretsKey::default()
        });
        let outside = Outside::read(variable).unwrap_or_else(|found| {
            errors.extend(found);
            Outside::default()
        });
        let log_format = log_format(variable(LOG_FORMAT).as_deref()).unwrap_or_else(|error| {
            errors.push(error);
            LogFormat::default()
        });
        let alert_to = outside.alert_to.clone();
        if !errors.is_empty() {
            let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            return Err(Failed::new(Exit::Refused, message));
        }
        let [(_, delivery_cap_h, _), (_, forward_cap_h, _)] = caps;
        Ok(Settings {
            log: variable("POSTRIDER_LOG").unwrap_or_else(|| log_default.to_owned()),
            log_format,
            outside,
            stop: Wait::from_secs(stop_s),
            admin_key: variable("POSTRIDER_ADMIN_KEY"),
            secrets_key,
            engine: EngineOptions {
                lease: Wait::from_secs(lease_s),
                audit_retention: Wait::from_secs(audit_days * 24 * 3600),
                log_retention: Wait::from_secs(log_retention_s),
                alert_to,
                alert_every: Wait::from_secs(alert_every_s),
                alert_disk_free_bytes: alert_disk_mb * 1_000_000,
                mail_pause: Wait::from_secs(mail_retry_s),
                endpoint_sweep_every: Wait::from_secs(endpoint_sweep_s),
                ladders: LadderLimits {
                    delivery_cap: Wait::from_secs(delivery_cap_h * 3600),
                    forward_cap: Wait::from_secs(forward_cap_h * 3600),
                    retry_after_max: Wait::from_secs(retry_after_s),
                },
                claim_timeout: Wait::from_secs(claim_timeout_s),
                health: Bounds { write: Wait::from_secs(stalled_s), ..Bounds::default() },
                ..EngineOptions::default()
            },
            opened,
            transform,
            masked_headers,
        })
    }
}

impl Number {
    fn read(&self, given: Option<&str>) -> Result<u64, SettingError> {
        let Some(given) = given else { return Ok(self.default) };
        let value = given.trim().parse::<u64>().ok().filter(|value| (self.min..=self.max).contains(value));
        let allowed = || format!("a whole number of {} from {} to {}", self.unit, self.min, self.max);
        value.ok_or_else(|| SettingError::new(self.name, given, allowed()))
    }
}

fn log_format(given: Option<&str>) -> Result<LogFormat, SettingError> {
    match given {
        None | Some("text") => Ok(LogFormat::Text),
        Some("json") => Ok(LogFormat::Json),
        Some(other) => Err(SettingError::new(LOG_FORMAT, other, "text or json")),
    }
}

fn opened(given: Option<&str>) -> Result<Vec<IpNet>, SettingError> {
    let ranges = given.unwrap_or_default().split(',').map(str::trim).filter(|range| !range.is_empty());
    ranges
        .map(|range| {
            let single = || range.parse::<std::net::IpAddr>().map(IpNet::from);
            range.parse().or_else(|_| single()).map_err(|_| {
                SettingError::new(
                    OPENED,
                    range,
                    "addresses and ranges such as 10.0.0.0/8,fd00::/8, with commas between",
                )
            })
        })
        .collect()
}

fn masked(given: Option<&str>) -> Result<MaskedHeaders, SettingError> {
    let names = given.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let is_token = |name: &String| HeaderName::from_bytes(name.as_bytes()).is_ok();
    match names.iter().find(|name| !is_token(name)) {
        Some(name) => Err(SettingError::new(MASKED, name, "names of headers, with commas between")),
        None if names.len() > MaskedHeaders::ADDED_MAX => {
            let allowed = format!("at most {} names (`masked_headers_max`)", MaskedHeaders::ADDED_MAX);
            Err(SettingError::new(MASKED, format!("{} names", names.len()), allowed))
        }
        None => Ok(MaskedHeaders::with(names)),
    }
}

/// R09: a default ladder at the top of its jitter must fit its cap.
fn does_not_fit(cap: &Number, hours: u64, ladder: &Ladder) -> Option<SettingError> {
    let longest_s = ladder.longest_total().as_millis().div_ceil(1000);
    (longest_s > hours * 3600).then(|| {
        let allowed =
            format!("{} or more: the default ladder takes up to {longest_s} seconds", longest_s.div_ceil(3600));
        SettingError::new(cap.name, hours, allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        let variable = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        Settings::read(variable, "info").map_err(|failed| {
            assert_eq!(failed.exit, Exit::Refused);
            failed.message
        })
    }

    #[test]
    fn r13_the_value_of_a_transformation_is_as_large_as_the_setting_says() {
        assert_eq!(read(&[]).unwrap().transform, TransformLimits::default());
        let set = |value| read(&[("POSTRIDER_TRANSFORM_OUTPUT_BYTES", value)]).map(|read| read.transform.output_bytes);
        assert_eq!(set("4096"), Ok(4096));
        assert!(set("1023").unwrap_err().starts_with("`POSTRIDER_TRANSFORM_OUTPUT_BYTES` is `1023`: "));
    }

    #[test]
    fn nothing_set_is_the_defaults_and_what_is_set_is_taken() {
        let settings = read(&[("POSTRIDER_LEASE_SECONDS", "")]).unwrap();
        assert_eq!((settings.engine.lease, settings.log.as_str()), (Wait::from_secs(15), "info"));
        assert_eq!((settings.admin_key, settings.engine.claim_timeout), (None, Wait::from_secs(300)));
        let pairs =
            [("POSTRIDER_LEASE_SECONDS", "30"), ("POSTRIDER_LOG", "debug"), ("WEBHOOK_CLAIM_TIMEOUT_SECONDS", "301")];
        let settings = read(&pairs).unwrap();
        assert_eq!((settings.engine.lease, settings.log.as_str()), (Wait::from_secs(30), "debug"));
        assert_eq!(settings.engine.claim_timeout, Wait::from_secs(301));
    }

    #[test]
    fn every_number_out_of_range_is_refused_by_name_all_at_once() {
        let error = read(&[
            ("POSTRIDER_LEASE_SECONDS", "0"),
            ("WEBHOOK_CLAIM_TIMEOUT_SECONDS", "60"),
            ("WEBHOOK_RETRY_AFTER_MAX_SECONDS", "-1"),
            ("DELIVERY_ESCALATION_HARD_CAP_HOURS", "many"),
        ])
        .unwrap_err();
        for name in ["POSTRIDER_LEASE_SECONDS", "WEBHOOK_CLAIM_TIMEOUT_SECONDS", "WEBHOOK_RETRY_AFTER_MAX_SECONDS"] {
            assert!(error.contains(&format!("`{name}` is `")), "{error}");
        }
        assert!(error.contains(
            "`DELIVERY_ESCALATION_HARD_CAP_HOURS` is `many`: allowed is a whole number of hours from 1 to 8760"
        ));
    }

    #[test]
    fn v07_the_log_keeps_30_days_or_what_is_set_and_no_less_than_a_minute() {
        let name = "POSTRIDER_LOG_RETENTION_SECONDS";
        let kept = |pairs: &[(&str, &str)]| read(pairs).unwrap().engine.log_retention;
        assert_eq!(kept(&[]), Wait::from_secs(30 * 24 * 3600));
        assert_eq!(kept(&[]), EngineOptions::default().log_retention);
        assert_eq!(kept(&[(name, "60")]), Wait::from_secs(60));
        assert_eq!(kept(&[(name, "315360000")]), Wait::from_secs(315_360_000));
        for bad in ["59", "0", "-1", "315360001", "30d", "1e6"] {
            let wanted = format!("`{name}` is `{bad}`: allowed is a whole number of seconds from 60 to 315360000");
            assert_eq!(read(&[(name, bad)]).unwrap_err(), wanted);
        }
    }

    #[test]
    fn r14_opened_addresses_are_ranges_or_single_ones() {
        let ranges = opened(Some("10.0.0.0/8, 169.254.169.254,fd00::/8")).unwrap();
        let shown: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "169.254.169.254/32", "fd00::/8"]);
        assert_eq!(opened(None), Ok(Vec::new()));
        let error = read(&[("POSTRIDER_ALLOW_PRIVATE", "10.0.0.0/8,intranet")]).unwrap_err();
        assert!(error.starts_with("`POSTRIDER_ALLOW_PRIVATE` is `intranet`: "), "{error}");
    }

    #[test]
    fn d14_further_headers_to_mask_are_names_with_commas_between() {
        let settings = read(&[("POSTRIDER_MASK_HEADERS", "X-Patient-Token, x-ssn")]).unwrap();
        assert!(settings.masked_headers.cover("x-patient-token") && settings.masked_headers.cover("X-SSN"));
        let error = read(&[("POSTRIDER_MASK_HEADERS", "X Token")]).unwrap_err();
        assert!(error.starts_with("`POSTRIDER_MASK_HEADERS` is `X Token`: "), "{error}");
        assert!(read(&[("POSTRIDER_MASK_HEADERS", &vec!["a"; 101].join(","))]).is_err());
    }

    #[test]
    fn r09_a_default_ladder_that_does_not_fit_its_cap_refuses_the_start_and_shows_the_sum() {
        let wanted = "`DELIVERY_ESCALATION_HARD_CAP_HOURS` is `83`: allowed is 84 or more: the default ladder takes up to 298890 seconds";
        assert_eq!(read(&[("DELIVERY_ESCALATION_HARD_CAP_HOURS", "83")]).unwrap_err(), wanted);
        let settings = read(&[("DELIVERY_ESCALATION_HARD_CAP_HOURS", "84"), ("WEBHOOK_RETRY_AFTER_MAX_SECONDS", "0")]);
        let ladders = settings.unwrap().engine.ladders;
        assert_eq!((ladders.delivery_cap, ladders.retry_after_max), (Wait::from_secs(84 * 3600), Wait::ZERO));
        assert_eq!(read(&[]).unwrap().engine.ladders, LadderLimits::default());
        assert!(read(&[("FORWARD_ESCALATION_HARD_CAP_HOURS", "11")]).is_err());
        assert!(read(&[("FORWARD_ESCALATION_HARD_CAP_HOURS", "12")]).is_ok());
    }
}
