//! Keys that several kinds have in common, said once. It must not know which kind has which.

use super::keys::{KeyDoc, Shape, TRUE_FALSE, key};
use super::rest::POOL_SIZE_MAX;

const PEM_FILE: &str = "the path of a PEM file";

pub const TIMEOUT: KeyDoc = key(
    "timeout",
    "60, or the preset's with a ladder",
    "a number of seconds from 0.001 to 3600",
    "From connect to the status line.",
)
.of(Shape::Decimal { min: 0.001, max: 3600.0 });
pub const POOL_SIZE: KeyDoc =
    key("pool_size", "10", "a whole number from 1 to 1000", "Sockets kept open, and attempts at once, at most.")
        .of(Shape::Whole { min: 1, max: POOL_SIZE_MAX });
pub const TLS_VERIFY: KeyDoc =
    key("tls_verify", "true", TRUE_FALSE, "Whether the server's certificate is checked.").of(Shape::Flag);
pub const VALIDATE_TLS: KeyDoc =
    key("validate_tls", "true", TRUE_FALSE, "The newer name of tls_verify.").of(Shape::Flag);
pub const TLS_CA_PATH: KeyDoc = key("tls_ca_path", "", PEM_FILE, "Authorities to trust instead of the public ones.");
pub const TLS_CLIENT_CERT: KeyDoc = key(
    "tls_client_cert",
    "",
    PEM_FILE,
    "The certificate, with its chain, to show to a server that asks (mutual TLS).",
);
pub const TLS_CLIENT_KEY: KeyDoc = key("tls_client_key", "", PEM_FILE, "The key of tls_client_cert.");
pub const SECURITY: KeyDoc =
    key("security", "", "the name of a security definition of the project", "Whose credentials every attempt carries.");
pub const IS_ACTIVE: KeyDoc =
    key("is_active", "true", TRUE_FALSE, "false refuses new calls and holds the queue.").of(Shape::Flag);
