//! A worker gives up what it does not need, before it reads its first program. It must not know what is run.

use std::io;

use rustix::param::page_size;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Address space of a process whose own size cannot be read.
const ASSUMED_BYTES: u64 = 512 << 20;

/// No file may be opened or written, no process started, no core dumped, and no more memory taken than `memory_bytes` beyond what there is.
///
/// # Errors
/// A limit that the system does not take: then nothing may be run.
pub fn confine(memory_bytes: u64) -> io::Result<()> {
    let size = occupied().unwrap_or(ASSUMED_BYTES);
    set(Resource::As, size.saturating_add(memory_bytes))?;
    for resource in [Resource::Core, Resource::Fsize, Resource::Nofile, Resource::Nproc] {
        set(resource, 0)?;
    }
    Ok(())
}

/// The process is ended by the system once it has used `seconds` of CPU time more than by now.
///
/// # Errors
/// As `confine`.
pub fn grant_cpu(seconds: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used = u64::try_from(used.tv_sec).unwrap_or(0) + u64::from(used.tv_nsec > 0);
    let maximum = getrlimit(Resource::Cpu).maximum;
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(used + seconds), maximum })?)
}

fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let limit = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
    Ok(setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

/// The address space of this process, in bytes (proc(5), `statm`).
fn occupied() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    pages.checked_mul(u64::try_from(page_size()).ok()?)
}
