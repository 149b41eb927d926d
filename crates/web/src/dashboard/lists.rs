//! The lists of deliveries: a connection's queue and its dead-letter queue, Failed Messages, and the delivery log.
//!
//! One table for all, with the columns that each needs; every list goes from page to page by a cursor and asks kept counters for its numbers, so a
//! queue of a million shows as fast as one of ten. It must not know what an act does.

use askama::Template;
use axum::response::Response;
use postrider_core::Failure;
use postrider_core::access::Scope;
use postrider_core::delivery::Status;

use super::connections::Connection;
use super::delivery::{Deliveries, Delivery};
use super::families::{api_of, parsed, words};
use super::fault::Fault;
use super::filters::Filters;
use super::frame::Frame;
use super::parts::{Count, Moment, Paging};
use super::visit::{Visit, segment, show};

/// Rows of one page.
const ROWS: usize = 50;

/// Which list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// What waits for one connection, from head to tail.
    Queue,
    /// What one connection could not be sent.
    Dlq,
    /// What no connection of the project could be sent.
    Failed,
    /// Webhooks that came in and could not be forwarded to their destination (R12).
    Forwards,
    /// Everything, newest first.
    Log,
}

#[derive(Template)]
#[template(path = "list.html")]
struct ListPage<'a> {
    frame: Frame,
    visit: &'a Visit,
    list: List,
    /// Of the queue and its DLQ.
    connection: Option<Connection>,
    filters: Filters,
    rows: Vec<Delivery>,
    paging: Paging,
    /// The head, where the list begins with it.
    has_head: bool,
    may_operate: bool,
}

impl ListPage<'_> {
    /// The page itself, without conditions.
    fn page(&self) -> String {
        match &self.connection {
            Some(connection) => self.visit.page_of_project(format!("{}/queue", connection.page())),
            None if self.list == List::Failed => self.visit.page_of_project("/failed"),
            None if self.list == List::Forwards => self.visit.page_of_project("/failed-forwards"),
            None => self.visit.page_of_project("/deliveries"),
        }
    }

    fn tab(&self, tab: &str) -> String {
        format!("{}?tab={tab}", self.page())
    }

    fn delivery(&self, id: &str) -> String {
        self.visit.page_of_project(format!("/deliveries/{}", segment(id)))
    }

    fn statuses(&self) -> [&'static str; 8] {
        Status::ALL.map(Status::as_str)
    }

    fn failures(&self) -> [&'static str; Failure::ALL.len()] {
        Failure::ALL.map(Failure::as_str)
    }

    fn is_dead(&self) -> bool {
        matches!(self.list, List::Dlq | List::Failed | List::Forwards)
    }

    /// Everything that an act without ticked boxes is about.
    fn all(&self) -> Filters {
        let mut filters = self.filters.clone();
        if let Some(connection) = &self.connection {
            filters = filters.with("connection", &connection.name).with("type", &connection.kind);
        }
        match self.list {
            List::Queue => filters.with("status", "PENDING").with("status", "PROCESSING"),
            List::Dlq | List::Failed => filters.with("status", "DLQ"),
            // The API's own list of them knows no other status.
            List::Forwards => filters,
            List::Log => filters,
        }
    }

    fn is_blocked(&self) -> bool {
        self.has_head && self.rows.first().is_some_and(|head| head.attempts > 0 && head.failure.is_some())
    }
}

/// `?tab=queue|dlq`
pub async fn queue(mut visit: Visit) -> Result<Response, Fault> {
    let list = if visit.query.take("tab").as_deref() == Some("dlq") { List::Dlq } else { List::Queue };
    let (_, connection) = super::connections::found(&visit).await?;
    let title = format!("{}: delivery queue", connection.name);
    let place = words(parsed(&connection.kind)?.family()).place;
    page(visit, list, Some(connection), &title, place).await
}

pub async fn failed(visit: Visit) -> Result<Response, Fault> {
    page(visit, List::Failed, None, "Failed Messages", "failed").await
}

pub async fn forwards(visit: Visit) -> Result<Response, Fault> {
    page(visit, List::Forwards, None, "Failed Forwards", "failed-forwards").await
}

pub async fn log(visit: Visit) -> Result<Response, Fault> {
    page(visit, List::Log, None, "Delivery log", "deliveries").await
}

async fn page(
    mut visit: Visit,
    list: List,
    connection: Option<Connection>,
    title: &str,
    place: &'static str,
) -> Result<Response, Fault> {
    let filters = Filters::take(&mut visit.query);
    let cursor = visit.query.take("cursor");
    let found: Deliveries =
        visit.api.get(&visit.of_project(address(list, connection.as_ref(), &filters, cursor.as_deref()))).await?;
    let frame = visit.frame(title, place).await?;
    let mut page = ListPage {
        has_head: list == List::Queue && filters.is_empty() && cursor.is_none(),
        may_operate: visit.may(Scope::Operate),
        frame,
        visit: &visit,
        list,
        connection,
        filters,
        rows: found.data,
        paging: Paging::default(),
    };
    let base = match list {
        List::Queue | List::Dlq => {
            let tab = page.tab(if list == List::Dlq { "dlq" } else { "queue" });
            if page.filters.is_empty() { tab } else { format!("{tab}&{}", page.filters.query()) }
        }
        List::Failed | List::Forwards | List::Log => format!("{}?{}", page.page(), page.filters.query()),
    };
    page.paging = Paging::of(&base, cursor.as_deref(), found.next_cursor.as_deref());
    show(&page)
}

/// Where the API has it, below the project.
fn address(list: List, connection: Option<&Connection>, filters: &Filters, cursor: Option<&str>) -> String {
    let mut query = format!("limit={ROWS}");
    if let Some(cursor) = cursor {
        query.push_str(&format!("&cursor={}", segment(cursor)));
    }
    if let (List::Queue, Some(connection), true) = (list, connection, filters.is_empty()) {
        return api_of(&connection.kind, &connection.name, "/queue", query);
    }
    if let Some(connection) = connection {
        query.push_str(&format!("&connection={}&type={}", segment(&connection.name), segment(&connection.kind)));
    }
    match list {
        List::Queue => query.push_str("&status=PENDING&status=PROCESSING"),
        List::Dlq | List::Failed | List::Forwards => query.push_str("&status=DLQ"),
        List::Log => {}
    }
    if !filters.is_empty() {
        query.push_str(&format!("&{}", filters.query()));
    }
    if list == List::Forwards { format!("/forwards?{query}") } else { format!("/deliveries?{query}") }
}

/// From a delivery to the queue that it is, or was, in.
pub async fn queue_of(visit: Visit) -> Result<Response, Fault> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Of {
        connection_id: String,
        status: String,
    }
    let path = visit.of_project(format!("/deliveries/{}", segment(visit.segments.get("delivery"))));
    let of: Of = visit.api.get(&path).await?;
    let connection = of.connection_id.parse().ok().and_then(|id| visit.board.engine().connection_by_id(id));
    let Some(connection) = connection else {
        return Err(Fault::new(http::StatusCode::NOT_FOUND, "The connection that it was for has been deleted."));
    };
    let tab = if of.status == "DLQ" { "dlq" } else { "queue" };
    let page = format!("/connections/{}/{}/queue?tab={tab}", connection.kind().as_str(), segment(&connection.name));
    Ok(super::answer::redirect(&visit.page_of_project(page)))
}
