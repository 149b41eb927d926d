//! What a request costs. Run by hand: `cargo test --release -p postrider-wire -- --ignored --nocapture speed`.

use std::sync::Arc;

use postrider_wire::{Outgoing, Sender};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cases::{answered, connection_with, outgoing, sender};

const REQUESTS: usize = 200_000;
const AT_ONCE: usize = 16;

/// CPU time of this thread in µs, from the kernel.
fn thread_cpu_us() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<u64>().unwrap() / 1000
}

#[test]
#[ignore = "measures, proves nothing"]
fn speed_cpu_per_request() {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((mut tcp, _)) = listener.accept().await {
                tokio::spawn(async move {
                    // A request is one write, so it is taken as one read.
                    let mut buffer = vec![0; 4096];
                    while let Ok(1..) = tcp.read(&mut buffer).await {
                        tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
                    }
                });
            }
        });
    });
    let address = told.recv().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connection = connection_with(&format!("http://{address}"), json!({"pool_size": AT_ONCE}));
    let sender = Arc::new(sender());
    let body = bytes::Bytes::from(vec![b'x'; 1024]);
    let spent_us = runtime.block_on(async {
        let before = thread_cpu_us();
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (sender, attempt) = (sender.clone(), Outgoing { body: body.clone(), ..outgoing(&connection) });
                tokio::spawn(async move {
                    for _ in 0..REQUESTS / AT_ONCE {
                        assert_eq!(answered(sender.send(attempt.clone()).await).status, Some(200));
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        thread_cpu_us() - before
    });
    println!("{:.2} µs CPU a request of 1 KiB", spent_us as f64 / REQUESTS as f64);
}
