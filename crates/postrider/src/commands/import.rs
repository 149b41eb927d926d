//! `import`: shows what a file changes, asks on a terminal, and applies it, all of it or nothing.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::ProgressBar;
use postrider::{Client, ClientError, FieldProblem, ImportOptions, Imported, ImportedKey, ImportedObject};
use serde_json::Value;

use super::reach;
use crate::args::{BodyArg, GlobalArgs, ImportArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Tint};

pub async fn run(global: &GlobalArgs, args: ImportArgs) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    let name = match &args.file {
        BodyArg::StandardInput => "-".to_owned(),
        BodyArg::File(path) => path.display().to_string(),
    };
    let bytes = reach::body(Some(&args.file))?;
    let text = String::from_utf8(bytes.into())
        .map_err(|_| Failed::new(Exit::Refused, format!("{name} is no text in UTF-8")))?;
    // The variables are those of whoever imports; what is not set is told by the server, with its line.
    let names = postrider_config::environment_names(&text);
    let env = names.into_iter().filter_map(|name| std::env::var(&name).ok().map(|value| (name, value))).collect();
    let options = ImportOptions { dry_run: true, env, plan: None };
    let planned = import(&client, &text, &options, &name).await?;
    if args.dry_run {
        show(global, &planned, &name);
        return Ok(Exit::Done);
    }
    if !global.json {
        show(global, &planned, &name);
    }
    let is_nothing = planned.created.is_empty() && planned.changed.is_empty();
    if !is_nothing && !args.yes && std::io::stdin().is_terminal() && !agreed()? {
        output::remark("nothing was applied");
        return Ok(Exit::Failure);
    }
    let options = ImportOptions { dry_run: false, plan: Some(planned.plan), ..options };
    let applied = import(&client, &text, &options, &name).await?;
    if global.json {
        output::print_json(&applied);
    } else if !is_nothing {
        output::print("applied");
    }
    Ok(Exit::Done)
}

/// A refused file is told as compilers do: each error begins with file, line and column.
async fn import(client: &Client, text: &str, options: &ImportOptions, name: &str) -> Result<Imported, Failed> {
    let spinner = spinner(if options.dry_run { "looking at what changes" } else { "applying" });
    let imported = client.import(text, options).await;
    spinner.finish_and_clear();
    imported.map_err(|error| match error {
        ClientError::Refused(mut problem) if problem.errors.iter().any(|error| error.line.is_some()) => {
            let message = problem.to_string();
            problem.errors.iter_mut().for_each(|error| error.field = located(error, name));
            let failed = Failed::from(ClientError::Refused(problem));
            Failed { message, ..failed }
        }
        other => other.into(),
    })
}

/// On standard error, and only where that is a terminal: one answer comes, and a long file takes a while.
fn spinner(doing: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(doing);
    spinner.enable_steady_tick(Duration::from_millis(120));
    spinner
}

fn located(finding: &FieldProblem, name: &str) -> String {
    let (line, column) = (finding.line.unwrap_or(1), finding.column.unwrap_or(1));
    let path = if finding.field.is_empty() { String::new() } else { format!(": {}", finding.field) };
    format!("{name}:{line}:{column}{path}")
}

fn agreed() -> Result<bool, Failed> {
    let failed = |error: std::io::Error| Failed::new(Exit::Failure, format!("the terminal cannot be asked: {error}"));
    let mut terminal = std::io::stderr().lock();
    terminal.write_all(b"Apply this? [y/N] ").and_then(|()| terminal.flush()).map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn show(global: &GlobalArgs, planned: &Imported, name: &str) {
    if global.json {
        return output::print_json(planned);
    }
    for warning in &planned.warnings {
        output::remark(&format!("warning: {}: {}", located(warning, name), warning.message));
    }
    let coloured = output::stdout_is_coloured();
    let objects = planned.created.iter().map(|object| ('+', Tint::Good, object));
    for (sign, tint, object) in objects.chain(planned.changed.iter().map(|object| ('~', Tint::Waiting, object))) {
        output::print(&tint.paint(&output::plain(&heading(sign, object, &global.project)), coloured));
        for key in &object.keys {
            output::print(&output::plain(&key_line(sign, key)));
        }
    }
    let (created, changed, unchanged) = (planned.created.len(), planned.changed.len(), planned.unchanged.len());
    output::print(&format!("{created} created, {changed} changed, {unchanged} unchanged"));
}

fn heading(sign: char, object: &ImportedObject, project: &str) -> String {
    let project = object.project.as_deref().filter(|named| *named != project);
    let project = project.map(|named| format!(" in project {named}")).unwrap_or_default();
    format!("{sign} {} {}{project}", object.section, object.name)
}

fn key_line(sign: char, key: &ImportedKey) -> String {
    let shown = |value: &Value| match (value, &key.default) {
        (Value::Null, Some(default)) if default.is_empty() => "nothing (the default)".to_owned(),
        (Value::Null, Some(default)) => format!("{default} (the default)"),
        (Value::Null, None) => "nothing".to_owned(),
        (Value::String(text), _) if !text.is_empty() => text.clone(),
        (value, _) => value.to_string(),
    };
    if sign == '+' {
        return format!("    {}: {}", key.key, shown(&key.new));
    }
    format!("    {}: {} -> {}", key.key, shown(&key.old), shown(&key.new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn d18_a_difference_reads_as_old_and_new() {
        let line = |old: Value, new: Value, default: Option<&str>| {
            let default = default.map(str::to_owned);
            key_line('~', &ImportedKey { key: "k".into(), old, new, default })
        };
        assert_eq!(line(Value::Null, json!(4), Some("0")), "    k: 0 (the default) -> 4");
        assert_eq!(
            line(json!(true), Value::Null, Some("false, or true with a ladder")),
            "    k: true -> false, or true with a ladder (the default)"
        );
        assert_eq!(line(json!("a"), Value::Null, Some("")), "    k: a -> nothing (the default)");
        assert_eq!(line(json!("***"), json!("***"), None), "    k: *** -> ***");
        assert_eq!(line(json!([60]), json!(""), None), "    k: [60] -> \"\"");
    }
}
