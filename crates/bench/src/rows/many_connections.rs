//! The same load on 10,000 connections, each with a few messages due, against 16.

use std::time::Duration;

use serde_json::json;

use super::end_to_end;
use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::full_load;
use crate::load::{CALLERS, Until};
use crate::process;
use crate::server::{names, publish_paths};

pub const FIGURES: &[Figure] = &[at_least("10,000 connections, of the rate of 16", Unit::Share, 0.6, 0.85)];
/// Messages for each connection.
const DUE: u64 = 8;
/// Files beside one socket a connection.
const OTHER_FILES: u64 = 500;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let connections = bench.number(10_000, 1_000);
    if process::open_files_max() < connections + OTHER_FILES {
        return Ok(Measured::NotMeasured(format!(
            "only {} files may be open at once; {connections} sockets are needed",
            process::open_files_max()
        )));
    }
    let until = Until { messages: connections * DUE, at_most: Duration::from_secs(300) };
    bench.progress.step("many_connections: 16");
    let few = {
        let Stage { data: _data, server } = end_to_end::stage(bench).await?;
        let paths = publish_paths(&names("bench", end_to_end::CONNECTIONS));
        full_load::run(bench, &server, paths, CALLERS, until).await?
    };
    let Stage { data: _data, server } = with_connections(bench, connections).await?;
    bench.progress.step(format!("many_connections: {connections}"));
    let paths = publish_paths(&names("many", usize::try_from(connections).unwrap_or(0)));
    let many = full_load::run(bench, &server, paths, CALLERS, until).await?;
    Ok(Measured::Values {
        values: vec![many.per_second() / few.per_second()],
        details: vec![
            detail("messages a second, many connections", many.per_second()),
            detail("messages a second, 16 connections", few.per_second()),
            detail("server CPU µs a message, many connections", many.server_us()),
            detail("server CPU µs a message, 16 connections", few.server_us()),
        ],
    })
}

/// A server with so many connections, all to the receiver, nothing waiting.
pub async fn with_connections(bench: &mut Bench, connections: u64) -> Result<Stage, Failure> {
    bench.progress.step(format!("creating {connections} connections"));
    let stage = bench.stage().await?;
    let origin = bench.receiver.origin();
    for (made, name) in names("many", usize::try_from(connections).unwrap_or(0)).iter().enumerate() {
        stage.server.create_connection(name, &origin, json!({"ordered": false})).await?;
        if made % 500 == 0 {
            bench.progress.at(&format!("{made} of {connections}"));
        }
    }
    Ok(stage)
}
