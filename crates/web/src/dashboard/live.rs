//! Server-sent events: a page that watches a project, a queue or a delivery is told that it has changed, and fetches itself anew.
//!
//! One task looks at each thing that anybody watches, so a hundred open pages cost as much as one; changes in between come together. What is told is
//! only that something changed: what it is comes with the page, past the door. It must not know what pages show.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use postrider_core::flow::FlowRange;
use postrider_core::id::{DeliveryId, ProjectId, QueueId};
use postrider_engine::Engine;
use tokio::sync::watch;

use super::fault::Fault;
use super::visit::{Visit, segment};

/// `live_pages_max`: pages that are told at once; one more asks by itself every few seconds, as without script events.
const PAGES_MAX: usize = 256;
/// How often a thing is looked at, and so the most often that a page is told.
const EVERY: Duration = Duration::from_secs(1);
/// A line that says nothing keeps proxies from ending the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A page asks again after this, and shows its session again.
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Watched {
    Queue(QueueId),
    Delivery(DeliveryId),
    /// What the overview shows.
    Project(ProjectId),
}

/// Everything that is watched now.
#[derive(Default)]
pub struct Live {
    watched: Mutex<HashMap<Watched, Weak<watch::Sender<u64>>>>,
}

impl Live {
    /// A receiver of a number that changes with the thing; `None`: too many pages watch already.
    fn watch(self: &Arc<Self>, engine: &Engine, thing: Watched) -> Option<Told> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|_, sender| sender.strong_count() > 0);
        let pages: usize = watched.values().filter_map(Weak::upgrade).map(|sender| sender.receiver_count()).sum();
        if pages >= PAGES_MAX {
            return None;
        }
        if let Some(sender) = watched.get(&thing).and_then(Weak::upgrade) {
            // It may have changed since the page was made.
            let mut changes = sender.subscribe();
            changes.mark_changed();
            return Some(Told { changes, _looker: sender });
        }
        let (sender, changes) = watch::channel(0);
        let sender = Arc::new(sender);
        watched.insert(thing, Arc::downgrade(&sender));
        tokio::spawn(look(engine.clone(), thing, Arc::downgrade(&sender)));
        Some(Told { changes, _looker: sender })
    }
}

/// A page that is told; the looking ends with the last of them.
struct Told {
    changes: watch::Receiver<u64>,
    _looker: Arc<watch::Sender<u64>>,
}

async fn look(engine: Engine, thing: Watched, sender: Weak<watch::Sender<u64>>) {
    let mut former = None;
    loop {
        let Some(sender) = sender.upgrade() else { return };
        // A store that cannot be read now is asked again. The first look tells too: what changed since the page was made would be missed.
        if let Some(now) = standing(&engine, thing).await
            && former != Some(now)
        {
            sender.send_modify(|changes| *changes += 1);
            former = Some(now);
        }
        drop(sender);
        tokio::time::sleep(EVERY).await;
    }
}

/// A few numbers that are otherwise once the thing is: kept counters and one row, never a scan.
async fn standing(engine: &Engine, thing: Watched) -> Option<[i64; 4]> {
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    match thing {
        Watched::Queue(id) => {
            let summary = engine.read().queue_summary(id).await.ok()?;
            let oldest = summary.oldest_waiting_since.map_or(0, |at| at.as_millis());
            let page = postrider_store::PageRequest { limit: 1, cursor: None };
            let head = engine.read().queue(id, page).await.ok()?.items.pop();
            let head = head.map_or(0, |head| i64::from(head.version));
            Some([number(summary.waiting), number(summary.dead), oldest, head])
        }
        Watched::Delivery(id) => {
            let delivery = engine.read().delivery(id).await.ok()?;
            let progress = delivery.as_ref().map(|delivery| (delivery.version, delivery.progress.attempts));
            let (version, attempts) = progress.unwrap_or_default();
            let status = delivery.map_or(0, |delivery| delivery.progress.status as i64);
            Some([i64::from(version), i64::from(attempts), status, 0])
        }
        Watched::Project(id) => {
            let summaries = engine.read().queue_summaries(id).await.ok()?;
            let (waiting, dead) =
                summaries.iter().fold((0, 0), |(waiting, dead), one| (waiting + one.waiting, dead + one.dead));
            let flow = engine.flow(id, FlowRange::Hour);
            let attempts: u64 = flow.iter().map(|(_, one)| u64::from(one.delivered) + u64::from(one.failed)).sum();
            let known = engine.connections();
            let of_project = known.iter().filter(|known| known.project_id == id);
            let changes: u64 = of_project.map(|known| 2 * u64::from(known.version) + u64::from(known.paused)).sum();
            Some([number(waiting), number(dead), number(attempts), number(changes)])
        }
    }
}

pub async fn of_queue(visit: Visit) -> Result<Response, Fault> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: QueueId,
    }
    let (kind, name) = (visit.segments.get("kind"), visit.segments.get("name"));
    // By the API, so that nobody watches what they may not see.
    let path = super::families::api_of(kind, name, "", "");
    let named: Named = visit.api.get(&visit.of_project(path)).await?;
    told(&visit, Watched::Queue(named.id))
}

pub async fn of_project(visit: Visit) -> Result<Response, Fault> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: ProjectId,
    }
    let named: Named = visit.api.get(&visit.of_project("")).await?;
    told(&visit, Watched::Project(named.id))
}

pub async fn of_delivery(visit: Visit) -> Result<Response, Fault> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: DeliveryId,
    }
    let path = visit.of_project(format!("/deliveries/{}", segment(visit.segments.get("delivery"))));
    let named: Named = visit.api.get(&path).await?;
    told(&visit, Watched::Delivery(named.id))
}

fn told(visit: &Visit, thing: Watched) -> Result<Response, Fault> {
    let told = visit.board.live().watch(visit.board.engine(), thing);
    let told = told.ok_or_else(|| {
        Fault::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many pages are watching (`live_pages_max`); this one asks by itself.",
        )
    })?;
    let ends = Box::pin(tokio::time::sleep(LONGEST));
    let events = stream::unfold((told, ends), async |(mut told, mut ends)| {
        let text = tokio::select! {
            biased;
            () = &mut ends => return None,
            changed = told.changes.changed() => {
                changed.ok()?;
                "event: changed\ndata: \n\n"
            }
            () = tokio::time::sleep(KEEP_ALIVE) => ": still here\n\n",
        };
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(text.as_bytes()))), (told, ends)))
    });
    let first = stream::once(async { Ok(Frame::data(Bytes::from_static(b"retry: 5000\n\n"))) });
    let body = Body::new(StreamBody::new(futures_util::StreamExt::chain(first, events)));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
