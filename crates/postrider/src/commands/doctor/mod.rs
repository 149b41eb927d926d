//! `doctor`: looks at everything that a server stands on, says what is wrong and what to do (D08, R09, D41).
//!
//! The data directory is looked at whether a server runs on it or not; a server that can be reached is asked as well. Nothing is changed. Each
//! file here looks at one part; none knows the others.

mod environment;
mod finding;
mod machine;
mod server;
mod store;
mod work;

use crate::args::GlobalArgs;
use crate::exit::{Exit, Failed};
use crate::output::{self, Tint};
use crate::serve::settings::Settings;
use finding::{Finding, Level};

pub async fn run(global: &GlobalArgs) -> Result<Exit, Failed> {
    let mut findings = environment::look(&|name| std::env::var(name).ok());
    // Without settings there is no key to open secrets with; what is wrong with them is told by then.
    let settings = Settings::from_env(false).ok();
    let local = store::look(&global.data, settings.as_ref(), &mut findings).await;
    findings.extend(machine::clock().await);
    findings.extend(machine::egress(settings.as_ref(), local.as_ref()).await);
    let remote = server::look(global, local.is_some(), &mut findings).await;
    if let Some(seen) = local.or(remote) {
        findings.extend(work::look(&seen));
    }
    show(global, &findings);
    let is_wrong = findings.iter().any(|finding| finding.level == Level::Wrong);
    Ok(if is_wrong { Exit::Failure } else { Exit::Done })
}

fn show(global: &GlobalArgs, findings: &[Finding]) {
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    if global.json {
        let is_ok = count(Level::Wrong) == 0;
        return output::print_json(&serde_json::json!({"ok": is_ok, "findings": findings}));
    }
    let coloured = output::stdout_is_coloured();
    for finding in findings {
        let (word, tint) = match finding.level {
            Level::Ok => ("ok   ", Tint::Good),
            Level::Note => ("note ", Tint::Waiting),
            Level::Wrong => ("WRONG", Tint::Bad),
        };
        let line = output::plain(&format!("{:<12} {}", finding.check, finding.detail));
        output::print(&format!("{}  {line}", tint.paint(word, coloured)));
        if let Some(action) = &finding.action {
            output::print(&format!("       {:<12} -> {}", "", output::plain(action)));
        }
    }
    output::print(&match (count(Level::Wrong), count(Level::Note)) {
        (0, 0) => "nothing is wrong".to_owned(),
        (0, notes) => format!("nothing is wrong; {notes} worth a look"),
        (wrong, notes) => format!("{wrong} wrong, {notes} worth a look"),
    });
}
