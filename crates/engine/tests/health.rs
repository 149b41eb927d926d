//! Health follows what is so, and comes back with it (P06).

mod stage;

use std::sync::Arc;

use postrider_core::Wait;
use postrider_engine::{Engine, EngineOptions, Standing};
use postrider_store::MemoryStore;
use serde_json::json;
use stage::faltering::Faltering;
use stage::*;

async fn faltering(options: EngineOptions) -> (Stage, Arc<Faltering>) {
    let memory = MemoryStore::default();
    let store = Arc::new(Faltering::new(memory.clone()));
    let remote = Remote::always(status(200));
    let stage = Stage::over(Arc::clone(&store) as _, memory, remote, options, PausedClock::shared()).await;
    (stage, store)
}

fn failing(checks: Vec<Standing>) -> Vec<(&'static str, String)> {
    let failing = checks.into_iter().filter_map(|check| Some((check.name.as_str(), check.trouble?.detail)));
    failing.collect()
}

fn assert_well(engine: &Engine) {
    assert_eq!((failing(engine.live()), failing(engine.ready())), (vec![], vec![]));
}

// proves: P06
#[tokio::test(start_paused = true)]
async fn p06_a_store_that_takes_no_writes_shows_and_comes_back() {
    let (stage, store) = faltering(EngineOptions::default()).await;
    pass(3600.0).await;
    assert_well(&stage.engine);
    for verb in ["set_value", "renew_worker"] {
        store.fail(verb, u32::MAX);
    }
    pass(20.0).await;
    let told = failing(stage.engine.ready());
    assert!(
        told.len() == 1 && told[0].0 == "store" && told[0].1.starts_with("nothing could be written for"),
        "{told:?}"
    );
    assert_eq!(failing(stage.engine.live()), vec![], "the disk's trouble is not mended by a restart");
    let since =
        |engine: &Engine| engine.ready().into_iter().find(|check| check.name.as_str() == "store").unwrap().since;
    let red_since = since(&stage.engine);
    pass(5.0).await;
    assert_eq!(since(&stage.engine), red_since);
    for verb in ["set_value", "renew_worker"] {
        store.fail(verb, 0);
    }
    pass(10.0).await;
    assert_well(&stage.engine);
    assert!(since(&stage.engine) > red_since);
}

#[tokio::test(start_paused = true)]
async fn p06_a_sweeper_that_breaks_down_shows_and_begins_anew() {
    let (stage, store) = faltering(EngineOptions::default()).await;
    store.break_down_at("prune");
    pass(61.0).await;
    assert_eq!(failing(stage.engine.ready()), [("workers", "pruner broke down".to_owned())]);
    assert_eq!(failing(stage.engine.live()), vec![]);
    pass(65.0).await;
    assert_well(&stage.engine);
    assert!(store.asked("prune") > 0, "it is at work again");
}

#[tokio::test(start_paused = true)]
async fn p06_a_settler_that_breaks_down_asks_for_a_new_process() {
    let (stage, store) = faltering(EngineOptions::default()).await;
    stage.connection("a", json!({"use_queue": true})).await;
    store.break_down_at("settle");
    stage.publish("a", "x").await;
    pass(5.0).await;
    assert_eq!(failing(stage.engine.ready()), [("workers", "settler broke down".to_owned())]);
    assert_eq!(failing(stage.engine.live()), [("workers", "broke down: settler".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn p06_who_stops_is_not_ready() {
    let (stage, _) = faltering(EngineOptions::default()).await;
    stage.engine.stop(Wait::from_secs(1)).await;
    assert_eq!(failing(stage.engine.ready()), [("stop", "the server is stopping".to_owned())]);
    assert_eq!(failing(stage.engine.live()), vec![]);
}
