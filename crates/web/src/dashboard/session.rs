//! Who is logged in: sessions in memory, known by a cookie that no script can read. They end with the process.
//!
//! For now a log-in is a key of the API, and a session can do what its key can do, for as long as the key is valid. Of a cookie only the hash is
//! kept. It must not know of pages.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use postrider_core::id::KeyId;
use postrider_core::{Timestamp, Wait};
use postrider_engine::Dice;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::board::Board;
use crate::gate::Caller;

const COOKIE_NAME: &str = "postrider_session";
/// `session_idle`: a session that nobody uses for so long ends.
const IDLE: Wait = Wait::from_secs(12 * 3600);
/// `sessions_max`: one more ends the one that was used least recently.
const SESSIONS_MAX: usize = 10_000;

type TokenHash = [u8; 32];

/// Somebody who is logged in, for one request.
#[derive(Clone, Debug)]
pub struct Session {
    /// Names the session in memory; it opens nothing.
    pub id: TokenHash,
    pub caller: Caller,
    /// How the page calls whoever is logged in.
    pub name: String,
    /// Every form carries it (`form::Posted` checks it).
    pub csrf: String,
}

impl Session {
    /// Compared in constant time.
    pub fn is_csrf(&self, given: &str) -> bool {
        self.csrf.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Bootstrap,
    Key(KeyId),
}

struct Entry {
    who: Who,
    csrf: String,
    used_at: Timestamp,
}

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<TokenHash, Entry>>);

impl Sessions {
    fn entries<T>(&self, act: impl FnOnce(&mut HashMap<TokenHash, Entry>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self, who: Who, dice: &dyn Dice, now: Timestamp) -> String {
        let token = format!("{:032x}{:032x}", dice.bits(), dice.bits());
        let csrf = format!("{:032x}", dice.bits());
        self.entries(|entries| {
            entries.retain(|_, entry| now.since(entry.used_at) < IDLE);
            if entries.len() >= SESSIONS_MAX
                && let Some(oldest) = entries.iter().min_by_key(|(_, entry)| entry.used_at).map(|(id, _)| *id)
            {
                entries.remove(&oldest);
            }
            entries.insert(hash(&token), Entry { who, csrf, used_at: now });
        });
        token
    }

    fn seen(&self, id: &TokenHash, now: Timestamp) -> Option<(Who, String)> {
        self.entries(|entries| {
            let entry = entries.get_mut(id)?;
            if now.since(entry.used_at) >= IDLE {
                entries.remove(id);
                return None;
            }
            entry.used_at = now;
            Some((entry.who, entry.csrf.clone()))
        })
    }

    pub fn end(&self, id: &TokenHash) {
        self.entries(|entries| entries.remove(id));
    }
}

/// Whoever the cookie of a request stands for.
pub fn session_of(board: &Board, headers: &HeaderMap, address: Option<IpAddr>) -> Option<Arc<Session>> {
    let id = hash(cookie(headers, COOKIE_NAME)?);
    let (who, csrf) = board.sessions().seen(&id, board.now())?;
    let caller = match who {
        Who::Bootstrap => Caller::bootstrap(address),
        Who::Key(key) => Caller::of_key(board.engine().key_holder_of(key)?, address),
    };
    Some(Arc::new(Session { id, name: caller.actor.name.clone(), caller, csrf }))
}

/// Logs in with a key; answers with the `Set-Cookie`. `None`: nobody has this key.
pub fn log_in(board: &Board, key: &str, is_https: bool) -> Option<HeaderValue> {
    let who = match board.engine().key_holder(key.as_bytes()) {
        Some(holder) => Who::Key(holder.key.id),
        None if board.admin().opens(key.as_bytes()) => Who::Bootstrap,
        None => return None,
    };
    let token = board.sessions().begin(who, board.engine().clock_and_dice().1, board.now());
    let secure = if is_https { "; Secure" } else { "" };
    let value = format!("{COOKIE_NAME}={token}; Path=/ui; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&value).ok()
}

/// The `Set-Cookie` that takes the cookie back.
pub fn forgotten() -> HeaderValue {
    HeaderValue::from_static("postrider_session=; Path=/ui; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// One cookie of a request.
pub fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(';'));
    all.filter_map(|pair| pair.trim().split_once('=')).find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}
