//! Every variable that a server reads: what it is set to, what it does, and whether the value is one. Secrets are only said to be there.

use std::path::Path;

use postrider_core::schedule::Ladder;
use postrider_core::settings::nearest;

use super::finding::Finding;
use crate::serve::config::Config;
use crate::serve::settings::Settings;

const CHECK: &str = "environment";

struct Variable {
    name: &'static str,
    effect: &'static str,
    is_secret: bool,
}

const fn variable(name: &'static str, effect: &'static str) -> Variable {
    Variable { name, effect, is_secret: false }
}

const fn secret(name: &'static str, effect: &'static str) -> Variable {
    Variable { name, effect, is_secret: true }
}

const VARIABLES: &[Variable] = &[
    variable("POSTRIDER_DATA", "the data directory"),
    variable("POSTRIDER_LISTEN", "where the server listens"),
    secret("POSTRIDER_STORE", "which store"),
    variable("POSTRIDER_CONFIG", "a configuration file, applied at every start"),
    variable("POSTRIDER_SERVICES", "the folder of services that the server runs"),
    variable("POSTRIDER_PYTHON", "the interpreter that they run in"),
    secret("POSTRIDER_ADMIN_KEY", "the installation's first key"),
    secret("POSTRIDER_SECRETS_KEY", "seals secrets at rest"),
    variable("POSTRIDER_SECRETS_KEY_FILE", "seals secrets at rest"),
    variable("POSTRIDER_SERVER", "the server that commands ask"),
    secret("POSTRIDER_KEY", "the key of commands"),
    variable("POSTRIDER_TLS_CA", "authorities that commands trust with https"),
    variable("POSTRIDER_LOG", "which log lines are written"),
    variable("POSTRIDER_LOG_FORMAT", "text or json"),
    variable("POSTRIDER_LOG_RETENTION_SECONDS", "how long the delivery log keeps what has ended"),
    variable("POSTRIDER_AUDIT_DAYS", "how long the audit log keeps its entries"),
    variable("POSTRIDER_LEASE_SECONDS", "a worker's lease"),
    variable("POSTRIDER_TRANSFORM_OUTPUT_BYTES", "how large the value of a transformation may be"),
    variable("POSTRIDER_STORE_STALLED_SECONDS", "when /health/ready fails without a durable write"),
    variable("POSTRIDER_STOP_SECONDS", "how long a stop lets attempts under way end"),
    variable("POSTRIDER_MASK_HEADERS", "further headers whose values nobody is shown"),
    variable("POSTRIDER_ALLOW_PRIVATE", "addresses opened that are closed otherwise"),
    secret("POSTRIDER_SMTP_URL", "the mail server of alerts"),
    variable("POSTRIDER_SMTP_FROM", "who alerts come from"),
    variable("POSTRIDER_SMTP_CA", "authorities of the mail server"),
    variable("POSTRIDER_ALERT_TO", "who is told of alerts"),
    variable("POSTRIDER_ALERT_SECONDS", "how often alerts are looked for"),
    variable("POSTRIDER_ALERT_DISK_MB", "the free room under which an alert rings"),
    variable("POSTRIDER_ENDPOINT_SWEEP_SECONDS", "how often failing endpoints are looked for"),
    variable("POSTRIDER_MAIL_RETRY_SECONDS", "the first wait before a mail is tried again"),
    variable("POSTRIDER_OTLP_ENDPOINT", "the collector of traces"),
    secret("POSTRIDER_OTLP_HEADERS", "headers for the collector"),
    variable("WEBHOOK_CLAIM_TIMEOUT_SECONDS", "when a claimed webhook delivery is taken over"),
    variable("WEBHOOK_RETRY_AFTER_MAX_SECONDS", "the longest wait that a Retry-After gives a ladder"),
    variable("DELIVERY_ESCALATION_HARD_CAP_HOURS", "the age cap of the preset webhook"),
    variable("FORWARD_ESCALATION_HARD_CAP_HOURS", "the age cap of the preset forward"),
];

pub fn look(value: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let given = |name: &str| value(name).filter(|text| !text.is_empty());
    for Variable { name, effect, is_secret } in VARIABLES {
        if let Some(text) = given(name) {
            let shown = if *is_secret { "set" } else { &text };
            findings.push(Finding::ok(CHECK, format!("{name} = {shown}: {effect}")));
        }
    }
    findings.extend(unknown(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())));
    match Settings::from_env(false) {
        Ok(settings) => {
            findings.push(Finding::ok(CHECK, "every variable has a value that can be used"));
            findings.extend(ladders(&settings));
        }
        Err(failed) => {
            findings.push(Finding::wrong(CHECK, failed.message, "set it to what is allowed, or leave it out"))
        }
    }
    if let Some(file) = given("POSTRIDER_CONFIG") {
        findings.push(config(&file));
    }
    findings
}

/// A name that begins like ours and is not read is a typo.
fn unknown(names: impl Iterator<Item = String>) -> Vec<Finding> {
    let known = || VARIABLES.iter().map(|variable| variable.name);
    let ours = names.filter(|name| name.starts_with("POSTRIDER_") && !known().any(|known| known == name));
    // Of the tests of this project itself.
    ours.filter(|name| !name.starts_with("POSTRIDER_PEERS_") && !name.starts_with("POSTRIDER_TEST_"))
        .map(|name| {
            // Keys are in small letters where the nearest one is looked for.
            let small: Vec<String> = known().map(str::to_lowercase).collect();
            let action = match nearest(&name, small.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{}`?", near.to_uppercase()),
                None => "remove it: nothing reads it".to_owned(),
            };
            Finding::note(CHECK, format!("{name} is set, and nothing reads it"), action)
        })
        .collect()
}

/// R09: the sum of a default ladder at the top of its jitter, beside its cap.
fn ladders(settings: &Settings) -> Vec<Finding> {
    let limits = settings.engine.ladders;
    let presets =
        [("webhook", Ladder::webhook(), limits.delivery_cap), ("forward", Ladder::forward(), limits.forward_cap)];
    presets
        .into_iter()
        .map(|(name, ladder, cap)| {
            let sum = ladder.longest_total();
            let said = format!("the preset {name} takes up to {sum} of its cap of {cap}");
            if sum <= cap { Finding::ok("ladder", said) } else { Finding::wrong("ladder", said, "raise the cap") }
        })
        .collect()
}

fn config(file: &str) -> Finding {
    match Config::read(Path::new(file)) {
        Ok(_) => Finding::ok("config", format!("{file} can be read as a configuration")),
        Err(failed) => {
            let fields: Vec<String> =
                failed.fields.iter().map(|field| format!("{}: {}", field.field, field.message)).collect();
            let detail = format!("{file}: {} {}", failed.message, fields.join("; "));
            Finding::wrong("config", detail.trim_end().to_owned(), "mend the file: the server does not start with it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Level;

    #[test]
    fn every_variable_of_the_page_about_the_command_line_is_known() {
        let page = include_str!("../../../../../docs/cli.md");
        let is_letter = |c: char| c.is_ascii_uppercase() || c == '_';
        let words = page.split(|c: char| !is_letter(c)).filter(|word| {
            ["POSTRIDER_", "WEBHOOK_", "DELIVERY_", "FORWARD_"].iter().any(|start| word.starts_with(start))
        });
        let mut seen = 0;
        for word in words {
            assert!(VARIABLES.iter().any(|known| known.name == word), "{word} is not looked at");
            seen += 1;
        }
        assert!(seen > 20, "only {seen} variables are on the page");
    }

    #[test]
    fn a_typo_in_a_name_is_noticed_and_a_secret_is_not_repeated() {
        let found = unknown(["POSTRIDER_LISEN".to_owned(), "HOME".to_owned(), "POSTRIDER_LOG".to_owned()].into_iter());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].action.as_deref(), Some("did you mean `POSTRIDER_LISTEN`?"));
        let findings = look(&|name| (name == "POSTRIDER_ADMIN_KEY").then(|| "hunter2".to_owned()));
        assert!(findings.iter().all(|finding| !finding.detail.contains("hunter2")));
        assert!(findings.iter().any(|finding| finding.check == "ladder" && finding.level == Level::Ok));
    }
}
