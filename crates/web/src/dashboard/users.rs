//! Who may log in: the users of the installation, and those of a project. It must not know how a user is kept.

use askama::Template;
use axum::response::Response;
use http::Method;
use postrider_core::Timestamp;
use postrider_core::person::{PASSWORD_CHARS_MIN, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fault::Fault;
use super::form::Form;
use super::frame::Frame;
use super::parts::Moment;
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    id: String,
    name: String,
    role: String,
    sees_bodies: bool,
    last_log_in_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Users {
    data: Vec<User>,
}

/// What a role means, in a sentence.
fn meaning(role: Role) -> &'static str {
    match role {
        Role::Owner => "everything, users and keys included",
        Role::Developer => "sees bodies, sends, edits, retries, discards, pauses",
        Role::Viewer => "sees how things stand, and bodies only where you allow it",
    }
}

#[derive(Template)]
#[template(path = "users.html")]
struct UsersPage<'a> {
    frame: Frame,
    place: Place<'a>,
    users: Vec<User>,
    chars_min: usize,
}

#[derive(Template)]
#[template(path = "user.html")]
struct UserPage<'a> {
    frame: Frame,
    place: Place<'a>,
    user: User,
    chars_min: usize,
}

/// Whose users a page is about: the project in its path, or the installation.
struct Place<'a> {
    visit: &'a Visit,
}

impl Place<'_> {
    fn is_project(&self) -> bool {
        !self.visit.project().is_empty()
    }

    fn api(&self, rest: &str) -> String {
        if self.is_project() { self.visit.of_project(format!("/users{rest}")) } else { format!("/api/v1/users{rest}") }
    }

    fn page(&self, rest: &str) -> String {
        if self.is_project() { self.visit.page_of_project(format!("/users{rest}")) } else { format!("/ui/users{rest}") }
    }

    fn of_user(&self, rest: &str) -> String {
        self.page(&format!("/{}{rest}", segment(self.visit.segments.get("user"))))
    }

    fn roles(&self) -> [(Role, &'static str); 3] {
        Role::ALL.map(|role| (role, meaning(role)))
    }
}

pub async fn list(visit: Visit) -> Result<Response, Fault> {
    let place = Place { visit: &visit };
    let users: Users = visit.api.get(&place.api("")).await?;
    let frame = visit.frame("Users", "users").await?;
    show(&UsersPage { frame, place, users: users.data, chars_min: PASSWORD_CHARS_MIN })
}

pub async fn create(visit: Visit, form: Form) -> Response {
    let place = Place { visit: &visit };
    let body = json!({
        "name": form.get("name"), "role": form.get("role"), "seesBodies": form.is_on("sees_bodies"), "password": form.get("password"),
    });
    match visit.api.post::<User>(&place.api(""), &body).await {
        Ok(user) => visit.done(&place.page(""), format!("{} may log in.", user.name)),
        Err(refused) => visit.refused(&place.page(""), refused),
    }
}

pub async fn one(visit: Visit) -> Result<Response, Fault> {
    let place = Place { visit: &visit };
    let user: User = visit.api.get(&place.api(&format!("/{}", segment(visit.segments.get("user"))))).await?;
    let frame = visit.frame(&user.name, "users").await?;
    show(&UserPage { frame, place, user, chars_min: PASSWORD_CHARS_MIN })
}

pub async fn change(visit: Visit, form: Form) -> Response {
    let place = Place { visit: &visit };
    let mut body = json!({"role": form.get("role"), "seesBodies": form.is_on("sees_bodies")});
    if let Some(password) = form.get("password").filter(|password| !password.is_empty()) {
        body["password"] = password.into();
    }
    let path = place.api(&format!("/{}", segment(visit.segments.get("user"))));
    match visit.api.ask::<User>(Method::PATCH, &path, Some(&body)).await {
        Ok(user) => visit.done(&place.page(""), format!("{} is changed and logs in anew.", user.name)),
        Err(refused) => visit.refused(&place.of_user(""), refused),
    }
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let place = Place { visit: &visit };
    let user: User = visit.api.get(&place.api(&format!("/{}", segment(visit.segments.get("user"))))).await?;
    let title = format!("Delete {}?", user.name);
    let facts = [
        "The user cannot log in any more, and every session of theirs ends at once.".to_owned(),
        "What they did stays in the audit log under their name.".to_owned(),
    ];
    let frame = visit.frame("Delete a user", "users").await?;
    let (action, back) = (place.of_user("/delete"), place.page(""));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Delete the user", back: &back },
    )
}

pub async fn delete(visit: Visit) -> Response {
    let place = Place { visit: &visit };
    let path = place.api(&format!("/{}", segment(visit.segments.get("user"))));
    match visit.api.ask::<Value>(Method::DELETE, &path, None).await {
        Ok(_) => visit.done(&place.page(""), "The user is deleted."),
        Err(refused) => visit.refused(&place.page(""), refused),
    }
}
