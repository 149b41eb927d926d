//! Every key with its default, its range and its meaning: the one list behind error messages, documentation and export.
//!
//! This module must not know how a key is read.

use serde_json::Value;

use super::target_keys;
use crate::security::SecurityKind;

/// What people can look up about a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyDoc {
    pub name: &'static str,
    /// As it would be written; empty for an empty text. A default that is no single value is put in several words.
    pub default: &'static str,
    /// In words that continue "allowed is …".
    pub allowed: &'static str,
    pub meaning: &'static str,
    pub shape: Shape,
    /// Compared and stored, never shown.
    pub is_secret: bool,
}

/// What is written for a key, as far as a JSON Schema can say it. The words in `allowed` may ask for more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Text,
    Flag,
    Whole {
        min: u32,
        max: u32,
    },
    Decimal {
        min: f64,
        max: f64,
    },
    OneOf(&'static [&'static str]),
    /// A list of texts, or a single one.
    Texts,
    /// Words with spaces between in one text, or a list of at most `count_max` words.
    Words {
        count_max: usize,
    },
    /// An object of at most `count_max` texts.
    Pairs {
        count_max: usize,
    },
    /// A list of numbers from `min` to `max`, at most `count_max` of them, or a text of them with commas.
    Numbers {
        min: f64,
        max: f64,
        count_max: usize,
    },
}

impl KeyDoc {
    /// The same key, written as `shape` says; without this it is a text.
    #[must_use]
    pub const fn of(self, shape: Shape) -> Self {
        KeyDoc { shape, ..self }
    }

    /// The same key, which means something else where it is.
    #[must_use]
    pub const fn meaning(self, meaning: &'static str) -> Self {
        KeyDoc { meaning, ..self }
    }

    /// The same key, its value never shown.
    #[must_use]
    pub const fn secret(self) -> Self {
        KeyDoc { is_secret: true, ..self }
    }

    /// The default as a value, so that export can leave out what equals it. `None` when there is none, or none that holds always.
    pub fn default_value(&self) -> Option<Value> {
        match self.default {
            "none" => None,
            words if words.contains(' ') => None,
            text => Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))),
        }
    }
}

pub(super) const fn key(
    name: &'static str,
    default: &'static str,
    allowed: &'static str,
    meaning: &'static str,
) -> KeyDoc {
    KeyDoc { name, default, allowed, meaning, shape: Shape::Text, is_secret: false }
}

pub(super) const TRUE_FALSE: &str = "true or false";
const SECONDS: &str = "a number of seconds from 0 to 86400";
const DAY: Shape = Shape::Decimal { min: 0.0, max: 86_400.0 };

const BASIC_AUTH_KEYS: &[KeyDoc] = &[
    key("username", "none", "1 to 1024 characters, no colon and no control characters", "The user's name."),
    key(
        "password",
        "none",
        "at most 8192 characters, no control characters; it may be empty",
        "The password; a secret.",
    )
    .secret(),
];

const WSS_KEYS: &[KeyDoc] = &[
    key("username", "none", "1 to 1024 characters, no control characters", "The user's name."),
    key(
        "password",
        "none",
        "at most 8192 characters, no control characters; it may be empty",
        "The password; a secret.",
    )
    .secret(),
    key(
        "password_type",
        "text",
        "one of text, digest",
        "How a UsernameToken of WS-Security carries the password; a digest is made anew for every attempt.",
    )
    .of(Shape::OneOf(&["text", "digest"])),
];

const SIGNATURE_KEYS: &[KeyDoc] = &[key(
    "secret",
    "none",
    "`whsec_` and 24 to 64 bytes in base64",
    "What requests to a channel are signed with, as Standard Webhooks has it; a secret.",
)
.secret()];

const APIKEY_KEYS: &[KeyDoc] = &[
    key(
        "header",
        "X-API-Key",
        "the name of a header that is not written by Postrider itself",
        "The header that carries the key.",
    ),
    key("key", "none", "1 to 8192 visible ASCII characters and spaces", "The key; a secret.").secret(),
];

const BEARER_KEYS: &[KeyDoc] =
    &[key("token", "none", "1 to 8192 visible ASCII characters", "Sent as `Authorization: Bearer …`; a secret.")
        .secret()];

/// Scopes that a token is asked for, at most.
pub const SCOPES_MAX: usize = 100;
/// Further parameters of a token request, at most.
pub const EXTRA_PARAMS_MAX: usize = 32;

const OAUTH2_KEYS: &[KeyDoc] = &[
    key(
        "token_url",
        "none",
        "an http:// or https:// address such as `https://login.example.org/oauth2/token`",
        "Where tokens are fetched.",
    ),
    key("client_id", "none", "1 to 1024 characters, no control characters", "Who asks for the token."),
    key("client_secret", "none", "1 to 8192 characters, no control characters", "The client's secret.").secret(),
    key("scopes", "", "a text of scopes with spaces between, or a list of scopes", "What the token is asked for.")
        .of(Shape::Words { count_max: SCOPES_MAX }),
    key(
        "extra_params",
        "none",
        "an object of at most 32 texts, none of them grant_type, scope, client_id or client_secret",
        "Further parameters of the token request, such as `audience`.",
    )
    .of(Shape::Pairs { count_max: EXTRA_PARAMS_MAX }),
    key(
        "client_auth",
        "basic",
        "one of basic, body",
        "Whether id and secret go in the Authorization header or in the form.",
    )
    .of(Shape::OneOf(&["basic", "body"])),
    target_keys::TLS_VERIFY.meaning("Whether the token server's certificate is checked."),
    target_keys::VALIDATE_TLS,
    target_keys::TLS_CA_PATH,
    target_keys::TLS_CLIENT_CERT.meaning("The certificate, with its chain, to show to the token server."),
    target_keys::TLS_CLIENT_KEY,
];

const SMART_KEYS: &[KeyDoc] = &[
    key(
        "token_url",
        "none",
        "an http:// or https:// address such as `https://login.example.org/oauth2/token`",
        "Where tokens are fetched.",
    ),
    key("client_id", "none", "1 to 1024 characters, no control characters", "Who asks for the token."),
    key(
        "private_key",
        "none",
        "a private key in PEM form, at most 8192 characters: RSA of 2048 bits or more, or P-384 in PKCS #8",
        "What signs the assertion of who asks; a secret.",
    )
    .secret(),
    key(
        "key_id",
        "none",
        "1 to 1024 characters, no control characters",
        "The key's name in the client's JWKS, sent as kid.",
    ),
    key("algorithm", "RS384", "one of RS384, ES384", "How the assertion is signed.")
        .of(Shape::OneOf(&["RS384", "ES384"])),
    key(
        "scopes",
        "",
        "a text of scopes with spaces between, or a list of scopes",
        "What the token is asked for, such as `system/*.write`.",
    )
    .of(Shape::Words { count_max: SCOPES_MAX }),
    key(
        "extra_params",
        "none",
        "an object of at most 32 texts, none of them grant_type, scope, client_id or client_secret",
        "Further parameters of the token request, such as `audience`.",
    )
    .of(Shape::Pairs { count_max: EXTRA_PARAMS_MAX }),
    target_keys::TLS_VERIFY.meaning("Whether the token server's certificate is checked."),
    target_keys::VALIDATE_TLS,
    target_keys::TLS_CA_PATH,
    target_keys::TLS_CLIENT_CERT.meaning("The certificate, with its chain, to show to the token server."),
    target_keys::TLS_CLIENT_KEY,
];

/// The keys of a security definition.
pub const fn security_keys(kind: SecurityKind) -> &'static [KeyDoc] {
    match kind {
        SecurityKind::BasicAuth => BASIC_AUTH_KEYS,
        SecurityKind::ApiKey => APIKEY_KEYS,
        SecurityKind::Bearer => BEARER_KEYS,
        SecurityKind::OAuth2 => OAUTH2_KEYS,
        SecurityKind::Smart => SMART_KEYS,
        SecurityKind::Wss => WSS_KEYS,
        SecurityKind::WebhookSignature => SIGNATURE_KEYS,
    }
}

/// The delivery keys, the same on every outgoing connection.
pub const DELIVERY_KEYS: &[KeyDoc] = &[
    key("max_retries", "0", "a whole number from 0 to 1000", "Retries after the first attempt of a call or a round.").of(Shape::Whole { min: 0, max: 1000 }),
    key("retry_sleep_time", "2", SECONDS, "The first wait; more than 8 s waits 8 s.").of(DAY),
    key("retry_backoff_multiplier", "2", "a number from 0 to 100", "Each next wait is the previous one times this.").of(Shape::Decimal { min: 0.0, max: 100.0 }),
    key(
        "retry_backoff_threshold",
        "60",
        SECONDS,
        "All waits of a call or a round together, at most; 0 means no retry.",
    ).of(DAY),
    key(
        "use_queue",
        "false, or true with a ladder",
        TRUE_FALSE,
        "Whether a request that was not delivered waits in the connection's queue.",
    ).of(Shape::Flag),
    key(
        "use_dlq",
        "true",
        TRUE_FALSE,
        "Whether a request that a round could not deliver goes to the dead-letter queue.",
    ).of(Shape::Flag),
    key(
        "dlq_action",
        "keep",
        "one of keep, retry, forward, discard",
        "What happens to a dead letter after dlq_retry_interval.",
    ).of(Shape::OneOf(&["keep", "retry", "forward", "discard"])),
    key(
        "dlq_retries",
        "3",
        "a whole number from 0 to 1000000",
        "How often the action retry retries; those by hand do not count.",
    ).of(Shape::Whole { min: 0, max: 1_000_000 }),
    key(
        "dlq_retry_interval",
        "60",
        "a number of seconds from 0 to 2678400 (31 days)",
        "How long after its arrival in the dead-letter queue the action is taken.",
    ).of(Shape::Decimal { min: 0.0, max: 2_678_400.0 }),
    key(
        "dlq_forward_to",
        "",
        "the name of a topic: letters, digits, `_` and `-`, with dots between segments",
        "Where the action forward publishes; without one the request stays, with that reason.",
    ),
    key("dlq_keep_header", "true", TRUE_FALSE, "Whether a forwarded request carries the note of why it failed.").of(Shape::Flag),
    key(
        "expires_after",
        "none",
        "a number of seconds from 0.001 to 315360000 (ten years)",
        "A queued request older than this leaves the queue.",
    ).of(Shape::Decimal { min: 0.001, max: 315_360_000.0 }),
    key("ordered", "true, or false with a ladder", TRUE_FALSE, "Strictly first in, first out.").of(Shape::Flag),
    key(
        "concurrency",
        "1, or 5 without order",
        "a whole number from 1 to 1000",
        "Attempts at once in an unordered queue.",
    ).of(Shape::Whole { min: 1, max: 1000 }),
    key(
        "settle_ahead_max",
        "16",
        "a whole number from 0 to 1024",
        "How many answered but not yet stored successes an ordered queue may run ahead; after a crash they are sent again. 0 is strict.",
    ).of(Shape::Whole { min: 0, max: 1024 }),
    key(
        "retry_preset",
        "webhook, once another key makes a ladder",
        "one of webhook, forward, patient",
        "A ladder of fixed waits instead of rounds.",
    ).of(Shape::OneOf(&["webhook", "forward", "patient"])),
    key(
        "retry_delays",
        "those of the preset",
        "1 to 32 numbers of seconds, each from 1 to 2592000 (30 days), as a list or as text with commas",
        "The ladder's waits; the last one repeats.",
    ).of(Shape::Numbers { min: 1.0, max: 2_592_000.0, count_max: 32 }),
    key("max_attempts", "that of the preset", "a whole number from 1 to 20", "The ladder's attempts in all.").of(Shape::Whole { min: 1, max: 20 }),
    key(
        "retryable_statuses",
        "those of the preset",
        "a text of statuses and ranges with commas, such as `408,429,5xx,!501`",
        "Which statuses the ladder tries again.",
    ),
    key(
        "timeout_seconds",
        "that of the preset",
        "a whole number from 1 to 60",
        "A ladder's timeout; timeout says the same to the millisecond.",
    ).of(Shape::Whole { min: 1, max: 60 }),
    key(
        "jitter",
        "that of the preset",
        TRUE_FALSE,
        "Whether each of the ladder's waits is 50 % to 150 % of its value.",
    ).of(Shape::Flag),
    key(
        "retry_after",
        "that of the preset",
        TRUE_FALSE,
        "Whether a Retry-After on 429 and 503 makes the ladder wait longer, at most six hours.",
    ).of(Shape::Flag),
];
