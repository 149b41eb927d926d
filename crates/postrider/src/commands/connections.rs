//! `connections`, `channels`, `services`: what is configured with a queue. Settings are checked by the server, which names each field it refuses.

use postrider::{Client, Configured, Connection, PageQuery};
use serde_json::{Map, Value};

use super::{ping, reach, show};
use crate::args::{BodyArg, ConnectionsCommand, GlobalArgs, SettingsArgs, WsdlArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table, Tint};

/// The same for connections, channels and services.
pub async fn run(global: &GlobalArgs, what: Configured, command: ConnectionsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        ConnectionsCommand::List(page) => {
            let found = client.configured(what, &PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            if global.json {
                output::print_json(&found);
            } else {
                table(what, &found.data);
                show::say_more(found.next_cursor.as_deref());
            }
        }
        ConnectionsCommand::Show { name } => one(global, &client.configured_one(what, &name).await?),
        ConnectionsCommand::Create { kind, name, settings, wsdl } => {
            let mut written = settings_of(&settings)?;
            describe(&mut written, &wsdl)?;
            for (key, value) in [("type", kind), ("name", name)] {
                if let Some(value) = value {
                    written.insert(key.to_owned(), value.into());
                }
            }
            one(global, &client.create_configured(what, &written).await?);
        }
        ConnectionsCommand::Update { name, settings, wsdl, replace } => {
            let mut written = settings_of(&settings)?;
            describe(&mut written, &wsdl)?;
            let connection = if replace {
                client.replace_configured(what, &name, &written).await?
            } else {
                client.change_configured(what, &name, &written).await?
            };
            one(global, &connection);
        }
        ConnectionsCommand::Delete { name, force } => {
            client.delete_configured(what, &name, force).await?;
            if !global.json {
                output::print(&output::plain(&format!("{name}  deleted")));
            }
        }
        ConnectionsCommand::Pause { name } => one(global, &client.pause_configured(what, &name).await?),
        ConnectionsCommand::Ping { name, method } => {
            let reached = client.ping_connection(&name, method.as_deref()).await?;
            if global.json {
                output::print_json(&reached)
            } else {
                ping::show(&reached)
            }
            return Ok(if reached.is_reachable { Exit::Done } else { Exit::Failure });
        }
        ConnectionsCommand::Resume { name: Some(name), .. } => {
            one(global, &client.resume_configured(what, &name).await?)
        }
        ConnectionsCommand::Resume { name: None, .. } => resume_all(global, &client).await?,
    }
    Ok(Exit::Done)
}

/// All that is paused, by hand or by a restore: channels and services too, whatever was asked for, since a restore pauses them all.
async fn resume_all(global: &GlobalArgs, client: &Client) -> Result<(), Failed> {
    let mut resumed = Vec::new();
    for what in [Configured::Connections, Configured::Channels, Configured::Services] {
        let mut cursor = None;
        loop {
            let page = client.configured(what, &PageQuery { limit: Some(1000), cursor }).await?;
            for paused in page.data.iter().filter(|found| found.state.paused) {
                let typed = what != Configured::Services;
                let name = if typed { format!("{}:{}", paused.kind, paused.name) } else { paused.name.clone() };
                resumed.push(client.resume_configured(what, &name).await?);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
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

fn table(what: Configured, connections: &[Connection]) {
    let (title, keys, none): (_, &[&str], _) = match what {
        Configured::Connections => ("HOST", &["host", "address", "url"], "there are no connections"),
        Configured::Channels => ("ADDRESS", &["url_path", "address"], "there are no channels"),
        Configured::Services => ("ADDRESS", &["address"], "there are no services"),
    };
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        (if what == Configured::Services { "SOURCE" } else { "TYPE" }, Align::Left),
        (title, Align::Left),
        ("QUEUE", Align::Left),
        ("WAITING", Align::Right),
        ("DEAD", Align::Right),
        ("STATE", Align::Left),
    ]);
    for connection in connections {
        let queued = is_queued(what, connection);
        let (state, tint) = standing(connection);
        table.row(vec![
            Cell::new(&connection.name),
            Cell::new(connection.more.get("source").and_then(Value::as_str).unwrap_or(&connection.kind)),
            Cell::maybe(keys.iter().find_map(|key| connection.more.get(*key)?.as_str())),
            Cell::new(if queued { "on" } else { "off" }),
            connection.state.waiting.into(),
            Cell::from(connection.state.dead).tinted((connection.state.dead > 0).then_some(Tint::Bad)),
            Cell::new(state).tinted(tint),
        ]);
    }
    table.print(none);
}

/// A port's messages always wait in a queue, so its settings do not say so.
fn is_queued(what: Configured, connection: &Connection) -> bool {
    let is_port = what == Configured::Channels && connection.kind == "mllp";
    is_port || connection.more.get("use_queue") == Some(&Value::Bool(true))
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
    } else if more("listening") == Some(false) {
        ("not listening", Some(Tint::Bad))
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
    if !connection.kind.is_empty() {
        sheet.line("type", &connection.kind);
    }
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
    fn z41_a_port_shows_its_queue() {
        let of = |kind: &str, more: Value| {
            let more = more.as_object().unwrap().clone();
            is_queued(Configured::Channels, &Connection { kind: kind.to_owned(), more, ..Connection::default() })
        };
        assert!(of("mllp", json!({})) && of("rest", json!({"use_queue": true})) && !of("rest", json!({})));
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
