//! The workers of transformations: processes of this very binary. It must not know what a program does.

use std::path::PathBuf;
use std::sync::Arc;

use postrider_engine::Plug;
use postrider_engine::Transform;
use postrider_transform::{ProcessPool, TransformLimits};

/// The command that only this module calls.
const COMMAND: &str = "transform";

pub fn of_this_binary(limits: TransformLimits) -> Plug<dyn Transform> {
    let arguments = vec![
        COMMAND.into(),
        "--memory".into(),
        limits.memory_bytes.to_string().into(),
        "--cpu".into(),
        limits.cpu_seconds.to_string().into(),
    ];
    Plug::of(Arc::new(ProcessPool::new(binary(), arguments, limits)))
}

/// Linux knows the running binary by this name even after another one has taken its place on the disk.
fn binary() -> PathBuf {
    let of_linux = PathBuf::from("/proc/self/exe");
    if of_linux.exists() { of_linux } else { std::env::current_exe().unwrap_or(of_linux) }
}
