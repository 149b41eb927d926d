//! Everything that a server answers, in the order in which an address is looked for: channels, the dashboard, the API (D16).
//!
//! It must not know what any of them answers.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use postrider_engine::At;

use crate::api::reception::Reception;
use crate::dispatch::Dispatch;
use crate::server::{Answering, Answers};

/// Clones share it.
#[derive(Clone)]
pub struct Front(Arc<Parts>);

struct Parts {
    reception: Arc<Reception>,
    /// Where there is a dashboard.
    pages: Option<Router>,
    api: Arc<Dispatch>,
}

impl Front {
    pub(crate) fn new(reception: Reception, pages: Option<Router>, api: Arc<Dispatch>) -> Front {
        Front(Arc::new(Parts { reception: Arc::new(reception), pages, api }))
    }
}

impl Answers for Front {
    fn answer(&self, request: Request) -> Answering {
        let Parts { reception, pages, api } = &*self.0;
        match (reception.find(&request), pages) {
            (At::Nothing, Some(pages)) if is_page(request.uri().path()) => pages.answer(request),
            (At::Nothing, _) => api.answer(request),
            (found, _) => reception.answer(found, request),
        }
    }
}

/// `/` leads to the dashboard, and `/ui` and all below it are its own.
fn is_page(path: &str) -> bool {
    path == "/" || path == "/ui" || path.starts_with("/ui/")
}
