//! Running other programs: to the end, for their output, with a time limit, or with their lines counted.
//!
//! It must not know which programs these are.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs to the end with the output shown. An error unless the exit status is 0.
pub fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    eprintln!("    $ {shown}");
    let status = command.status().map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` ended with {status}")) }
}

/// Runs to the end and returns what it wrote to standard output. An error unless the exit status is 0.
pub fn output(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    let output = command.output().map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("`{shown}` ended with {}: {why}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{shown}` did not write UTF-8"))
}

/// Whether it starts and ends with status 0 within `limit`; its output is thrown away.
pub fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else { return false };
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if started.elapsed() < limit => std::thread::sleep(Duration::from_millis(50)),
            _ => {
                // Ended already or not to be ended: either way there is no more to learn from it.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// Which of a child's streams `run_watching` reads; the other one is shown as it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Runs to the end, shows the output and hands each line of one stream to `watch`.
pub fn run_watching(command: &mut Command, stream: Stream, mut watch: impl FnMut(&str)) -> Result<(), String> {
    let shown = show(command);
    eprintln!("    $ {shown}");
    match stream {
        Stream::Stdout => command.stdout(Stdio::piped()),
        Stream::Stderr => command.stderr(Stdio::piped()),
    };
    let mut child = command.spawn().map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    let from_child: Box<dyn std::io::Read> = match stream {
        Stream::Stdout => Box::new(child.stdout.take().expect("stdout was asked for as a pipe")),
        Stream::Stderr => Box::new(child.stderr.take().expect("stderr was asked for as a pipe")),
    };
    let mut from_child = BufReader::new(from_child);
    let mut line = Vec::new();
    while from_child.read_until(b'\n', &mut line).map_err(|error| format!("reading `{shown}`: {error}"))? > 0 {
        // Whoever reads our output may have left; the tests go on all the same.
        let _ = match stream {
            Stream::Stdout => std::io::stdout().write_all(&line),
            Stream::Stderr => std::io::stderr().write_all(&line),
        };
        watch(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    let status = child.wait().map_err(|error| format!("waiting for `{shown}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` ended with {status}")) }
}

/// Where a program is on the search path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn show(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_or_is_not_there_is_an_error() {
        assert!(run(&mut Command::new("true")).is_ok());
        assert!(run(&mut Command::new("false")).is_err());
        assert!(run(&mut Command::new("no-such-program-at-all")).is_err());
        assert!(find("no-such-program-at-all").is_none());
    }

    #[test]
    fn a_program_over_its_limit_is_ended() {
        let started = Instant::now();
        assert!(!succeeds_within(Command::new("sleep").arg("600"), Duration::from_millis(10)));
        assert!(started.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn watching_sees_every_line_and_the_failure() {
        let mut lines = Vec::new();
        let mut script = Command::new("sh");
        script.args(["-c", "echo one; echo two; exit 3"]);
        assert!(run_watching(&mut script, Stream::Stdout, |line| lines.push(line.to_owned())).is_err());
        assert_eq!(lines, ["one", "two"]);
    }
}
