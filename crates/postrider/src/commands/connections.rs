//! `connections`: where requests go and how they are retried. Settings are checked by the server, which names each field it refuses.

use postrider::{Client, Connection, PageQuery};
use serde_json::{Map, Value};

use super::{ping, reach, show};
use crate::args::{BodyArg, ConnectionsCommand, GlobalArgs, SettingsArgs, WsdlArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table, Tint};

pub async fn run(global: &GlobalArgs, command: ConnectionsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        ConnectionsCommand::List(page) => {
            let found = client.connections(&PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            if global.json {
                output::print_json(&found);
            } else {
                table(&found.data);
                show::say_more(found.next_cursor.as_deref());
            }
        }
        ConnectionsCommand::Show { name } => one(global, &client.connection(&name).await?),
        ConnectionsCommand::Create { kind, name, settings, wsdl } => {
            let mut written = settings_of(&settings)?;
            describe(&mut written, &wsdl)?;
            for (key, value) in [("type", kind), ("name", name)] {
                if let Some(value) = value {
                    written.insert(key.to_owned(), value.into());
                }
            }
            one(global, &client.create_connection(&written).await?);
        }
        ConnectionsCommand::Update { name, settings, wsdl, replace } => {
            let mut written = settings_of(&settings)?;
            describe(&mut written, &wsdl)?;
            let connection = if replace {
                client.replace_connection(&name, &written).await?
            } else {
                client.change_connection(&name, &written).await?
            };
            one(global, &connection);
        }
        ConnectionsCommand::Delete { name, force } => {
            client.delete_connection(&name, force).await?;
            if !global.json {
                output::print(&output::plain(&format!("{name}  deleted")));
            }
        }
        ConnectionsCommand::Pause { name } => one(global, &client.pause_connection(&name).await?),
        ConnectionsCommand::Ping { name, method } => {
            let reached = client.ping_connection(&name, method.as_deref()).await?;
            if global.json {
                output::print_json(&reached)
            } else {
                ping::show(&reached)
            }
            return Ok(if reached.is_reachable { Exit::Done } else { Exit::Failure });
        }
        ConnectionsCommand::Resume { name: Some(name), .. } => one(global, &client.resume_connection(&name).await?),
        ConnectionsCommand::Resume { name: None, .. } => resume_all(global, &client).await?,
    }
    Ok(Exit::Done)
}

/// Those that are paused, by hand or by a restore.
async fn resume_all(global: &GlobalArgs, client: &Client) -> Result<(), Failed> {
    let (mut resumed, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.connections(&PageQuery { limit: Some(1000), cursor }).await?;
        for connection in page.data.iter().filter(|connection| connection.state.paused) {
            let name = format!("{}:{}", connection.kind, connection.name);
            resumed.push(client.resume_connection(&name).await?);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if global.json {
        output::print_json(&resumed);
    } else {
        output::print(&format!("{} resumed", resumed.len()));
    }
    Ok(())
}

/// The file's object, with the pairs over it.
pub(super) fn settings_of(args: &SettingsArgs) -> Result<Map<String, Value>, Failed> {
    let mut settings = match &args.file {
        None => Map::new(),
        Some(file) => {
            let bytes = reach::body(Some(file))?;
            serde_json::from_slice(&bytes)
                .map_err(|error| Failed::new(Exit::Refused, format!("the settings are no JSON object: {error}")))?
        }
    };
    for pair in &args.pairs {
        let (key, value) = pair
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| Failed::usage(format!("`{pair}` is no setting: write KEY=VALUE")))?;
        settings.insert(key.to_owned(), value_of(value));
    }
    Ok(settings)
}

/// Puts the WSDL and what it imports beside the settings, for the server to read.
fn describe(written: &mut Map<String, Value>, args: &WsdlArgs) -> Result<(), Failed> {
    let Some(file) = &args.wsdl else { return Ok(()) };
    let text = |file: &BodyArg| {
        let bytes = reach::body(Some(file))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Failed::new(Exit::Refused, "the WSDL is not UTF-8".to_owned()))
    };
    written.insert("wsdl".to_owned(), text(file)?.into());
    let imports = args.imports.iter().map(text).collect::<Result<Vec<String>, Failed>>()?;
    if !imports.is_empty() {
        written.insert("wsdl_imports".to_owned(), imports.into());
    }
    if let Some(port) = &args.port {
        written.insert("wsdl_port".to_owned(), port.clone().into());
    }
    Ok(())
}

/// `true`, `3`, `[1,2]` and the like are JSON, and all else is text: `host=http://a` needs no quotes.
fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn table(connections: &[Connection]) {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("TYPE", Align::Left),
        ("HOST", Align::Left),
        ("QUEUE", Align::Left),
        ("WAITING", Align::Right),
        ("DEAD", Align::Right),
        ("STATE", Align::Left),
    ]);
    for connection in connections {
        let queued = connection.more.get("use_queue") == Some(&Value::Bool(true));
        let (state, tint) = standing(connection);
        table.row(vec![
            Cell::new(&connection.name),
            Cell::new(&connection.kind),
            Cell::maybe(["host", "address", "url"].iter().find_map(|key| connection.more.get(*key)?.as_str())),
            Cell::new(if queued { "on" } else { "off" }),
            connection.state.waiting.into(),
            Cell::from(connection.state.dead).tinted((connection.state.dead > 0).then_some(Tint::Bad)),
            Cell::new(state).tinted(tint),
        ]);
    }
    table.print("there are no connections");
}

fn standing(connection: &Connection) -> (String, Option<Tint>) {
    if let Some(code) = connection.state.more.get("blocked").and_then(Value::as_str) {
        return (format!("blocked: {code}"), Some(Tint::Bad));
    }
    let (state, tint) = moving(connection);
    (state.to_owned(), tint)
}

fn moving(connection: &Connection) -> (&'static str, Option<Tint>) {
    let more = |name: &str| connection.state.more.get(name).and_then(Value::as_bool);
    if more("is_active") == Some(false) {
        ("not active", Some(Tint::Bad))
    } else if connection.state.paused {
        ("paused", Some(Tint::Waiting))
    } else if more("draining") == Some(true) {
        ("draining", Some(Tint::Waiting))
    } else {
        ("running", None)
    }
}

fn one(global: &GlobalArgs, connection: &Connection) {
    if global.json {
        return output::print_json(connection);
    }
    let mut sheet = Sheet::default();
    sheet.line("name", &connection.name);
    sheet.line("type", &connection.kind);
    sheet.line("state", standing(connection).0);
    sheet.line("waiting", connection.state.waiting);
    sheet.line("dead", connection.state.dead);
    for (key, value) in &connection.more {
        match (key.as_str(), value.as_str()) {
            ("warnings", _) => {
                for warning in value.as_array().into_iter().flatten() {
                    sheet.value("warning", Some(warning));
                }
            }
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
    use crate::args::BodyArg;
    use serde_json::json;

    #[test]
    fn pairs_are_json_where_they_are_and_win_over_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"host": "http://a", "max_retries": 1}"#).unwrap();
        let args = SettingsArgs {
            pairs: ["max_retries=3", "use_queue=true", "url_path=/a=b", "retry_delays=[1,2]", "x="]
                .map(str::to_owned)
                .to_vec(),
            file: Some(BodyArg::File(file.path().to_owned())),
        };
        let wanted = json!({"host": "http://a", "max_retries": 3, "use_queue": true, "url_path": "/a=b",
            "retry_delays": [1, 2], "x": ""});
        assert_eq!(Value::Object(settings_of(&args).unwrap()), wanted);
    }

    #[test]
    fn a_word_that_is_no_setting_is_usage_and_a_bad_file_is_refused() {
        let args = |pairs: &[&str], file| SettingsArgs { pairs: pairs.iter().map(ToString::to_string).collect(), file };
        assert_eq!(settings_of(&args(&["max_retries"], None)).unwrap_err().exit, Exit::Usage);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[]").unwrap();
        let bad = args(&[], Some(BodyArg::File(file.path().to_owned())));
        assert_eq!(settings_of(&bad).unwrap_err().exit, Exit::Refused);
    }
}
