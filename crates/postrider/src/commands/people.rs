//! `users`: who may log in to the dashboard. A password is read from a file or standard input, or made up; it is shown only then, once.

use postrider::{User, UserChange, Whose};
use postrider_engine::SystemDice;

use super::access::of;
use super::reach;
use crate::args::{BodyArg, GlobalArgs, PasswordArg, UsersCommand};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table};

pub async fn run(global: &GlobalArgs, command: UsersCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        UsersCommand::List { whose } => {
            let found = client.users(of(whose)).await?;
            if global.json {
                output::print_json(&found);
            } else {
                table(&found.data);
            }
        }
        UsersCommand::Create { name, role, sees_bodies, password, whose } => {
            let (password, is_made_up) = password_of(password)?;
            let user = client.create_user(of(whose), &name, &role, sees_bodies, &password).await?;
            shown(global, &user, is_made_up.then_some(&password));
        }
        UsersCommand::SetRole { which, role, sees_bodies, whose } => {
            let change = UserChange { role: Some(role), sees_bodies, ..UserChange::default() };
            shown(global, &client.change_user(of(whose), &which, &change).await?, None);
        }
        UsersCommand::SetPassword { which, password, whose } => {
            let (password, is_made_up) = password_of(password)?;
            let change = UserChange { password: Some(password.clone()), ..UserChange::default() };
            let user = client.change_user(of(whose), &which, &change).await?;
            shown(global, &user, is_made_up.then_some(&password));
        }
        UsersCommand::Delete { which, whose } => delete(global, &client, of(whose), &which).await?,
    }
    Ok(Exit::Done)
}

async fn delete(global: &GlobalArgs, client: &postrider::Client, whose: Whose, which: &str) -> Result<(), Failed> {
    client.delete_user(whose, which).await?;
    if !global.json {
        output::print(&output::plain(&format!("{which}  deleted")));
    }
    Ok(())
}

/// The password, and whether it was made up here.
fn password_of(given: PasswordArg) -> Result<(String, bool), Failed> {
    match given.password {
        Some(from) => Ok((read(&from)?, false)),
        None => {
            let letters = format!("{:032x}", SystemDice::shared().bits());
            let groups: Vec<&str> = (0..6).filter_map(|at| letters.get(at * 5..at * 5 + 5)).collect();
            Ok((groups.join("-"), true))
        }
    }
}

/// A line end behind it is the editor's and not part of it.
fn read(from: &BodyArg) -> Result<String, Failed> {
    let bytes = reach::body(Some(from))?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Failed::new(Exit::Refused, "the password is no UTF-8 text".to_owned()))?;
    Ok(text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text)).to_owned())
}

/// A password alone on standard output, so that it can go straight into a file; what else there is to say is beside it.
fn shown(global: &GlobalArgs, user: &User, made_up: Option<&String>) {
    if global.json {
        let mut json = serde_json::to_value(user).unwrap_or_default();
        if let Some(password) = made_up {
            json["password"] = password.as_str().into();
        }
        return output::print_json(&json);
    }
    if let Some(password) = made_up {
        output::print(password);
        return output::remark(&output::plain(&format!(
            "{} ({}): the password, shown this once",
            user.name, user.role
        )));
    }
    let mut sheet = Sheet::default();
    sheet.line("name", &user.name);
    sheet.line("id", &user.id);
    sheet.line("role", &user.role);
    sheet.line("sees bodies", if user.sees_bodies { "yes" } else { "no" });
    sheet.print();
}

fn table(users: &[User]) {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("ID", Align::Left),
        ("ROLE", Align::Left),
        ("SEES BODIES", Align::Left),
        ("LAST LOG-IN (UTC)", Align::Left),
    ]);
    for user in users {
        table.row(vec![
            Cell::new(&user.name),
            Cell::new(&user.id),
            Cell::new(&user.role),
            Cell::new(if user.sees_bodies { "yes" } else { "no" }),
            Cell::maybe(user.last_log_in_at.as_deref().map(output::utc)),
        ]);
    }
    table.print("there are no users");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p07_a_password_is_read_from_a_file_or_made_up() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), " correct horse battery \r\n").unwrap();
        let given = PasswordArg { password: Some(BodyArg::File(file.path().to_owned())) };
        assert_eq!(password_of(given).unwrap(), (" correct horse battery ".to_owned(), false));
        let (one, is_made_up) = password_of(PasswordArg { password: None }).unwrap();
        let (other, _) = password_of(PasswordArg { password: None }).unwrap();
        assert!(is_made_up && one != other);
        postrider_core::person::check_password(&one, "ada").unwrap();
    }
}
