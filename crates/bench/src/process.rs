//! What Linux tells about processes and the machine: CPU time, memory, versions. It must not know what is measured with it.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// CPU time of a process since it began, all threads, in clock ticks of 10 ms mostly.
pub fn cpu(pid: u32) -> Result<Duration, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name in parentheses and may have spaces in it.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    let [user, system] = fields[..] else { return Err(Failure::new(format!("/proc/{pid}/stat cannot be read"))) };
    Ok(Duration::from_secs_f64((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// CPU time of all living threads of a process, in nanoseconds from the scheduler; for spans in which next to nothing happens.
pub fn cpu_of_threads(pid: u32) -> Result<Duration, Failure> {
    let mut nanos = 0u64;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// Resident memory in KiB.
pub fn resident_kib(pid: u32) -> Result<u64, Failure> {
    status(pid, "VmRSS")
}

/// The part of it that is no file's, in KiB.
pub fn resident_anonymous_kib(pid: u32) -> Result<u64, Failure> {
    status(pid, "RssAnon")
}

pub fn threads(pid: u32) -> Result<u64, Failure> {
    status(pid, "Threads")
}

/// Files, sockets and the like that a process has open.
pub fn open_files(pid: u32) -> Result<u64, Failure> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64)
}

fn status(pid: u32, name: &str) -> Result<u64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    field(&text, &format!("{name}:"))
        .and_then(|value| value.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Failure::new(format!("/proc/{pid}/status has no {name}")))
}

/// Lets this process and its children open as many files as they may.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Refused is no harm here: the row that needs many says so itself.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Files that may be open at once.
pub fn open_files_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_mib: u64,
    pub kernel: String,
}

impl Machine {
    pub fn read() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = read("/proc/meminfo");
        let memory_kib: u64 =
            field(&memory, "MemTotal:").and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        let cpuinfo = read("/proc/cpuinfo");
        let cpu = field(&cpuinfo, "model name").map_or("unknown", |value| value.trim_start_matches([':', ' ', '\t']));
        Machine {
            cpu: cpu.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_mib: memory_kib / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_time_and_memory() {
        let pid = std::process::id();
        assert!(cpu_of_threads(pid).unwrap() > Duration::ZERO);
        assert!(cpu(pid).is_ok());
        assert!(resident_kib(pid).unwrap() > 100);
        assert!(resident_anonymous_kib(pid).unwrap() > 10);
        assert!(threads(pid).unwrap() > 0 && open_files(pid).unwrap() > 2);
        assert!(Machine::read().cores > 0);
    }
}
