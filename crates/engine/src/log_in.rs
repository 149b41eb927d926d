//! Logging in and out, sessions, and the first owner of an installation (P07).
//!
//! A refusal says neither whether the name exists nor whether the password was near, and takes as long in every case. Of a session's token only
//! the hash is kept. It must not know of cookies or pages.

use std::net::IpAddr;
use std::sync::PoisonError;

use postrider_core::person::{PASSWORD_BYTES_MAX, Role, user_name};
use postrider_core::{Secret, SettingError, Wait};
use postrider_store::{Session, StoreError, TokenHash, User};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::dice::Dice;
use crate::engine::Engine;
use crate::keys::KeyRefused;
use crate::people::{NewPerson, PersonChange, actor_of};
use crate::refusal::Refusal;

/// The named value of the store with the link by which the first owner is made: the hash of its token, and until when it works.
const FIRST_LINK: &str = "first_owner_link";
/// `first_link_age_max`: it stands in logs, so it does not work for ever. The next start prints another.
const FIRST_LINK_AGE_MAX: Wait = Wait::from_secs(24 * 3600);

/// Why nobody was let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogInRefused {
    #[error("the name or the password is wrong")]
    Wrong,
    /// Too many tries: how long until the next one is looked at.
    #[error("too many tries: wait {} seconds", .0.as_millis().div_ceil(1000))]
    TooOften(Wait),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<StoreError> for LogInRefused {
    fn from(error: StoreError) -> Self {
        LogInRefused::Refused(error.into())
    }
}

/// Who has a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHolder {
    pub user: User,
    pub session: Session,
}

impl SessionHolder {
    pub fn actor(&self, address: Option<IpAddr>) -> Actor {
        actor_of(&self.user, address)
    }
}

fn hash_of(token: &str) -> TokenHash {
    TokenHash(Sha256::digest(token.as_bytes()).into())
}

/// 256 random bits.
fn new_token(dice: &dyn Dice) -> Secret {
    Secret::new(format!("{:032x}{:032x}", dice.bits(), dice.bits()))
}

impl Engine {
    /// Answers with the token of a new session.
    pub async fn log_in(
        &self,
        name: &str,
        password: Secret,
        address: Option<IpAddr>,
    ) -> Result<(Secret, User), LogInRefused> {
        let user = self.checked(name, password, address).await?;
        let shared = &self.shared;
        let token = new_token(&*shared.dice);
        let now = shared.now();
        let session = Session {
            token: hash_of(token.expose()),
            user_id: user.id,
            opened_at: now,
            seen_at: now,
            address: address.map(|address| address.to_string()),
        };
        let entry = shared.audit_entry(&actor_of(&user, address), user.project_id, "user.log_in");
        shared.store.open_session(session, user.version, entry.about(user.id, &user.name)).await?;
        Ok((token, user))
    }

    /// The user, if that is the password. A try is spent before anything is looked at.
    async fn checked(&self, name: &str, password: Secret, address: Option<IpAddr>) -> Result<User, LogInRefused> {
        let shared = &self.shared;
        let name = user_name(name).unwrap_or_default();
        let spent = {
            let mut throttle = shared.log_ins.lock().unwrap_or_else(PoisonError::into_inner);
            throttle.spend(&name, address, shared.now())
        };
        spent.map_err(LogInRefused::TooOften)?;
        let user = shared.store.user_by_name(&name).await?;
        let hash = user.as_ref().map(|user| user.password.clone());
        // A text of any length would be work for whoever sends it long.
        let password = if password.expose().len() > PASSWORD_BYTES_MAX { Secret::new("") } else { password };
        let fits = shared.passwords.fits(password, hash).await;
        match (fits.map_err(|_| LogInRefused::TooOften(Wait::from_secs(1)))?, user) {
            (true, Some(user)) => {
                shared.log_ins.lock().unwrap_or_else(PoisonError::into_inner).give_back(&name, address);
                Ok(user)
            }
            (_, user) => {
                self.note_log_in_refused(user.as_ref(), address);
                Err(LogInRefused::Wrong)
            }
        }
    }

    /// Counted, and written within a minute. What was typed as a name is not: people type passwords there.
    fn note_log_in_refused(&self, user: Option<&User>, address: Option<IpAddr>) {
        let actor = user.map_or_else(|| Actor::unknown(address), |user| actor_of(user, address));
        self.note_refused(KeyRefused::LogIn, &actor, user.and_then(|user| user.project_id));
    }

    /// Whose session this is, if it has not ended. `is_use`: somebody did something; a page that asks by itself keeps no session open.
    pub async fn session(&self, token: &str, is_use: bool) -> Result<Option<SessionHolder>, Refusal> {
        let shared = &self.shared;
        let hash = hash_of(token);
        let Some((session, user)) = shared.store.session(hash).await? else { return Ok(None) };
        let (now, limits) = (shared.now(), shared.options.sessions);
        if limits.is_over(session.opened_at, session.seen_at, now) {
            return Ok(None);
        }
        if is_use && limits.is_worth_noting(session.seen_at, now) {
            shared.store.note_session_used(hash, now).await?;
        }
        Ok(Some(SessionHolder { user, session }))
    }

    pub async fn log_out(&self, holder: &SessionHolder, address: Option<IpAddr>) -> Result<(), Refusal> {
        let user = &holder.user;
        let entry = self.shared.audit_entry(&holder.actor(address), user.project_id, "user.log_out");
        Ok(self.shared.store.end_session(holder.session.token, entry.about(user.id, &user.name)).await?)
    }

    /// Ends all other sessions of the user.
    ///
    /// # Errors
    /// The current password is wrong, which spends a try as a log-in does; or the new one may not be.
    pub async fn change_own_password(
        &self,
        holder: &SessionHolder,
        current: Secret,
        new: Secret,
        address: Option<IpAddr>,
    ) -> Result<(), LogInRefused> {
        let user = self.checked(&holder.user.name, current, address).await?;
        let change = PersonChange { password: Some(new), ..PersonChange::default() };
        self.set_user(user, change, Some(holder.session.token)).await?;
        Ok(())
    }

    /// The token of a new link by which the first owner is made; links from before end. `None` once there is any user.
    pub async fn first_link(&self) -> Result<Option<Secret>, Refusal> {
        let shared = &self.shared;
        if !shared.store.users().await?.is_empty() {
            return Ok(None);
        }
        let token = new_token(&*shared.dice);
        let ends_at = shared.now() + FIRST_LINK_AGE_MAX;
        let kept = format!("{} {}", text_of(&hash_of(token.expose())), ends_at.as_millis());
        shared.store.set_value(FIRST_LINK, Some(kept)).await?;
        Ok(Some(token))
    }

    /// Whether the link makes the first owner still.
    pub async fn is_first_link(&self, token: &str) -> Result<bool, Refusal> {
        let store = &self.shared.store;
        let Some(kept) = store.value(FIRST_LINK).await? else { return Ok(false) };
        let (known, ends_at) = kept.split_once(' ').unwrap_or_default();
        let fits: bool = known.as_bytes().ct_eq(text_of(&hash_of(token)).as_bytes()).into();
        let works = ends_at.parse().is_ok_and(|end: i64| self.shared.now().as_millis() < end);
        Ok(fits && works && store.users().await?.is_empty())
    }

    /// Makes the first owner of the installation. The link works once.
    pub async fn create_first_owner(
        &self,
        token: &str,
        name: String,
        password: Secret,
        address: Option<IpAddr>,
    ) -> Result<User, Refusal> {
        if !self.is_first_link(token).await? {
            let allowed = "the link that the server printed at its last start, as long as there is no user";
            return Err(Refusal::Invalid(vec![SettingError::new("token", postrider_core::MASK, allowed)]));
        }
        let actor = Actor { id: "first-link".to_owned(), name: "link of the first start".to_owned(), address };
        let new = NewPerson { name, role: Role::Owner, sees_bodies: true, password };
        let user = self.acting_as(std::sync::Arc::new(actor)).add_user(None, new, true).await?;
        // It opens nothing any more, now that there is a user; whether it is taken away changes nothing.
        let _ = self.shared.store.set_value(FIRST_LINK, None).await;
        Ok(user)
    }
}

fn text_of(hash: &TokenHash) -> String {
    hash.0.iter().map(|byte| format!("{byte:02x}")).collect()
}
