//! Who is logged in, known by a cookie that no script can read. Of a cookie only the hash is kept (P07).
//!
//! Users have sessions in the store, so they outlive a restart and hold on every server. Whoever logs in with a key of the API instead has one in
//! memory, which can do what the key can do, for as long as the key is valid, and ends with the process. It must not know of pages.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::response::Response;
use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use postrider_core::Secret;
use postrider_core::id::KeyId;
use postrider_core::{Timestamp, Wait};
use postrider_engine::{Dice, Refusal, SessionHolder};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::answer::with_cookie;
use super::board::Board;
use super::frame::Frame;
use super::theme::Theme;
use crate::auth::to_hex;
use crate::gate::{Caller, UserPass};

const COOKIE_NAME: &str = "postrider_session";
/// What the script sends when it fetches a page by itself; that keeps no session open.
pub const LIVE: &str = "x-postrider-live";
/// `key_session_idle_max`: a session of a key that nobody uses for so long ends.
const IDLE: Wait = Wait::from_secs(12 * 3600);
/// `key_sessions_max`: one more ends the one that was used least recently.
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
    /// `None`: it is a key's.
    pub user: Option<SessionHolder>,
    pub address: Option<IpAddr>,
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
pub async fn session_of(
    board: &Board,
    headers: &HeaderMap,
    address: Option<IpAddr>,
) -> Result<Option<Arc<Session>>, Refusal> {
    let Some(token) = cookie(headers, COOKIE_NAME) else { return Ok(None) };
    let id = hash(token);
    if let Some((who, csrf)) = board.sessions().seen(&id, board.now()) {
        let caller = match who {
            Who::Bootstrap => Some(Caller::bootstrap(address)),
            Who::Key(key) => board.engine().key_holder_of(key).map(|holder| Caller::of_key(holder, address)),
        };
        let session =
            caller.map(|caller| Session { id, name: caller.actor.name.clone(), caller, csrf, user: None, address });
        return Ok(session.map(Arc::new));
    }
    let is_use = !headers.contains_key(LIVE);
    let Some(holder) = board.engine().session(token, is_use).await? else { return Ok(None) };
    let project_name = match holder.user.project_id {
        None => None,
        Some(project) => board.engine().read().project(&project.to_string()).await?.map(|project| project.name),
    };
    let pass = UserPass { user: holder.user.clone(), project_name };
    let caller = Caller::of_user(pass, holder.actor(address));
    let name = holder.user.name.clone();
    Ok(Some(Arc::new(Session { id, caller, name, csrf: csrf_of(token), user: Some(holder), address })))
}

/// Follows from the session's token and tells nothing of it, so nothing more has to be kept.
fn csrf_of(token: &str) -> String {
    to_hex(&Sha256::digest(format!("postrider form {token}")))
}

/// Logs in with a key; answers with the `Set-Cookie`. `None`: nobody has this key.
pub fn log_in_with_key(board: &Board, key: &str, is_https: bool) -> Option<HeaderValue> {
    let who = match board.engine().key_holder(key.as_bytes()) {
        Some(holder) => Who::Key(holder.key.id),
        None if board.admin().opens(key.as_bytes()) => Who::Bootstrap,
        None => return None,
    };
    let token = board.sessions().begin(who, board.engine().clock_and_dice().1, board.now());
    cookie_of(&Secret::new(token), is_https)
}

/// The `Set-Cookie` of a session. It ends with the browser, and with the session at the latest.
pub fn cookie_of(token: &Secret, is_https: bool) -> Option<HeaderValue> {
    let secure = if is_https { "; Secure" } else { "" };
    let value = format!("{COOKIE_NAME}={}; Path=/ui; HttpOnly; SameSite=Strict{secure}", token.expose());
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
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

/// Whoever is not logged in: a cookie of their own all the same, so that the forms before a log-in have a token like all others.
pub struct Before {
    token: String,
    is_new: bool,
}

const BEFORE_NAME: &str = "postrider_before";

impl Before {
    /// The token that a form sent by whoever has these cookies must carry; `None`: no form of ours was ever shown there.
    pub fn is_csrf(headers: &HeaderMap, given: &str) -> bool {
        let wanted = cookie(headers, BEFORE_NAME).map(csrf_of);
        wanted.is_some_and(|wanted| wanted.as_bytes().ct_eq(given.as_bytes()).into())
    }

    pub fn frame(&self, title: &str, board: &Board, theme: Theme) -> Frame {
        let mut frame = Frame::bare(title, board, None, theme);
        frame.csrf = csrf_of(&self.token);
        frame
    }

    pub fn kept(&self, response: Response, is_https: bool) -> Response {
        if !self.is_new {
            return response;
        }
        let secure = if is_https { "; Secure" } else { "" };
        let value = format!("{BEFORE_NAME}={}; Path=/ui; HttpOnly; SameSite=Strict{secure}", self.token);
        match HeaderValue::from_str(&value) {
            Ok(value) => with_cookie(response, value),
            Err(_) => response,
        }
    }
}

impl FromRequestParts<Board> for Before {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, board: &Board) -> Result<Self, Self::Rejection> {
        let is_token = |text: &&str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let known = cookie(&parts.headers, BEFORE_NAME).filter(is_token).map(str::to_owned);
        let is_new = known.is_none();
        let token = known.unwrap_or_else(|| format!("{:032x}", board.engine().clock_and_dice().1.bits()));
        Ok(Before { token, is_new })
    }
}
