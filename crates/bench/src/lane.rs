//! A thread of its own with a runtime of its own, so that what it costs can be read from its CPU clock.
//!
//! One lane generates load, another one receives. It must not know what runs on it.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

pub struct Lane {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    pub fn start(name: &str) -> io::Result<Lane> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Ends when the lane is dropped; what still runs is dropped with the runtime.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Lane { handle, stop: Some(stop), thread: Some(thread) })
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// CPU time of the lane's thread since it began.
    pub async fn cpu(&self) -> Duration {
        self.on(async { clock(ClockId::ThreadCPUTime) }).await
    }

    /// Runs `work` on the lane and waits for it.
    pub async fn on<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.handle.spawn(work).await.expect("work on a lane does not panic and is not aborted")
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// CPU time of this whole process, all threads.
pub fn process_cpu() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
