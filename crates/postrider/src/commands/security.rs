//! `security`: with which credentials requests go out. Settings are checked by the server; a secret is read from a file or standard input,
//! so that it stands in no list of processes, and is never shown.

use postrider::{PageQuery, SecurityDefinition};
use postrider_core::security::SecurityKind;
use serde_json::{Map, Value};

use super::connections::settings_of;
use super::{reach, show};
use crate::args::{BodyArg, GlobalArgs, SecurityCommand};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table, Tint};

pub async fn run(global: &GlobalArgs, command: SecurityCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        SecurityCommand::List(page) => {
            let found = client.security_definitions(&PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            if global.json {
                output::print_json(&found);
            } else {
                table(&found.data);
                show::say_more(found.next_cursor.as_deref());
            }
        }
        SecurityCommand::Show { name } => one(global, &client.security_definition(&name).await?),
        SecurityCommand::Create { kind, name, settings, secret } => {
            let mut written = settings_of(&settings)?;
            for (key, value) in [("type", kind), ("name", name)] {
                if let Some(value) = value {
                    written.insert(key.to_owned(), value.into());
                }
            }
            let kind = written.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
            put_secret(&mut written, &kind, secret.as_ref())?;
            one(global, &client.create_security_definition(&written).await?);
        }
        SecurityCommand::Update { name, settings, secret, replace } => {
            let mut written = settings_of(&settings)?;
            if secret.is_some() {
                let known = client.security_definition(&name).await?.kind;
                let kind = written.get("type").and_then(Value::as_str).unwrap_or(&known).to_owned();
                put_secret(&mut written, &kind, secret.as_ref())?;
            }
            let definition = if replace {
                client.replace_security_definition(&name, &written).await?
            } else {
                client.change_security_definition(&name, &written).await?
            };
            one(global, &definition);
        }
        SecurityCommand::Delete { name } => {
            client.delete_security_definition(&name).await?;
            if !global.json {
                output::print(&output::plain(&format!("{name}  deleted")));
            }
        }
    }
    Ok(Exit::Done)
}

/// The secret goes in under the key that its type has for it. A line end behind it is the editor's and not part of it.
fn put_secret(written: &mut Map<String, Value>, kind: &str, secret: Option<&BodyArg>) -> Result<(), Failed> {
    let Some(secret) = secret else { return Ok(()) };
    let kind = SecurityKind::parse(kind).ok_or_else(|| {
        Failed::usage("--secret needs a type: basic_auth, apikey, bearer, oauth2, smart or wss".to_owned())
    })?;
    let bytes = reach::body(Some(secret))?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Failed::new(Exit::Refused, "the secret is no UTF-8 text".to_owned()))?;
    let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
    written.insert(kind.secret_key().to_owned(), text.into());
    Ok(())
}

fn table(definitions: &[SecurityDefinition]) {
    let mut table =
        Table::new(&[("NAME", Align::Left), ("TYPE", Align::Left), ("SECRET", Align::Left), ("USED BY", Align::Left)]);
    for definition in definitions {
        let unreadable = definition.state.unreadable.is_some();
        table.row(vec![
            Cell::new(&definition.name),
            Cell::new(&definition.kind),
            Cell::new(if unreadable { "unreadable" } else { "set" }).tinted(unreadable.then_some(Tint::Bad)),
            Cell::new(definition.state.used_by.join(", ")),
        ]);
    }
    table.print("there are no security definitions");
}

fn one(global: &GlobalArgs, definition: &SecurityDefinition) {
    if global.json {
        return output::print_json(definition);
    }
    let mut sheet = Sheet::default();
    sheet.line("name", &definition.name);
    sheet.line("type", &definition.kind);
    let state = &definition.state;
    sheet.line(&state.secret, state.unreadable.as_deref().unwrap_or("set"));
    if !state.used_by.is_empty() {
        sheet.line("used by", state.used_by.join(", "));
    }
    for (key, value) in &definition.more {
        match (key.as_str(), value.as_str()) {
            ("createdAt", Some(time)) => sheet.line("created", output::local_beside(time)),
            ("updatedAt", Some(time)) => sheet.line("updated", output::local_beside(time)),
            _ => sheet.value(key, Some(value)),
        }
    }
    sheet.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_from_a_file_goes_in_under_the_key_of_its_type() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), " p w \r\n").unwrap();
        let secret = Some(BodyArg::File(file.path().to_owned()));
        for (kind, key) in
            [("basic_auth", "password"), ("apikey", "key"), ("bearer", "token"), ("oauth2", "client_secret")]
        {
            let mut written = Map::new();
            put_secret(&mut written, kind, secret.as_ref()).unwrap();
            assert_eq!(written.get(key).and_then(Value::as_str), Some(" p w "));
        }
        assert_eq!(put_secret(&mut Map::new(), "ntlm", secret.as_ref()).unwrap_err().exit, Exit::Usage);
        assert!(put_secret(&mut Map::new(), "ntlm", None).is_ok());
    }
}
