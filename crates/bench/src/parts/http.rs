//! Parts one and two: the load generator and a bare HTTP server that reads the request and answers as the real one does.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::load::{Meter, Plan, Until, closed_loop};
use crate::receiver::Receiver;
use crate::server::uri;

pub struct HttpParts {
    pub load_generator_us: f64,
    pub http_server_us: f64,
}

/// As long as a result object is.
const ANSWER: &str = r#"{"is_ok":false,"is_in_queue":true,"is_in_dlq":false,"msg_id":"msg_01k0000000000000000000000","cid":"20260312-120534-7301-7f2c0e51a","error":null,"response":null}"#;

pub async fn measure(bench: &mut Bench) -> Result<HttpParts, Failure> {
    bench.progress.step("parts: load generator and bare HTTP server");
    let server = Receiver::start("bare server", StatusCode::ACCEPTED, ANSWER).await?;
    let paths: Arc<[_]> = Arc::new([uri("/api/v1/projects/default/connections/bench-0/publish")]);
    let until = Until { messages: u64::MAX, at_most: bench.seconds(2, 1) };
    // Once to warm up, then for the figures.
    let warm = Until { messages: u64::MAX, at_most: Duration::from_millis(300) };
    closed_loop(&bench.generator, Plan::publish(server.address, paths.clone(), warm), Arc::default()).await?;
    let before = server.cpu().await;
    let plan = Plan::publish(server.address, paths, until);
    let loaded = closed_loop(&bench.generator, plan, Arc::new(Meter::default())).await?;
    let spent = server.cpu().await.saturating_sub(before);
    Ok(HttpParts {
        load_generator_us: loaded.cpu_us(),
        http_server_us: spent.as_secs_f64() * 1e6 / loaded.accepted.max(1) as f64,
    })
}
