//! What has to hold for every text that a parser is given, judged by models that were written apart from the parsers.
//!
//! Each module has one function `holds`, which panics when its property does not hold. Fuzz targets call it with what they invent
//! (`cargo xtask fuzz`), and a test calls it with the corpus that they left behind (`cargo test -p postrider-properties`).
//! The models must not use what they judge: they follow the seeds, the RFCs and plain counting.
#![forbid(unsafe_code)]

pub mod body_view;
pub mod call;
pub mod challenge;
pub mod channel;
pub mod cursor;
pub mod delivery;
pub mod fhir;
pub mod headers;
pub mod hl7;
pub mod host;
pub mod id;
pub mod mllp;
pub mod model;
pub mod path_template;
pub mod query;
pub mod retry_after;
pub mod send_request;
pub mod settings;
pub mod soap_answer;
pub mod soap_message;
pub mod status_set;
pub mod time;
pub mod topic;
pub mod trace;
pub mod yaml;

/// A property under the name of its fuzz target and of its corpus.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    pub name: &'static str,
    pub holds: fn(&[u8]),
}

/// Every property, by name.
pub const ALL: &[Property] = &[
    Property { name: "body_view", holds: body_view::holds },
    Property { name: "call", holds: call::holds },
    Property { name: "challenge", holds: challenge::holds },
    Property { name: "channel", holds: channel::holds },
    Property { name: "cursor", holds: cursor::holds },
    Property { name: "fhir", holds: fhir::holds },
    Property { name: "headers", holds: headers::holds },
    Property { name: "hl7", holds: hl7::holds },
    Property { name: "host", holds: host::holds },
    Property { name: "id", holds: id::holds },
    Property { name: "mllp", holds: mllp::holds },
    Property { name: "path_template", holds: path_template::holds },
    Property { name: "query", holds: query::holds },
    Property { name: "retry_after", holds: retry_after::holds },
    Property { name: "send_request", holds: send_request::holds },
    Property { name: "settings", holds: settings::holds },
    Property { name: "soap_answer", holds: soap_answer::holds },
    Property { name: "soap_message", holds: soap_message::holds },
    Property { name: "status_set", holds: status_set::holds },
    Property { name: "time", holds: time::holds },
    Property { name: "topic", holds: topic::holds },
    Property { name: "trace", holds: trace::holds },
    Property { name: "yaml", holds: yaml::holds },
];

/// Parsers take text: what is not UTF-8 never reaches them.
fn text_of(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// Corpora stay readable: `␀` stands for NUL, `␍` for a carriage return and `␤` for a line feed.
fn unescaped(text: &str) -> String {
    text.replace('␀', "\0").replace('␍', "\r").replace('␤', "\n")
}
