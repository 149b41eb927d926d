//! `publish`: one request as with `send`, or a whole file of them with `--batch`, in groups that the server takes at once.
//!
//! A file is read as it is published; it must never be in memory as a whole.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use indicatif::{ProgressBar, ProgressStyle};
use postrider::{BatchResult, Client, ClientError, LineResult, Problem};

use super::{reach, send};
use crate::args::{BodyArg, GlobalArgs, PublishArgs};
use crate::exit::{Exit, Failed};
use crate::output;

/// Lines in one request: below the server's own limit, and often enough to see progress.
const GROUP_LINES_MAX: u64 = 1000;
const GROUP_BYTES_MAX: usize = 4 << 20;
/// A longer line is longer than any server takes by default.
const LINE_BYTES_MAX: u64 = 64 << 20;

pub async fn run(global: &GlobalArgs, args: PublishArgs) -> Result<Exit, Failed> {
    let Some(from) = &args.batch else { return send::run(global, args.one, send::How::Publish).await };
    let client = reach::client(global)?;
    let mut lines = Lines::open(from)?;
    let progress = progress(lines.bytes);
    let mut all = BatchResult::default();
    let ended = publish_all(&client, &args, &mut lines, &progress, global.json, &mut all).await;
    progress.finish_and_clear();
    if global.json {
        output::print_json(&all);
    } else {
        output::print(&format!("{} stored, {} refused", all.accepted, all.refused));
    }
    ended?;
    Ok(if all.refused == 0 { Exit::Done } else { Exit::Refused })
}

/// Group after group, until the end or until one is not taken to its end.
async fn publish_all(
    client: &Client,
    args: &PublishArgs,
    lines: &mut Lines,
    progress: &ProgressBar,
    keep_all: bool,
    all: &mut BatchResult,
) -> Result<(), Failed> {
    while let Some(group) = lines.group()? {
        let bytes = group.text.len() as u64;
        let key = args.idempotency_key.as_ref().map(|key| format!("{key}/{}", group.before + 1));
        let published = client.publish_batch(&args.one.connection, group.text, key.as_deref()).await;
        let result = published.map_err(|error| not_taken(error, group.before, group.lines))?;
        all.accepted += result.accepted;
        all.refused += result.refused;
        for line in result.results {
            let line = LineResult { line: group.before + line.line, ..line };
            if let Some(error) = &line.error
                && !keep_all
            {
                let allowed = error.allowed.as_deref().unwrap_or_default();
                progress
                    .suspend(|| output::remark(&format!("line {}: {} (allowed: {allowed})", line.line, error.message)));
            }
            if keep_all {
                all.results.push(line);
            }
        }
        progress.inc(bytes);
        progress.set_message(format!("{} stored, {} refused", all.accepted, all.refused));
        if let Some(problem) = result.stopped {
            return Err(stopped(*problem, group.before, group.lines));
        }
    }
    Ok(())
}

pub(super) fn not_taken(error: ClientError, before: u64, lines: u64) -> Failed {
    let unknown = matches!(error, ClientError::Unreachable { .. } | ClientError::Unreadable { .. });
    let mut failed = Failed::from(error);
    let (first, last) = (before + 1, before + lines);
    failed.message = if unknown {
        format!("{}; lines {first} to {last} may have been stored, no later one was", failed.message)
    } else {
        format!("{}; nothing from line {first} on was stored", failed.message)
    };
    failed
}

fn stopped(problem: Problem, before: u64, lines: u64) -> Failed {
    let mut failed = Failed::from(ClientError::Refused(Box::new(problem)));
    failed.message = format!("{}; nothing behind line {} was tried", failed.message, before + lines);
    failed
}

/// On standard error, and only where that is a terminal. `None`: nobody knows how much comes.
fn progress(bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:32} {bytes}/{total_bytes}  {msg}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes}  {msg}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Lines that are published in one request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Lines before it.
    pub before: u64,
    pub lines: u64,
    pub text: Vec<u8>,
}

pub(super) struct Lines {
    from: Box<dyn BufRead + Send>,
    name: String,
    bytes: Option<u64>,
    read: u64,
}

impl Lines {
    pub fn open(from: &BodyArg) -> Result<Self, Failed> {
        let BodyArg::File(path) = from else {
            let from = Box::new(BufReader::new(std::io::stdin()));
            return Ok(Lines { from, name: "standard input".to_owned(), bytes: None, read: 0 });
        };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
        let bytes = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        Ok(Lines { from: Box::new(BufReader::new(file)), name, bytes, read: 0 })
    }

    /// The next lines, empty ones included; `None` at the end.
    pub fn group(&mut self) -> Result<Option<Group>, Failed> {
        let mut group = Group { before: self.read, lines: 0, text: Vec::new() };
        while group.lines < GROUP_LINES_MAX && group.text.len() < GROUP_BYTES_MAX {
            let mut line = (&mut self.from).take(LINE_BYTES_MAX);
            let read = line.read_until(b'\n', &mut group.text).map_err(|error| unreadable(&self.name, &error))?;
            if read as u64 == LINE_BYTES_MAX && !group.text.ends_with(b"\n") {
                let message = format!(
                    "line {} is longer than {LINE_BYTES_MAX} bytes; nothing from line {} on was stored",
                    self.read + 1,
                    group.before + 1
                );
                return Err(Failed::new(Exit::Refused, message));
            }
            if read == 0 {
                break;
            }
            self.read += 1;
            group.lines += 1;
        }
        Ok((group.lines > 0).then_some(group))
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Failed {
    Failed::new(Exit::Failure, format!("{name} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: Vec<u8>) -> Lines {
        Lines { from: Box::new(std::io::Cursor::new(text)), name: "it".to_owned(), bytes: None, read: 0 }
    }

    #[test]
    fn a_file_goes_out_in_groups_that_keep_its_line_numbers() {
        let mut read = lines("{}\n".repeat(2500).into_bytes());
        let mut groups = Vec::new();
        while let Some(group) = read.group().unwrap() {
            groups.push((group.before, group.lines, group.text.len()));
        }
        assert_eq!(groups, [(0, 1000, 3000), (1000, 1000, 3000), (2000, 500, 1500)]);
        let mut large = lines(vec![b'x'; GROUP_BYTES_MAX].into_iter().chain(*b"\nlast").collect());
        assert_eq!(large.group().unwrap().map(|group| group.lines), Some(1));
        assert_eq!(large.group().unwrap(), Some(Group { before: 1, lines: 1, text: b"last".to_vec() }));
        assert_eq!(large.group().unwrap(), None);
        assert_eq!(lines(Vec::new()).group().unwrap(), None);
    }
}
