//! The workers, as the server sees them: a few processes, each with one program at a time, ended when it does not answer in time.
//!
//! It must not know what a program says.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_engine::{Transform, TransformError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::frame::{ANSWER_HEAD, Answer, ERROR_BYTES_MAX, READY, RequestHead, length};
use crate::limits::TransformLimits;

/// From starting a process to its first word; a busy machine may need a while.
const START_MAX: Duration = Duration::from_secs(30);
/// A worker is replaced after so many programs, so that nothing gathers in one.
const RUNS_MAX: u32 = 10_000;
/// Signals by their numbers (signal(7)): CPU time is used up; ended by somebody.
const SIGXCPU: i32 = 24;
const SIGKILL: i32 = 9;

pub struct ProcessPool {
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: TransformLimits,
    idle: Mutex<Vec<Worker>>,
    turns: Semaphore,
}

/// It is ended when this is dropped.
struct Worker {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    runs: u32,
}

/// It ended, or said what no worker says.
struct Broken;

impl From<std::io::Error> for Broken {
    fn from(_: std::io::Error) -> Self {
        Broken
    }
}

impl ProcessPool {
    /// `program` with `arguments` has to call `work`. No process is started before there is something to run.
    pub fn new(program: PathBuf, arguments: Vec<OsString>, limits: TransformLimits) -> Self {
        let turns = Semaphore::new(limits.workers.max(1));
        ProcessPool { program, arguments, limits, idle: Mutex::default(), turns }
    }

    async fn ask(&self, program: &str, body: Option<&[u8]>) -> Result<Bytes, TransformError> {
        let unavailable = || TransformError::Unavailable("the server is stopping".to_owned());
        let _turn = self.turns.acquire().await.map_err(|_| unavailable())?;
        let mut worker = self.worker().await?;
        // When this is given up meanwhile, the worker goes with it, and with the worker its process.
        let answered = timeout(self.limits.wall, worker.ask(program, body, self.limits.output_bytes)).await;
        match answered {
            Ok(Ok(answer)) => {
                worker.runs += 1;
                if worker.runs < RUNS_MAX {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
                }
                match answer {
                    Answer::Output(bytes) => Ok(bytes),
                    Answer::Error(error) => Err(error),
                }
            }
            Ok(Err(Broken)) => Err(worker.end().await),
            Err(_) => {
                drop(worker);
                Err(TransformError::TookTooLong)
            }
        }
    }

    /// One that waits, or a new one. One that somebody has ended since is passed over.
    async fn worker(&self) -> Result<Worker, TransformError> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut worker) = idle else { break };
            if matches!(worker.child.try_wait(), Ok(None)) {
                return Ok(worker);
            }
        }
        let started = timeout(START_MAX, self.start()).await;
        let late = || TransformError::Unavailable("a worker does not start in time".to_owned());
        started
            .map_err(|_| late())?
            .map_err(|error| TransformError::Unavailable(format!("a worker cannot be started: {error}")))
    }

    /// Nothing is handed on but the two pipes: every other descriptor of this process closes when another program is executed.
    async fn start(&self) -> std::io::Result<Worker> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            // The allocator would set a gigabyte of address space aside at the start, which the limit of memory would then count for nothing.
            .env("MIMALLOC_ARENA_RESERVE", "0")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        // A signal to the server from a terminal is not for its workers.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, mut from) = pipes.ok_or_else(|| std::io::Error::other("it has no pipes"))?;
        if from.read_u8().await? != READY {
            return Err(std::io::Error::other("it does not speak as a worker does"));
        }
        Ok(Worker { child, to, from, runs: 0 })
    }
}

impl Worker {
    async fn ask(&mut self, program: &str, body: Option<&[u8]>, output_max: u64) -> Result<Answer, Broken> {
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).ok().filter(|size| *size < u32::MAX).ok_or(Broken);
        let head = RequestHead { program: size(program.as_bytes())?, body: body.map(size).transpose()?, output_max };
        self.to.write_all(&head.write()).await?;
        self.to.write_all(program.as_bytes()).await?;
        self.to.write_all(body.unwrap_or_default()).await?;
        self.to.flush().await?;
        let mut head = [0; ANSWER_HEAD];
        self.from.read_exact(&mut head).await?;
        let most = usize::try_from(output_max).unwrap_or(usize::MAX).max(ERROR_BYTES_MAX);
        let mut bytes = vec![0; Some(length(head)).filter(|length| *length <= most).ok_or(Broken)?];
        self.from.read_exact(&mut bytes).await?;
        Answer::read(head[0], Bytes::from(bytes)).ok_or(Broken)
    }

    /// Ends it, and says why it had not answered.
    async fn end(mut self) -> TransformError {
        // One that is ending by itself is given the moment that it needs, so that its status is its own.
        let status = match timeout(Duration::from_secs(1), self.child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                let _ = self.child.kill().await;
                None
            }
        };
        cause(status)
    }
}

fn cause(status: Option<ExitStatus>) -> TransformError {
    #[cfg(unix)]
    let signal = status.as_ref().and_then(std::os::unix::process::ExitStatusExt::signal);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    match signal {
        Some(SIGXCPU) => TransformError::TookTooLong,
        Some(SIGKILL) => TransformError::Unavailable("the worker was ended from outside".to_owned()),
        // Out of memory or of stack, it aborts or is ended by a signal of its own.
        Some(_) => TransformError::TookTooMuch,
        None => TransformError::Unavailable("the worker ended".to_owned()),
    }
}

#[async_trait]
impl Transform for ProcessPool {
    async fn check(&self, program: &str) -> Result<(), TransformError> {
        self.ask(program, None).await.map(|_| ())
    }

    async fn run(&self, program: &str, body: &[u8]) -> Result<Bytes, TransformError> {
        self.ask(program, Some(body)).await
    }
}
