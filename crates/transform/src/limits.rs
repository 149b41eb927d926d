//! How much a program may take (law 5).

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformLimits {
    /// `transform_time_max`: CPU time of one run, in whole seconds; the system counts them by process, so a run may get nearly one more.
    pub cpu_seconds: u64,
    /// `transform_wall_max`: how long a run may last by the clock, however busy the machine is.
    pub wall: Duration,
    /// `transform_memory_max`: what a worker may take beyond what it has when it starts, in bytes.
    pub memory_bytes: u64,
    /// `transform_output_bytes_max`: of the value that a program gives, in bytes.
    pub output_bytes: u64,
    /// `transform_workers_max`: programs that run at once; others wait for their turn, in order.
    pub workers: usize,
}

impl Default for TransformLimits {
    fn default() -> Self {
        TransformLimits {
            cpu_seconds: 1,
            wall: Duration::from_secs(5),
            memory_bytes: 128 << 20,
            output_bytes: 8 << 20,
            workers: 2,
        }
    }
}
