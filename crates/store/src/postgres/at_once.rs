//! For the simulator: a call is answered before anything else happens on the thread that makes it, so that a clock which stands still while
//! a task waits does not run on meanwhile. The connections live on a runtime of their own. It must not know what is called.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::runtime::Handle;

/// With a handle, the call is carried by that runtime and the thread stands still until it is answered; without one it is awaited as any.
pub(super) async fn at_once<F: Future>(carrier: Option<&Handle>, call: F) -> F::Output {
    match carrier {
        None => call.await,
        Some(carrier) => {
            // Its task is polled once, so it must not run out of the budget that a task has for one poll.
            Held { carrier: carrier.clone(), call: Box::pin(tokio::task::unconstrained(call)) }.await
        }
    }
}

struct Held<F> {
    carrier: Handle,
    call: Pin<Box<F>>,
}

impl<F: Future> Future for Held<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<F::Output> {
        let carrier = self.carrier.clone();
        let _on_it = carrier.enter();
        let waker = Waker::from(Arc::new(Parked(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match self.call.as_mut().poll(&mut context) {
                Poll::Ready(answer) => return Poll::Ready(answer),
                // Waking before this is not lost, and waking for nothing does no harm.
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_that_stands_still_does_not_run_on_while_a_call_is_answered() {
        let carrier = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let still = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        still.block_on(async {
            let began = tokio::time::Instant::now();
            let other = tokio::spawn(tokio::time::sleep(Duration::from_millis(1)));
            let slow = async {
                // On the carrier's clock, which is the real one, and for longer than one poll's budget.
                for _ in 0..300 {
                    tokio::time::sleep(Duration::from_micros(50)).await;
                }
                7
            };
            assert_eq!(at_once(Some(carrier.handle()), slow).await, 7);
            assert_eq!(began.elapsed(), Duration::ZERO);
            assert!(!other.is_finished());
            assert_eq!(at_once(None, async { 8 }).await, 8);
        });
    }
}
