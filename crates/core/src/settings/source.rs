//! The keys of `webhook_source`. This module must not know what comes in, nor how it is verified.

use serde_json::{Map, Value};

use super::SettingError;
use super::keys::{KeyDoc, Shape, TRUE_FALSE, key};
use super::objects::TOPIC_NAMES;
use super::reader::Reader;
use crate::Wait;
use crate::connection::check_name;
use crate::http_url::HttpUrl;
use crate::source::{HmacAlgorithm, HmacEncoding, HmacForm, HmacSpec, HubSpotVersion, Provider, SourceSpec};
use crate::topic::TopicName;

pub const DESCRIPTION_CHARS_MAX: usize = 500;
const RATE_MAX: u32 = 10_000;
const TOLERANCE_S: u32 = 300;
const REPLAY_S: u32 = 300;
/// Three days: as far back as providers resend.
const DEDUPE_S: u32 = 259_200;
/// Before a source's name in the topic that it gets.
pub const TOPIC_PREFIX: &str = "incoming.";

const PROVIDERS: &str =
    "one of github, gitlab, hubspot, sendgrid, shopify, slack, square, stripe, twilio, standard, hmac, none";
const HEADER: &str = "the name of a header, of at most 100 letters, digits and `-`";

/// The keys of `webhook_source` beside `name` and `secret`.
pub const SOURCE_KEYS: &[KeyDoc] = &[
    key("provider", "none given", PROVIDERS, "Who sends, and so how a webhook proves itself.")
        .of(Shape::OneOf(Provider::WORDS)),
    key(
        "topic",
        "`incoming.` and the name",
        "the name of a topic: letters, digits, `_` and `-`, with dots between segments",
        "What comes in becomes a message of this topic; destinations are subscriptions to it.",
    ),
    key("description", "", "a text of at most 500 characters", "For people."),
    key("enabled", "true", TRUE_FALSE, "false: whoever sends here is answered 410, and nothing is stored.")
        .of(Shape::Flag),
    key(
        "public_url",
        "none",
        "an http:// or https:// address of scheme, host and port, such as `https://hooks.example.org`",
        "Where the provider reaches this server; square, twilio and hubspot sign it.",
    ),
    key(
        "tolerance_seconds",
        "300",
        "a whole number from 1 to 3600",
        "How far a signed time may be from the server's, either way.",
    )
    .of(Shape::Whole { min: 1, max: 3600 }),
    key(
        "dedupe_seconds",
        "259200",
        "a whole number from 0 to 2592000 (30 days)",
        "For how long a second webhook with the same id of the provider's is a repeat, which is acknowledged and not stored.",
    )
    .of(Shape::Whole { min: 0, max: 2_592_000 }),
    key(
        "replay_seconds",
        "300",
        "a whole number from 0 to 86400",
        "For how long what was signed once is refused when it comes again under another id or under none; 0: never.",
    )
    .of(Shape::Whole { min: 0, max: 86_400 }),
    key(
        "rate_limit_per_second",
        "none",
        "a whole number from 1 to 10000",
        "Webhooks a second at most; more are answered 429.",
    )
    .of(Shape::Whole { min: 1, max: RATE_MAX }),
    key("id_header", "none", HEADER, "The header with the sender's own id of a webhook; for hmac and none."),
    key("hubspot_version", "v3", "one of v1, v2, v3", "Which of HubSpot's signatures counts.")
        .of(Shape::OneOf(&["v1", "v2", "v3"])),
    key("hmac_algorithm", "sha256", "one of sha1, sha256, sha384, sha512", "The hash; for hmac.")
        .of(Shape::OneOf(&["sha1", "sha256", "sha384", "sha512"])),
    key("hmac_header", "X-Signature", HEADER, "The header with the signature; for hmac."),
    key(
        "hmac_prefix",
        "",
        "at most 32 visible ASCII characters",
        "What stands before the signature, such as `sha256=`; for hmac.",
    ),
    key("hmac_encoding", "hex", "one of hex, base64", "How the signature is written; for hmac.")
        .of(Shape::OneOf(&["hex", "base64"])),
    key(
        "hmac_timestamp_header",
        "none",
        HEADER,
        "The header with the time, in seconds or milliseconds since 1970: then the time, a dot and the body are signed; for hmac.",
    ),
    key(
        "hmac_format",
        "plain",
        "one of plain, t_v1",
        "t_v1: the header holds `t=…,v1=…`, and that time, a dot and the body are signed; for hmac.",
    )
    .of(Shape::OneOf(&["plain", "t_v1"])),
];

/// What opens and proves a source, in configuration files. The API has both in members and acts of their own.
pub const SOURCE_SECRET_KEYS: &[KeyDoc] = &[
    key(
        "secret",
        "none",
        "the secret that the provider shows, or one of yours for github, gitlab, standard and hmac; nothing for none",
        "What a webhook is verified with. Left out: the one that is set stays.",
    )
    .secret(),
    key(
        "token",
        "none",
        "32 to 100 letters, digits, `-` and `_`",
        "The last segment of the address, which is a credential. Left out: the one that is set stays; for a new source one is made.",
    )
    .secret(),
];

/// Whether a text can be the token of a source: long enough not to be guessed, and letters that an address carries as they are.
pub fn is_token(text: &str) -> bool {
    (32..=100).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Reads the keys as written, without `name` and `secret`.
///
/// # Errors
/// All that is refused, each with its field.
pub(crate) fn parse(name: &str, written: &Map<String, Value>) -> Result<SourceSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SOURCE_KEYS.iter());
    if let Err(error) = check_name(name) {
        reader.refuse_as(error);
    }
    if !reader.has("provider") {
        reader.refuse("provider", "missing", PROVIDERS);
    }
    let provider = reader.choice("provider", Provider::parse);
    let topic = topic(&mut reader, name);
    let description = reader.text("description").unwrap_or_default().to_owned();
    if description.chars().count() > DESCRIPTION_CHARS_MAX {
        let allowed = reader.allowed("description");
        reader.refuse("description", &description, allowed);
    }
    let enabled = reader.flag("enabled").unwrap_or(true);
    let public_url = public_url(&mut reader);
    let mut seconds = |key, range, standard| Wait::from_secs(reader.whole(key, range).unwrap_or(standard).into());
    let tolerance = seconds("tolerance_seconds", 1..=3600, TOLERANCE_S);
    let dedupe_window = seconds("dedupe_seconds", 0..=2_592_000, DEDUPE_S);
    let replay_window = seconds("replay_seconds", 0..=86_400, REPLAY_S);
    let rate_limit_per_second = reader.whole("rate_limit_per_second", 1..=RATE_MAX);
    let id_header = header(&mut reader, "id_header");
    let hubspot_version = reader.choice("hubspot_version", HubSpotVersion::parse).unwrap_or_default();
    let hmac = hmac(&mut reader);
    if let Some(provider) = provider {
        refuse_idle_keys(&mut reader, provider);
        require_public_url(&mut reader, provider, hubspot_version, public_url.is_some());
    }
    reader.refuse_unknown_keys(|_| false);
    reader.finish(provider.zip(topic).map(|(provider, topic)| SourceSpec {
        provider,
        topic,
        description,
        enabled,
        public_url,
        tolerance,
        dedupe_window,
        replay_window,
        rate_limit_per_second,
        id_header,
        hubspot_version,
        hmac,
    }))
}

/// A key that does nothing would look as if it did.
fn refuse_idle_keys(reader: &mut Reader<'_>, provider: Provider) {
    for doc in SOURCE_KEYS {
        let works = match doc.name {
            "id_header" => matches!(provider, Provider::Hmac | Provider::None),
            "hubspot_version" => provider == Provider::HubSpot,
            name if name.starts_with("hmac_") => provider == Provider::Hmac,
            _ => true,
        };
        if !works && reader.has(doc.name) {
            reader.refuse(doc.name, "given", format!("nothing for the provider {}", provider.as_str()));
        }
    }
}

fn require_public_url(reader: &mut Reader<'_>, provider: Provider, version: HubSpotVersion, is_given: bool) {
    let signs_it = match provider {
        Provider::Square | Provider::Twilio => true,
        Provider::HubSpot => version.signs_the_url(),
        _ => false,
    };
    if signs_it && !is_given && !reader.has("public_url") {
        let allowed = reader.allowed("public_url");
        reader.refuse("public_url", "missing", format!("{allowed}: {} signs it", provider.as_str()));
    }
}

fn topic(reader: &mut Reader<'_>, name: &str) -> Option<TopicName> {
    let written = reader.text("topic").map(str::to_owned);
    let text = written.unwrap_or_else(|| format!("{TOPIC_PREFIX}{}", slug(name)));
    TopicName::new(text.as_str())
        .map_err(|error| reader.refuse("topic", &text, format!("{TOPIC_NAMES}: {error}; it can be written here")))
        .ok()
}

/// What of a name can stand in a topic's: small letters and digits, and `-` for all else.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

fn public_url(reader: &mut Reader<'_>) -> Option<HttpUrl> {
    let text = reader.text("public_url").filter(|text| !text.is_empty())?;
    let read = HttpUrl::parse(text).ok().filter(|url| url.target() == "/");
    if read.is_none() {
        let allowed = reader.allowed("public_url");
        reader.refuse("public_url", super::host::without_user_info(text), allowed);
    }
    read
}

fn header(reader: &mut Reader<'_>, key: &'static str) -> Option<String> {
    let text = reader.text(key).filter(|text| !text.is_empty())?;
    let fits = text.len() <= 100 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !fits {
        let allowed = reader.allowed(key);
        reader.refuse(key, text, allowed);
    }
    fits.then(|| text.to_ascii_lowercase())
}

fn hmac(reader: &mut Reader<'_>) -> HmacSpec {
    let prefix = reader.text("hmac_prefix").unwrap_or_default();
    if prefix.len() > 32 || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        let allowed = reader.allowed("hmac_prefix");
        reader.refuse("hmac_prefix", prefix, allowed);
    }
    let form = reader.choice("hmac_format", HmacForm::parse).unwrap_or_default();
    if form == HmacForm::Timed {
        for key in ["hmac_prefix", "hmac_timestamp_header"] {
            if reader.text(key).is_some_and(|text| !text.is_empty()) {
                reader.refuse(key, "given", "nothing together with the `hmac_format` t_v1, which says it itself");
            }
        }
    }
    HmacSpec {
        algorithm: reader.choice("hmac_algorithm", HmacAlgorithm::parse).unwrap_or_default(),
        header: header(reader, "hmac_header").unwrap_or_else(|| "x-signature".to_owned()),
        prefix: prefix.to_owned(),
        encoding: reader.choice("hmac_encoding", HmacEncoding::parse).unwrap_or_default(),
        timestamp_header: header(reader, "hmac_timestamp_header"),
        form,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(name: &str, keys: Value) -> Result<SourceSpec, Vec<String>> {
        let parsed = SourceSpec::parse(name, keys.as_object().unwrap());
        parsed.map_err(|errors| errors.iter().map(|error| error.field.to_string()).collect())
    }

    #[test]
    fn r12_a_source_is_read_with_its_defaults() {
        let spec = read("Git Hub (prod)", json!({"provider": "github"})).unwrap();
        assert_eq!((spec.provider, spec.topic.as_str()), (Provider::GitHub, "incoming.git-hub-prod"));
        assert_eq!((spec.tolerance, spec.replay_window), (Wait::from_secs(300), Wait::from_secs(300)));
        assert!(spec.enabled && spec.public_url.is_none() && spec.rate_limit_per_second.is_none());
        let keys = json!({"provider": "hmac", "topic": "lab.results", "hmac_header": "X-Lab", "hmac_format": "t_v1"});
        let spec = read("lab", keys).unwrap();
        assert_eq!((spec.hmac.header.as_str(), spec.hmac.form), ("x-lab", HmacForm::Timed));
    }

    #[test]
    fn r12_what_is_out_of_range_or_does_nothing_is_refused_by_name() {
        for (name, keys, wanted) in [
            ("a", json!({}), vec!["provider"]),
            ("a", json!({"provider": "paypal"}), vec!["provider"]),
            ("§", json!({"provider": "github"}), vec!["topic"]),
            ("a/b", json!({"provider": "github"}), vec!["name"]),
            ("a", json!({"provider": "github", "hmac_header": "x"}), vec!["hmac_header"]),
            ("a", json!({"provider": "slack", "id_header": "x"}), vec!["id_header"]),
            (
                "a",
                json!({"provider": "hmac", "hmac_prefix": "a b", "id_header": "a:b"}),
                vec!["id_header", "hmac_prefix"],
            ),
            ("a", json!({"provider": "hmac", "hmac_format": "t_v1", "hmac_prefix": "x="}), vec!["hmac_prefix"]),
            ("a", json!({"provider": "twilio"}), vec!["public_url"]),
            ("a", json!({"provider": "square", "public_url": "https://a.example/x"}), vec!["public_url"]),
            (
                "a",
                json!({"provider": "none", "tolerance_seconds": 0, "tolerance": 1}),
                vec!["tolerance_seconds", "tolerance"],
            ),
        ] {
            assert_eq!(read(name, keys.clone()).unwrap_err(), wanted, "{keys}");
        }
        assert!(read("a", json!({"provider": "hubspot", "hubspot_version": "v1"})).is_ok(), "v1 signs no address");
    }
}
