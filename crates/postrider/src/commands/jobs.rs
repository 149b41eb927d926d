//! `jobs`, and the jobs that `dlq`, `queue` and `deliveries` begin by filter.

use indicatif::{ProgressBar, ProgressStyle};
use postrider::{Client, DeliveryQuery, Job, JobAct, JobTarget, PageQuery};

use super::{reach, show};
use crate::args::{BulkArgs, GlobalArgs, JobsCommand};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table, Tint};

pub async fn run(global: &GlobalArgs, command: JobsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        JobsCommand::List(page) => {
            let found = client.jobs(&PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            if global.json {
                output::print_json(&found);
            } else {
                table(&found.data);
                show::say_more(found.next_cursor.as_deref());
            }
            Ok(Exit::Done)
        }
        JobsCommand::Show { id, wait } => {
            let job = client.job(&id).await?;
            if wait { follow(global, &client, &job).await } else { Ok(shown(global, &job)) }
        }
        JobsCommand::Pause { id } => Ok(shown(global, &client.pause_job(&id).await?)),
        JobsCommand::Resume { id } => Ok(shown(global, &client.resume_job(&id).await?)),
        JobsCommand::Cancel { id } => Ok(shown(global, &client.cancel_job(&id).await?)),
    }
}

/// By filter. `only`: the states that the command is about, whatever else is asked for; empty for any.
pub async fn begin(
    global: &GlobalArgs,
    client: &Client,
    act: JobAct,
    args: BulkArgs,
    only: &[&str],
) -> Result<Exit, Failed> {
    if args.is_empty() {
        return Err(Failed::usage("nothing is chosen: give ids, a filter such as --connection NAME, or --all"));
    }
    if !only.is_empty() && !args.status.is_empty() {
        return Err(Failed::usage(format!("this is about {} only: leave out --status", only.join(" and "))));
    }
    let (dry_run, wait) = (args.dry_run, args.wait);
    let statuses = if only.is_empty() { args.status } else { only.iter().map(|word| (*word).to_owned()).collect() };
    let asked = DeliveryQuery { connection: args.connection, statuses, ..show::filtered(args.filter) };
    let target = JobTarget::Filter(Box::new(asked));
    if dry_run {
        let found = client.count_for_job(&act, &target).await?;
        if global.json {
            output::print_json(&found);
        } else {
            output::print(&format!("{}{}", if found.complete { "" } else { "more than " }, found.matched));
        }
        return Ok(Exit::Done);
    }
    let job = client.begin_job(&act, &target).await?;
    if wait {
        return follow(global, client, &job).await;
    }
    if global.json {
        output::print_json(&job);
    } else {
        output::print(&format!("{}  {}", job.id, job.state));
        output::remark(&format!("it goes on by itself: postrider jobs show {} --wait", job.id));
    }
    Ok(Exit::Done)
}

/// Until its end. A job that somebody cancels meanwhile has failed.
async fn follow(global: &GlobalArgs, client: &Client, job: &Job) -> Result<Exit, Failed> {
    let bar = progress();
    let ended = client
        .wait_for_job(&job.id, |job| {
            if let Some(matched) = job.matched {
                bar.set_length(matched);
            }
            bar.set_position(job.done + job.skipped_total);
            bar.set_message(format!("{}, {} skipped", job.state.to_lowercase(), job.skipped_total));
        })
        .await;
    bar.finish_and_clear();
    let ended = ended?;
    shown(global, &ended);
    Ok(if ended.state == "DONE" { Exit::Done } else { Exit::Failure })
}

/// On standard error, and only where that is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template("{bar:32} {pos}/{len}  {per_sec}  {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn shown(global: &GlobalArgs, job: &Job) -> Exit {
    if global.json {
        output::print_json(job);
        return Exit::Done;
    }
    let mut sheet = Sheet::default();
    sheet.line("id", &job.id);
    sheet.line("act", &job.act);
    sheet.value("topic", job.more.get("topic"));
    sheet.line("state", &job.state);
    sheet.line("asked by", &job.who);
    sheet.value("filter", job.more.get("filter"));
    sheet.value("ids", job.more.get("requested"));
    sheet.maybe("about", job.matched.map(|count| count.to_string()));
    sheet.line("done", job.done);
    for (reason, count) in &job.skipped {
        sheet.line("skipped", format!("{count} {reason}"));
    }
    if job.outstanding > 0 {
        sheet.line("with queues", job.outstanding);
    }
    sheet.maybe("began", job.created_at.as_deref().map(output::local_beside));
    sheet.maybe("ended", job.ended_at.as_deref().map(output::local_beside));
    sheet.print();
    Exit::Done
}

fn table(jobs: &[Job]) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("ACT", Align::Left),
        ("STATE", Align::Left),
        ("ABOUT", Align::Right),
        ("DONE", Align::Right),
        ("SKIPPED", Align::Right),
        ("BEGAN (UTC)", Align::Left),
        ("ENDED (UTC)", Align::Left),
    ]);
    for job in jobs {
        let tint = match job.state.as_str() {
            "DONE" => Some(Tint::Good),
            "RUNNING" | "PAUSED" => Some(Tint::Waiting),
            _ => Some(Tint::Faint),
        };
        table.row(vec![
            Cell::new(&job.id),
            Cell::new(&job.act),
            Cell::new(&job.state).tinted(tint),
            Cell::maybe(job.matched.map(|count| count.to_string())),
            Cell::new(job.done.to_string()),
            Cell::new(job.skipped_total.to_string()),
            Cell::maybe(job.created_at.as_deref().map(output::utc)),
            Cell::maybe(job.ended_at.as_deref().map(output::utc)),
        ]);
    }
    table.print("there are no jobs");
}
