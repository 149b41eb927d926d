//! `projects`, `keys` and `audit`: who may do what, and who did.

use postrider::{ApiKey, AuditEntry, AuditQuery, PageQuery, Project, Whose};
use serde::Serialize;
use serde_json::Value;

use super::connections::settings_of;
use super::{reach, show};
use crate::args::{AuditCommand, GlobalArgs, KeysCommand, ProjectsCommand, WhoseArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table};

pub async fn projects(global: &GlobalArgs, command: ProjectsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    let project = match command {
        ProjectsCommand::List => {
            let found = client.projects().await?;
            if global.json {
                output::print_json(&found);
            } else {
                project_table(&found.data);
            }
            return Ok(Exit::Done);
        }
        ProjectsCommand::Show => client.project().await?,
        ProjectsCommand::Create { name, settings } => client.create_project(&name, &settings_of(&settings)?).await?,
        ProjectsCommand::Update { settings } => client.change_project(&settings_of(&settings)?).await?,
    };
    if global.json {
        output::print_json(&project);
        return Ok(Exit::Done);
    }
    let mut sheet = Sheet::default();
    sheet.line("name", &project.name);
    sheet.line("id", &project.id);
    sheet.maybe("owner", project.owner_email.as_ref());
    sheet.line("entitled", project.entitled);
    sheet.value("rate limit a second", project.more.get("rateLimitPerSecond"));
    sheet.value("concurrency", project.more.get("concurrency"));
    for (label, key, unit) in ALERTS {
        let threshold = project.more.get(key).and_then(Value::as_u64);
        let said = |threshold| if threshold == 0 { "never".to_owned() } else { format!("at {threshold}{unit}") };
        sheet.maybe(label, threshold.map(said));
    }
    sheet.print();
    Ok(Exit::Done)
}

/// When somebody is told: what of, the setting, its unit.
const ALERTS: [(&str, &str, &str); 5] = [
    ("alert, head blocked", "alertHeadBlockedMinutes", " min"),
    ("alert, oldest waiting", "alertOldestWaitingMinutes", " min"),
    ("alert, dead letters", "alertDeadLetters", ""),
    ("alert, dead letters in 10 min", "alertDeadLettersGrowth", ""),
    ("alert, endpoint failing", "alertEndpointFailingMinutes", " min"),
];

fn project_table(projects: &[Project]) {
    let mut table = Table::new(&[("NAME", Align::Left), ("ID", Align::Left), ("OWNER", Align::Left)]);
    for project in projects {
        let owner = Cell::maybe(project.owner_email.as_ref());
        table.row(vec![Cell::new(&project.name), Cell::new(&project.id), owner]);
    }
    table.print("there are no projects");
}

pub async fn keys(global: &GlobalArgs, command: KeysCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        KeysCommand::List { whose } => {
            let found = client.api_keys(of(whose)).await?;
            if global.json {
                output::print_json(&found);
            } else {
                key_table(&found.data);
            }
        }
        KeysCommand::Create { name, scopes, expires_at, whose } => {
            let made = client.create_api_key(of(whose), &name, &scopes, expires_at.as_deref()).await?;
            shown_once(global, &made);
        }
        KeysCommand::Rotate { which, overlap_seconds, whose } => {
            shown_once(global, &client.rotate_api_key(of(whose), &which, overlap_seconds).await?);
        }
        KeysCommand::Revoke { which, whose } => {
            client.revoke_api_key(of(whose), &which).await?;
            if !global.json {
                output::print(&output::plain(&format!("{which}  revoked")));
            }
        }
    }
    Ok(Exit::Done)
}

pub(super) fn of(whose: WhoseArgs) -> Whose {
    if whose.installation { Whose::Installation } else { Whose::Project }
}

/// The key alone on standard output, so that it can go straight into a file; what else there is to say is beside it.
fn shown_once(global: &GlobalArgs, made: &ApiKey) {
    if global.json {
        output::print_json(made);
        return;
    }
    output::print(made.key.as_deref().unwrap_or_default());
    output::remark(&output::plain(&format!("{} ({}): shown this once", made.name, made.id)));
    if let Some(end) = &made.former_works_until {
        output::remark(&format!("the former key works until {}", output::utc(end)));
    }
}

fn key_table(keys: &[ApiKey]) {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("ID", Align::Left),
        ("SCOPES", Align::Left),
        ("KEY", Align::Left),
        ("LAST USED (UTC)", Align::Left),
        ("EXPIRES (UTC)", Align::Left),
    ]);
    for key in keys {
        table.row(vec![
            Cell::new(&key.name),
            Cell::new(&key.id),
            Cell::new(key.scopes.join(", ")),
            Cell::new(&key.hint),
            Cell::maybe(key.last_used_at.as_deref().map(output::utc)),
            Cell::maybe(key.expires_at.as_deref().map(output::utc)),
        ]);
    }
    table.print("there are no keys");
}

pub async fn audit(global: &GlobalArgs, command: AuditCommand) -> Result<Exit, Failed> {
    let AuditCommand::List { page, actor, action, object, from, before, whose } = command;
    let page = PageQuery { limit: page.limit, cursor: page.cursor };
    let asked = AuditQuery { actor, action, object, from, before, page };
    let found = reach::client(global)?.audit(of(whose), &asked).await?;
    print_or(global, &found, || {
        audit_table(&found.data);
        show::say_more(found.next_cursor.as_deref());
    });
    Ok(Exit::Done)
}

fn print_or(global: &GlobalArgs, answer: &impl Serialize, otherwise: impl FnOnce()) {
    if global.json { output::print_json(answer) } else { otherwise() }
}

fn audit_table(entries: &[AuditEntry]) {
    let mut table = Table::new(&[
        ("AT (UTC)", Align::Left),
        ("WHO", Align::Left),
        ("FROM", Align::Left),
        ("ACTION", Align::Left),
        ("OBJECT", Align::Left),
        ("TIMES", Align::Right),
    ]);
    for entry in entries {
        let times = entry.more.get("times").and_then(serde_json::Value::as_u64).unwrap_or(1);
        table.row(vec![
            Cell::new(output::utc(&entry.at)),
            Cell::new(&entry.actor.name),
            Cell::maybe(entry.actor.address.as_ref()),
            Cell::new(&entry.action),
            Cell::maybe(entry.object_name.as_ref().or(entry.object.as_ref())),
            Cell::from(times),
        ]);
    }
    table.print("there are no entries");
}
