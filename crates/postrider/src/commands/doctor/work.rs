//! What is configured and waits: connections that do not go on, letters that are dead, topics that nobody reads.
//!
//! It must not know whether a file or a server told it.

use postrider_core::{Timestamp, Wait};
use postrider_engine::SystemClock;

use super::finding::{Finding, listed};

/// A queue whose oldest request waits longer than this has a head that does not get through.
const BLOCKED_AFTER: Wait = Wait::from_secs(15 * 60);

#[derive(Clone, Debug)]
pub struct Subject {
    pub name: String,
    pub host: Option<String>,
    pub paused: bool,
    pub active: bool,
    pub waiting: u64,
    pub dead: u64,
    pub oldest_waiting_since: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub subjects: Vec<Subject>,
    pub unread_topics: Vec<String>,
    /// Webhook endpoints that the server switched off, by name.
    pub switched_off: Vec<String>,
    /// Those that have been failing since their last success.
    pub failing: Vec<String>,
}

impl Seen {
    /// Names to resolve; addresses need none.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let hosts = self.subjects.iter().filter_map(|subject| subject.host.as_deref());
        hosts.filter_map(|url| {
            let uri: http::Uri = url.parse().ok()?;
            let start = url.find(uri.host()?)?;
            let host = &url[start..start + uri.host()?.len()];
            host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err().then_some(host)
        })
    }
}

pub fn look(seen: &Seen) -> Vec<Finding> {
    judged(seen, SystemClock::shared().now())
}

fn judged(seen: &Seen, now: Timestamp) -> Vec<Finding> {
    let names = |wanted: &dyn Fn(&Subject) -> bool| -> Vec<String> {
        seen.subjects.iter().filter(|subject| wanted(subject)).map(|subject| subject.name.clone()).collect()
    };
    let mut findings = vec![Finding::ok("connections", format!("{} are configured", seen.subjects.len()))];
    let paused = names(&|subject| subject.paused);
    if !paused.is_empty() {
        let detail = format!("paused: {}", listed(&paused));
        findings.push(Finding::note("connections", detail, "`postrider connections resume NAME`, or --all"));
    }
    let inactive = names(&|subject| !subject.active);
    if !inactive.is_empty() {
        let detail = format!("not active: {}", listed(&inactive));
        findings.push(Finding::note("connections", detail, "set is_active to true when they may go on"));
    }
    let is_late =
        |subject: &Subject| subject.oldest_waiting_since.is_some_and(|since| now.since(since) > BLOCKED_AFTER);
    let blocked = names(&|subject| !subject.paused && subject.active && subject.waiting > 0 && is_late(subject));
    if !blocked.is_empty() {
        let detail = format!("the oldest request waits for more than {BLOCKED_AFTER}: {}", listed(&blocked));
        let action = "`postrider queue list NAME` shows why the head is not delivered";
        findings.push(Finding::wrong("queues", detail, action));
    }
    let dead: u64 = seen.subjects.iter().map(|subject| subject.dead).sum();
    let with_dead = names(&|subject| subject.dead > 0);
    findings.push(match dead {
        0 => Finding::ok("dlq", "empty"),
        dead => {
            let detail = format!("{dead} requests could not be delivered: {}", listed(&with_dead));
            Finding::note("dlq", detail, "`postrider dlq list` shows why; retry or discard them")
        }
    });
    if !seen.switched_off.is_empty() {
        let detail = format!("switched off by the server: {}", listed(&seen.switched_off));
        let action =
            "mend the receiver, send it a test, then switch it on again: `postrider endpoints test ID`, `… enable ID`";
        findings.push(Finding::wrong("endpoints", detail, action));
    }
    if !seen.failing.is_empty() {
        let detail = format!("failing since their last success: {}", listed(&seen.failing));
        findings.push(Finding::note("endpoints", detail, "`postrider endpoints health ID` shows since when"));
    }
    if !seen.unread_topics.is_empty() {
        let detail = format!("without a subscription: {}", listed(&seen.unread_topics));
        findings.push(Finding::note(
            "topics",
            detail,
            "their messages go after the topic's retention, read by nobody (D41)",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Level;

    fn subject(name: &str) -> Subject {
        let (name, host) = (name.to_owned(), Some("https://api.example.org:8443".to_owned()));
        Subject { name, host, paused: false, active: true, waiting: 0, dead: 0, oldest_waiting_since: None }
    }

    #[test]
    fn each_trouble_is_told_by_the_names_that_it_concerns() {
        let now = Timestamp::from_millis(10_000_000);
        let old = Some(Timestamp::from_millis(0));
        let seen = Seen {
            subjects: vec![
                subject("fine"),
                Subject { paused: true, waiting: 5, oldest_waiting_since: old, ..subject("held") },
                Subject { active: false, ..subject("off") },
                Subject { waiting: 1, oldest_waiting_since: old, ..subject("stuck") },
                Subject { dead: 3, host: Some("http://[::1]:80".to_owned()), ..subject("dead") },
            ],
            unread_topics: vec!["lab".to_owned()],
            switched_off: vec!["shop".to_owned()],
            failing: vec!["till".to_owned()],
        };
        let findings = judged(&seen, now);
        let told = |check: &str, level: Level| {
            let found = findings.iter().filter(|finding| finding.check == check && finding.level == level);
            found.map(|finding| finding.detail.clone()).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(told("connections", Level::Note), "paused: `held`; not active: `off`");
        assert!(told("queues", Level::Wrong).ends_with(": `stuck`"), "{findings:?}");
        assert!(told("dlq", Level::Note).starts_with("3 requests") && told("topics", Level::Note).contains("`lab`"));
        assert_eq!(told("endpoints", Level::Wrong), "switched off by the server: `shop`");
        assert_eq!(told("endpoints", Level::Note), "failing since their last success: `till`");
        assert_eq!(seen.hosts().collect::<Vec<_>>(), ["api.example.org"; 4]);
        assert!(judged(&Seen::default(), now).iter().all(|finding| finding.level == Level::Ok));
    }

    #[test]
    fn addresses_of_every_kind_have_a_name_to_resolve() {
        let hosts = ["https://fhir.example.org/r4", "lis.hospital.example:2575", "10.1.1.5:2575", "[2001:db8::1]:2575"];
        let of = |host: &str| Subject { host: Some(host.to_owned()), ..subject("x") };
        let seen = Seen { subjects: hosts.map(of).into(), ..Seen::default() };
        assert_eq!(seen.hosts().collect::<Vec<_>>(), ["fhir.example.org", "lis.hospital.example"]);
    }
}
