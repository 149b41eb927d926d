//! `Idempotency-Key` on requests (D15): scope, key and request are hashed, so that nothing a caller wrote is kept.

use http::HeaderMap;
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::{Timestamp, Wait};
use postrider_store::Idempotency;
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// How long a repeat is recognised.
const REMEMBERED: Wait = Wait::from_secs(24 * 3600);
pub const KEY_BYTES_MAX: usize = 255;

pub const HEADER: &str = "idempotency-key";
/// On the raw path, where `Idempotency-Key` is the caller's word to the remote system (D14).
pub const RAW_HEADER: &str = "x-postrider-idempotency-key";

/// The scope is project, method and path; the request is everything that was asked there. `None` without the header.
pub fn read(
    headers: &HeaderMap,
    project: ProjectId,
    path: &str,
    request: &[u8],
    now: Timestamp,
) -> Result<Option<Idempotency>, Problem> {
    read_named(HEADER, headers, ("POST", project, path), request, now)
}

/// The same from another header; the scope is project, method and path.
pub fn read_named(
    header: &'static str,
    headers: &HeaderMap,
    (method, project, path): (&str, ProjectId, &str),
    request: &[u8],
    now: Timestamp,
) -> Result<Option<Idempotency>, Problem> {
    let mut values = headers.get_all(header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.as_bytes();
    let usable = !key.is_empty() && key.len() <= KEY_BYTES_MAX && key.iter().all(|byte| (0x20..0x7f).contains(byte));
    if !usable || values.next().is_some() {
        let allowed = "one header with 1 to 255 printable ASCII characters";
        let shown = if header == HEADER { "Idempotency-Key" } else { "X-Postrider-Idempotency-Key" };
        return Err(Problem::bad_request(shown, format!("`{shown}` is not usable"), allowed));
    }
    Ok(Some(Idempotency {
        key_hash: hash(&[&project.as_u128().to_be_bytes(), method.as_bytes(), path.as_bytes(), key]),
        request_hash: hash(&[request]),
        ends_at: now + REMEMBERED,
    }))
}

/// The same by what the sender of a signed request has signed as its id: a request that somebody has captured and sends again is that very request,
/// whatever else they write beside it.
pub fn of_signed(channel: ConnectionId, id: &[u8], request: &[u8], now: Timestamp) -> Idempotency {
    Idempotency {
        key_hash: hash(&[b"signed", &channel.as_u128().to_be_bytes(), id]),
        request_hash: hash(&[request]),
        ends_at: now + REMEMBERED,
    }
}

/// Each part goes in with its length, so that no two lists of parts run into the same bytes.
fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(project: u128, path: &str, key: &str, body: &[u8]) -> Option<Idempotency> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_str(key).unwrap());
        read(&headers, ProjectId::from_u128(project), path, body, Timestamp::from_millis(0)).unwrap()
    }

    #[test]
    fn the_scope_is_project_and_path_and_the_request_is_its_own() {
        let first = of(1, "/a", "k", b"x").unwrap();
        assert_eq!(of(1, "/a", "k", b"x").as_ref(), Some(&first));
        assert_eq!(first.ends_at, Timestamp::from_millis(86_400_000));
        for other in [of(2, "/a", "k", b"x"), of(1, "/b", "k", b"x"), of(1, "/a", "l", b"x")] {
            assert_ne!(other.map(|other| other.key_hash), Some(first.key_hash));
        }
        let changed = of(1, "/a", "k", b"y").unwrap();
        assert_eq!(changed.key_hash, first.key_hash);
        assert_ne!(changed.request_hash, first.request_hash);
    }
}
