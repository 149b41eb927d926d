//! Of `users`, for a project and for the installation.

use postrider_core::person::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN, Role, USER_NAME_CHARS_MAX};
use serde_json::json;

use super::{CONFLICT, FULL, NOT_FOUND};
use crate::openapi::{Operation, Schema, Tag, always, optional, shapes};

fn role() -> Schema {
    Schema::words(Role::ALL.map(Role::as_str))
        .describe("An owner may do everything, a developer all but configuration, users and keys; a viewer looks.")
}

fn name() -> Schema {
    Schema::text().length(1, USER_NAME_CHARS_MAX).example("ada@example.org")
}

fn sees_bodies() -> Schema {
    Schema::flag().describe("Whether a viewer sees bodies, which are health data. All others do.")
}

fn password() -> Schema {
    Schema::text().length(PASSWORD_CHARS_MIN, PASSWORD_BYTES_MAX).example("correct horse battery")
}

fn user() -> Schema {
    Schema::object([
        always("id", Schema::id("usr_")),
        always("name", name()),
        always("role", role()),
        always("seesBodies", sees_bodies()),
        always("createdAt", Schema::time()),
        always("passwordSetAt", Schema::time()),
        always("lastLogInAt", shapes::time_or_null()),
    ])
    .named("User")
}

fn listing(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(Tag::Users, id, summary).lists("All of them, by name, on one page.", user())
}

fn creating(id: &'static str, summary: &'static str) -> Operation {
    let body = Schema::closed([
        always("name", name()),
        always("role", role()),
        optional("seesBodies", sees_bodies()),
        always("password", password()),
    ]);
    Operation::new(Tag::Users, id, summary)
        .details("The password is kept as its Argon2id hash. Names are unique in the whole installation; capitals do not matter.")
        .takes_such_as(body, json!({"name": "ada@example.org", "role": "developer", "password": "correct horse battery"}))
        .creates("The user.", user())
        .refuses([CONFLICT, FULL])
}

fn showing(id: &'static str) -> Operation {
    Operation::new(Tag::Users, id, "A user").gives("What is known, without the password.", user()).refuses([NOT_FOUND])
}

fn changing(id: &'static str) -> Operation {
    let body = Schema::closed([
        optional("role", role()),
        optional("seesBodies", sees_bodies()),
        optional("password", password()),
    ]);
    Operation::new(Tag::Users, id, "Change a user")
        .details("What is left out stays. The user's sessions end: whoever was logged in logs in again. The last owner of the installation stays one.")
        .takes_such_as(body, json!({"role": "viewer"}))
        .gives("The user as it is now.", user())
        .refuses([NOT_FOUND, CONFLICT])
}

fn deleting(id: &'static str) -> Operation {
    Operation::new(Tag::Users, id, "Delete a user")
        .details("With the sessions. The last owner of the installation stays.")
        .empties("The user is gone.")
        .refuses([NOT_FOUND, CONFLICT])
}

pub fn list() -> Operation {
    listing("listUsers", "The users of a project")
}

pub fn create() -> Operation {
    creating("createUser", "Make a user of a project")
}

pub fn one() -> Operation {
    showing("getUser")
}

pub fn change() -> Operation {
    changing("changeUser")
}

pub fn delete() -> Operation {
    deleting("deleteUser")
}

pub fn list_of_installation() -> Operation {
    listing("listInstallationUsers", "The users of the installation")
}

pub fn create_of_installation() -> Operation {
    creating("createInstallationUser", "Make a user of the installation, who sees every project")
}

pub fn one_of_installation() -> Operation {
    showing("getInstallationUser")
}

pub fn change_of_installation() -> Operation {
    changing("changeInstallationUser")
}

pub fn delete_of_installation() -> Operation {
    deleting("deleteInstallationUser")
}
