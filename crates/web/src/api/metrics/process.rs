//! What the operating system says of this process, under the names that every Prometheus client uses. Where there is no `/proc` nothing is said.
//!
//! It must not know of deliveries.

use std::fs;

/// As far as it can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessFigures {
    pub resident_bytes: Option<u64>,
    pub open_files: Option<u64>,
    /// Sockets among them, in and out.
    pub open_sockets: Option<u64>,
    pub open_files_max: Option<u64>,
}

/// Reads a few small files of `/proc/self`; the caller does it where blocking is allowed.
pub fn read() -> ProcessFigures {
    let (open_files, open_sockets) = open_files().unzip();
    ProcessFigures { resident_bytes: resident_bytes(), open_files, open_sockets, open_files_max: open_files_max() }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// All, and the sockets among them.
fn open_files() -> Option<(u64, u64)> {
    let mut counted = (0, 0);
    for entry in fs::read_dir("/proc/self/fd").ok()?.flatten() {
        counted.0 += 1;
        let target = fs::read_link(entry.path()).ok();
        counted.1 += u64::from(target.is_some_and(|target| target.to_string_lossy().starts_with("socket:")));
    }
    Some(counted)
}

fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_files() {
        let _socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let read = read();
        assert!(read.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{read:?}");
        assert!(read.open_sockets >= Some(1) && read.open_files > read.open_sockets, "{read:?}");
        assert!(read.open_files_max > read.open_files, "{read:?}");
    }
}
