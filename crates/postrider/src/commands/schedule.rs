//! `schedule`: a dry run of a policy (P08): each attempt with its wait and the time since the first one.
//!
//! A connection's policy is asked from its server; presets and settings tried out are worked out here, by the same rules.

use postrider::{PlannedAttempt, Schedule};
use postrider_core::policy::DeliveryPolicy;
use postrider_core::schedule::preview::schedule_preview;
use postrider_core::schedule::{self, Backoff, Jitter, Ladder};
use postrider_core::{SettingError, Wait};

use super::reach;
use crate::args::{GlobalArgs, Preset, ScheduleArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Table};

pub async fn run(global: &GlobalArgs, args: ScheduleArgs) -> Result<Exit, Failed> {
    let planned = match &args.connection {
        Some(connection) => reach::client(global)?.schedule(connection).await?,
        None => offline(&args)?,
    };
    if global.json {
        output::print_json(&planned);
    } else {
        show(&planned);
    }
    Ok(Exit::Done)
}

fn offline(args: &ScheduleArgs) -> Result<Schedule, Failed> {
    let policy = match (args.preset, args.max_retries) {
        (Some(Preset::Webhook), _) => DeliveryPolicy::webhook(),
        (Some(Preset::Forward), _) => DeliveryPolicy::forward(),
        (Some(Preset::Patient), _) => DeliveryPolicy::patient(),
        (None, Some(max_retries)) => {
            let (first, multiplier) = (args.retry_sleep_time, args.retry_backoff_multiplier);
            let backoff =
                Backoff::new(max_retries, first, multiplier, args.retry_backoff_threshold).map_err(refused)?;
            DeliveryPolicy::rounds(backoff)
        }
        (None, None) => DeliveryPolicy { schedule: ladder(args)?, age_cap: None, ..DeliveryPolicy::webhook() },
    };
    Ok(planned(&policy))
}

fn ladder(args: &ScheduleArgs) -> Result<schedule::Schedule, Failed> {
    let mut delays = Vec::new();
    for given in &args.retry_delays {
        if !(given.is_finite() && *given >= 0.0) {
            return Err(refused(SettingError::new("retry_delays", given, "numbers of seconds from 1 to 2592000")));
        }
        delays.push(Wait::from_millis((given * 1000.0).round() as u64));
    }
    let attempts = args.max_attempts.unwrap_or_else(|| u32::try_from(delays.len() + 1).unwrap_or(u32::MAX));
    let jitter = if args.jitter { Jitter::HalfToOneAndAHalf } else { Jitter::None };
    Ladder::new(attempts, delays, jitter).map(schedule::Schedule::Ladder).map_err(refused)
}

fn refused(error: SettingError) -> Failed {
    Failed::new(Exit::Refused, error.to_string())
}

fn planned(policy: &DeliveryPolicy) -> Schedule {
    let data = schedule_preview(policy).into_iter().map(|planned| PlannedAttempt {
        attempt: planned.attempt,
        wait_seconds: planned.wait.as_secs_f64(),
        wait_min_seconds: planned.wait_min.as_secs_f64(),
        wait_max_seconds: planned.wait_max.as_secs_f64(),
        after_first_seconds: planned.after_first.as_secs_f64(),
        earliest_seconds: planned.earliest.as_secs_f64(),
        latest_seconds: planned.latest.as_secs_f64(),
    });
    Schedule {
        schedule: match policy.schedule {
            schedule::Schedule::Backoff(_) => "backoff".to_owned(),
            schedule::Schedule::Ladder(_) => "ladder".to_owned(),
        },
        timeout_seconds: policy.timeout.as_secs_f64(),
        age_cap_seconds: policy.age_cap.map(Wait::as_secs_f64),
        data: data.collect(),
    }
}

fn show(planned: &Schedule) {
    let spread = planned.data.iter().any(|attempt| attempt.wait_min_seconds != attempt.wait_max_seconds);
    let mut columns = vec![("ATTEMPT", Align::Right), ("WAIT", Align::Right), ("AFTER THE FIRST", Align::Right)];
    if spread {
        columns.extend([("EARLIEST", Align::Right), ("LATEST", Align::Right)]);
    }
    let mut table = Table::new(&columns);
    for attempt in &planned.data {
        let mut row = vec![
            Cell::from(attempt.attempt),
            output::seconds(attempt.wait_seconds).into(),
            output::seconds(attempt.after_first_seconds).into(),
        ];
        if spread {
            row.push(output::seconds(attempt.earliest_seconds).into());
            row.push(output::seconds(attempt.latest_seconds).into());
        }
        table.row(row);
    }
    table.print("no attempt would be made");
    let last = planned.data.last().map_or(0.0, |attempt| attempt.after_first_seconds);
    let times = match planned.data.len() {
        1 => "sent once, not retried".to_owned(),
        n => format!("sent {n} times within {}", output::seconds(last)),
    };
    output::print(&format!(
        "{times}, if every attempt fails; an attempt itself may take up to {}",
        output::seconds(planned.timeout_seconds)
    ));
}
