//! Users: made, changed and deleted by those who may, each change with its audit entry (P07).
//!
//! It must not know of cookies or pages.

use std::net::IpAddr;

use postrider_core::Secret;
use postrider_core::id::{ProjectId, UserId};
use postrider_core::person::{Role, check_password, user_name};
use postrider_store::{Change, NewUser, PasswordHash, TokenHash, User, UserChange};
use serde_json::{Value, json};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::engine::Engine;
use crate::refusal::Refusal;

/// A user to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPerson {
    pub name: String,
    pub role: Role,
    /// Matters for viewers.
    pub sees_bodies: bool,
    pub password: Secret,
}

/// What is to be otherwise; `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonChange {
    pub role: Option<Role>,
    pub sees_bodies: Option<bool>,
    pub password: Option<Secret>,
}

/// For the audit log.
pub(crate) fn actor_of(user: &User, address: Option<IpAddr>) -> Actor {
    Actor { id: user.id.to_string(), name: user.name.clone(), address }
}

impl Engine {
    /// By name; `None`: those of the installation.
    pub async fn users(&self, project: Option<ProjectId>) -> Result<Vec<User>, Refusal> {
        let mut users = self.shared.store.users().await?;
        users.retain(|user| user.project_id == project);
        Ok(users)
    }

    /// By id or by name.
    pub async fn user(&self, project: Option<ProjectId>, id_or_name: &str) -> Result<User, Refusal> {
        let id: Option<UserId> = id_or_name.parse().ok();
        let name = user_name(id_or_name).unwrap_or_default();
        let found = self.users(project).await?.into_iter().find(|user| Some(user.id) == id || user.name == name);
        found.ok_or_else(|| Refusal::NotFound { what: "user", name: id_or_name.to_owned() })
    }

    /// # Errors
    /// A name that is taken or no name, a password that is too short.
    pub async fn create_user(&self, project: Option<ProjectId>, new: NewPerson) -> Result<User, Refusal> {
        self.add_user(project, new, false).await
    }

    pub(crate) async fn add_user(
        &self,
        project: Option<ProjectId>,
        new: NewPerson,
        only_as_first: bool,
    ) -> Result<User, Refusal> {
        let shared = &self.shared;
        let name = user_name(&new.name);
        let password = check_password(new.password.expose(), name.as_deref().unwrap_or_default());
        let name = match (name, password) {
            (Ok(name), Ok(())) => name,
            (name, password) => {
                return Err(Refusal::Invalid(name.err().into_iter().chain(password.err()).collect()));
            }
        };
        let hash = self.hash(new.password).await?;
        let now = shared.now();
        let user = User {
            id: UserId::new(now, shared.dice.bits()),
            project_id: project,
            name,
            role: new.role,
            sees_bodies: new.sees_bodies,
            password: hash,
            version: 1,
            created_at: now,
            password_set_at: now,
            last_log_in_at: None,
        };
        let entry = shared.audit_entry(&self.actor, project, "user.create").about(user.id, &user.name);
        let change = Change::CreateUser(Box::new(NewUser { user: user.clone(), only_as_first }));
        shared.store.change(change, entry.with_after(shown(&user, false))).await?;
        Ok(user)
    }

    /// Ends the user's sessions: whoever is logged in with an old password or an old role logs in again.
    pub async fn change_user(&self, known: User, change: PersonChange) -> Result<User, Refusal> {
        self.set_user(known, change, None).await
    }

    pub(crate) async fn set_user(
        &self,
        known: User,
        change: PersonChange,
        keeps_session: Option<TokenHash>,
    ) -> Result<User, Refusal> {
        let shared = &self.shared;
        let mut user = User {
            role: change.role.unwrap_or(known.role),
            sees_bodies: change.sees_bodies.unwrap_or(known.sees_bodies),
            version: known.version.saturating_add(1),
            ..known.clone()
        };
        let has_password = change.password.is_some();
        if let Some(password) = change.password {
            check_password(password.expose(), &known.name).map_err(|error| Refusal::Invalid(vec![error]))?;
            (user.password, user.password_set_at) = (self.hash(password).await?, shared.now());
        }
        let entry = shared.audit_entry(&self.actor, known.project_id, "user.replace").about(known.id, &known.name);
        let entry = entry.with_before(shown(&known, false)).with_after(shown(&user, has_password));
        let change = UserChange { user: user.clone(), version: known.version, keeps_session };
        shared.store.change(Change::ReplaceUser(Box::new(change)), entry).await?;
        Ok(user)
    }

    /// With the user's sessions.
    pub async fn delete_user(&self, known: &User) -> Result<(), Refusal> {
        let entry = self.shared.audit_entry(&self.actor, known.project_id, "user.delete").about(known.id, &known.name);
        self.shared.store.change(Change::DeleteUser(known.id), entry.with_before(shown(known, false))).await?;
        Ok(())
    }

    async fn hash(&self, password: Secret) -> Result<PasswordHash, Refusal> {
        let made = self.shared.passwords.hash(password, &*self.shared.dice).await;
        made.map_err(|busy| Refusal::Conflict(format!("{busy}: try it again")))
    }
}

/// Without the password; only that there is a new one.
fn shown(user: &User, has_new_password: bool) -> Value {
    let mut shown = json!({"name": user.name, "role": user.role.as_str(), "seesBodies": user.sees_bodies});
    if has_new_password {
        shown["password"] = postrider_core::MASK.into();
        shown["passwordSetAt"] = json!(user.password_set_at);
    }
    shown
}
