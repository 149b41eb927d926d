//! Accept at a channel: authenticated by nothing, stored as it arrived, acknowledged; nothing runs, since the channels are paused.
//!
//! The same load and the same yardstick as accept only.

use http::Method;
use serde_json::json;

use super::accept_only::values;
use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::full_load;
use crate::load::{CALLERS, FULL_LOAD_CALLERS, Plan, Until};
use crate::process;
use crate::server::{names, uri};

pub const FIGURES: &[Figure] =
    &[at_least("accepted at channels, of the store's batched inserts", Unit::Share, 0.3, 0.5)];
const CHANNELS: usize = 16;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let parts = bench.parts().await?;
    bench.progress.step("accept_channel");
    let Stage { data: _data, server } = bench.stage().await?;
    let names = names("bench", CHANNELS);
    for name in &names {
        let channel = json!({
            "name": name, "type": "rest", "url_path": format!("/{name}"), "service": "nobody", "use_queue": true, "ordered": false
        });
        let path = "/api/v1/projects/default/channels";
        server.expect(Method::POST, path, channel.to_string().into()).await?;
        server.expect(Method::POST, &format!("{path}/{name}/pause"), bytes::Bytes::new()).await?;
    }
    let paths: std::sync::Arc<[http::Uri]> = names.iter().map(|name| uri(&format!("/{name}"))).collect();
    let plan = |callers, at_most| Plan {
        callers,
        request: crate::messages::body,
        ..Plan::publish(server.address, paths.clone(), Until { messages: u64::MAX, at_most })
    };
    let book = bench.receiver.open_book(0);
    full_load::publish(bench, plan(CALLERS, bench.seconds(1, 1)), &book).await?;
    let before = process::cpu(server.pid)?;
    let loaded = full_load::publish(bench, plan(FULL_LOAD_CALLERS, bench.seconds(8, 3)), &book).await?;
    let spent = process::cpu(server.pid)?.saturating_sub(before);
    let mut measured = values(&loaded, 1, spent, parts.inserts_per_second);
    if let Measured::Values { details, .. } = &mut measured {
        details.push(detail("callers", FULL_LOAD_CALLERS as f64));
    }
    Ok(measured)
}
