//! The pages with the scopes that they need: none can be added without saying so. The door lets nobody through without them.
//!
//! It must not know what a page shows.

use std::collections::BTreeMap;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use http::Method;
use postrider_core::access::ScopeSet;

use super::board::Board;

/// Who may open a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// Anybody: the log-in page and what it looks like.
    Everybody,
    /// Whoever is logged in with these scopes.
    Session(ScopeSet),
    /// The same, and is not bound to one project.
    Installation(ScopeSet),
}

/// Every page there is, by path and method.
pub type Doors = BTreeMap<&'static str, Vec<(Method, Opens)>>;

/// Who may open this page in this way.
pub fn opens_of(doors: &Doors, path: &str, method: &Method) -> Option<Opens> {
    doors.get(path)?.iter().find(|(known, _)| known == method).map(|(_, opens)| *opens)
}

/// Pages as they are added.
#[derive(Default)]
pub struct Pages {
    router: Router<Board>,
    doors: Doors,
}

impl Pages {
    /// A page that shows and changes nothing.
    #[must_use]
    pub fn page<H, T>(self, path: &'static str, opens: Opens, handler: H) -> Self
    where
        H: Handler<T, Board>,
        T: 'static,
    {
        self.add(Method::GET, MethodFilter::GET, path, opens, handler)
    }

    /// A form that is sent. The door has seen its token before the handler runs.
    #[must_use]
    pub fn act<H, T>(self, path: &'static str, opens: Opens, handler: H) -> Self
    where
        H: Handler<T, Board>,
        T: 'static,
    {
        self.add(Method::POST, MethodFilter::POST, path, opens, handler)
    }

    fn add<H, T>(mut self, method: Method, filter: MethodFilter, path: &'static str, opens: Opens, handler: H) -> Self
    where
        H: Handler<T, Board>,
        T: 'static,
    {
        self.router = self.router.route(path, on(filter, handler));
        self.doors.entry(path).or_default().push((method, opens));
        self
    }

    /// The router, as yet without the door, and what the door goes by.
    pub fn finish(self) -> (Router<Board>, Doors) {
        (self.router, self.doors)
    }
}
