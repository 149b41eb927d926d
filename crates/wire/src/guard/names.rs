//! Host names that are refused before they are resolved, because of how they are spelt or what they are known to stand for.
//!
//! It must not know which addresses are closed: a name that passes is judged by what it resolves to.

use super::Refused;

/// Names at which clouds offer their metadata service. What they resolve to is refused anyway; here a resolver is not even asked.
const METADATA: &[&str] =
    &["metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"];

/// Names of this machine, beside all that end in `.localhost` (RFC 6761, section 6.3).
const THIS_MACHINE: &[&str] = &[
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost6",
    "ip6-localhost",
    "ip6-loopback",
    "broadcasthost",
];

/// Only what every program reads as the same name passes.
pub(super) fn check(name: &str) -> Result<(), Refused> {
    let refused = |what| Err(Refused::Name { what });
    let bare = without_dot(name);
    if bare.is_empty() || bare.len() > 253 {
        return refused("empty or longer than 253 characters");
    }
    if !bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
        return refused("not a name of ASCII letters, digits, `-`, `_` and dots");
    }
    if bare.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return refused("a name with an empty or too long part");
    }
    if bare.rsplit('.').next().is_some_and(is_number) {
        return refused("an IP address in a spelling that programs read differently");
    }
    Ok(())
}

pub(super) fn is_metadata(name: &str) -> bool {
    METADATA.iter().any(|known| known.eq_ignore_ascii_case(without_dot(name)))
}

pub(super) fn is_this_machine(name: &str) -> bool {
    let name = without_dot(name).to_ascii_lowercase();
    name.ends_with(".localhost") || THIS_MACHINE.contains(&name.as_str())
}

fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// A last part that is a number makes the whole an IPv4 address for some (WHATWG URL, "ends in a number"; `inet_aton`).
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x").or_else(|| label.strip_prefix("0X")) {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
