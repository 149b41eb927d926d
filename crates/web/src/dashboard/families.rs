//! Connections, channels and services as pages show them: one set of pages for all three (ADR 0009), with the words and the addresses of each.
//!
//! It must not know what a page shows.

use std::fmt::Display;

use postrider_core::connection::{ConnectionKind, Family};

use super::fault::{Fault, nothing_here};
use super::visit::segment;

/// What a family is called.
pub struct Words {
    /// Its list below the project, and its entry of the navigation.
    pub place: &'static str,
    pub title: &'static str,
    pub noun: &'static str,
    /// What its definitions are for, to whoever chooses one.
    pub what: &'static str,
}

pub const fn words(family: Family) -> Words {
    match family {
        Family::Connection => Words {
            place: "connections",
            title: "Connections",
            noun: "connection",
            what: "Webhook endpoints are made on their own page.",
        },
        Family::Channel => Words {
            place: "channels",
            title: "Channels",
            noun: "channel",
            what: "A channel accepts requests at an address of this server, and runs a service for each of them.",
        },
        Family::Service => Words {
            place: "services",
            title: "Services",
            noun: "service",
            what: "A service is what a channel runs for each request.",
        },
    }
}

/// The kind that a path names.
pub fn parsed(kind: &str) -> Result<ConnectionKind, Fault> {
    ConnectionKind::parse(kind).ok_or_else(nothing_here)
}

/// The kinds of a family that are made on its pages. Endpoints have pages of their own.
pub fn kinds(family: Family) -> impl Iterator<Item = ConnectionKind> {
    ConnectionKind::ALL.into_iter().filter(move |kind| kind.family() == family && *kind != ConnectionKind::Webhook)
}

/// What people call a kind, within its family.
pub fn kind_label(kind: &str) -> String {
    match kind.strip_prefix("channel_").unwrap_or(kind) {
        "mllp" => "HL7 MLLP".to_owned(),
        "fhir" => "HL7 FHIR".to_owned(),
        "webhook" => "Webhook endpoint".to_owned(),
        "service" => "Service".to_owned(),
        other => other.to_uppercase(),
    }
}

/// What a kind is for, in one line.
pub const fn purpose(kind: ConnectionKind) -> &'static str {
    match kind {
        ConnectionKind::Rest => "Requests over HTTP, with any method and body.",
        ConnectionKind::Soap => "Operations of a SOAP service; reads its WSDL.",
        ConnectionKind::Mllp => "HL7 version 2 messages on a socket that stays open.",
        ConnectionKind::Fhir => "Resources of an HL7 FHIR server.",
        ConnectionKind::ChannelRest => "Requests over HTTP at a path of this server.",
        ConnectionKind::ChannelSoap => "SOAP envelopes at a path of this server, with a WSDL of it.",
        ConnectionKind::ChannelMllp => "HL7 version 2 messages at a port of its own.",
        ConnectionKind::Service => "Code at an address of yours, run for each request of a channel.",
        ConnectionKind::Webhook => "",
    }
}

/// The page of one, below the project; `rest` is behind its name.
pub fn page_of(kind: &str, name: &str, rest: &str) -> String {
    format!("/connections/{}/{}{rest}", segment(kind), segment(name))
}

/// Where the API has one, below the project; `rest` is behind its name, and `query` behind all that tells it from others.
pub fn api_of(kind: &str, name: &str, rest: &str, query: impl Display) -> String {
    let name = segment(name);
    let query = query.to_string();
    let more = if query.is_empty() { query } else { format!("&{query}") };
    match kind.strip_prefix("channel_") {
        Some(kind) => format!("/channels/{name}{rest}?type={}{more}", segment(kind)),
        // A service is alone of its name; what it shares with connections is with theirs.
        None if kind == ConnectionKind::Service.as_str() && !matches!(rest, "/queue" | "/dlq" | "/ping") => {
            format!("/services/{name}{rest}?{}", more.trim_start_matches('&'))
        }
        None => format!("/connections/{name}{rest}?type={}{more}", segment(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_is_found_where_the_api_has_it() {
        assert_eq!(api_of("rest", "A & B", "", ""), "/connections/A%20%26%20B?type=rest");
        assert_eq!(api_of("channel_rest", "A", "/queue", "limit=5"), "/channels/A/queue?type=rest&limit=5");
        assert_eq!(api_of("service", "A", "", "force=true"), "/services/A?force=true");
        assert_eq!(api_of("service", "A", "/queue", ""), "/connections/A/queue?type=service");
        assert!(kinds(Family::Connection).all(|kind| kind != ConnectionKind::Webhook));
        assert_eq!(kinds(Family::Channel).count(), ConnectionKind::CHANNELS.len());
    }
}
