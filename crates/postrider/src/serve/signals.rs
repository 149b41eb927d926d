//! SIGTERM and SIGINT, one after the other. It must not know what a stop does.

use crate::exit::{Exit, Failed};

#[cfg(unix)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From now on a signal no longer ends the process by itself.
    pub fn listen() -> Result<Signals, Failed> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error| Failed::new(Exit::Failure, format!("signals cannot be listened for: {error}"));
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        Ok(Signals { terminate, interrupt })
    }

    /// Ends with the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub fn listen() -> Result<Signals, Failed> {
        Ok(Signals)
    }

    pub async fn next(&mut self) {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(event = postrider_core::log::SIGNALS_UNHEARD, %error, "Ctrl-C cannot be listened for");
            std::future::pending::<()>().await;
        }
    }
}
