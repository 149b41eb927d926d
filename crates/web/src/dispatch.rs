//! The routes of the API behind their gate: which of them a request is for, whether its caller may take it, and its handler.
//!
//! A request is matched once, and nothing of a path is copied for it. It must not know what a route is about.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::IntoResponse;
use http::Method;

use crate::api::{Site, idempotency};
use crate::gate::{Gate, with_safe_headers};
use crate::keyed::Keyed;
use crate::problem::{Problem, method_not_allowed, nothing_here};
use crate::read::Pattern;
use crate::routes::{Handle, Handlers, Routes, Rule};
use crate::server::Answering;

pub struct Dispatch {
    routes: matchit::Router<Route>,
    gate: Gate,
    keyed: Arc<Keyed>,
    site: Site,
}

struct Route {
    pattern: Pattern,
    rule: Rule,
    handlers: Handlers,
}

/// The handler that a request is for, once it is known that it is to run.
pub struct Next {
    handle: Handle,
    site: Site,
}

impl Next {
    pub fn run(self, request: Request) -> Answering {
        (self.handle)(request, self.site)
    }
}

impl Dispatch {
    pub fn new(routes: Routes, gate: Gate, keyed: Keyed, site: Site) -> Dispatch {
        let (handlers, mut rules) = routes.finish();
        let mut routes = matchit::Router::new();
        for (path, handlers) in handlers {
            let route = Route { pattern: Pattern(path), rule: rules.remove(path).unwrap_or_default(), handlers };
            let inserted = routes.insert(path, route);
            debug_assert!(inserted.is_ok(), "two routes are one: {path}");
        }
        Dispatch { routes, gate, keyed: Arc::new(keyed), site }
    }

    /// Every answer leaves with headers that keep it safe.
    pub fn answer(&self, request: Request) -> Answering {
        match self.admit(request) {
            Ok(answering) => Box::pin(async move { with_safe_headers(answering.await) }),
            Err(problem) => Box::pin(std::future::ready(with_safe_headers(problem.into_response()))),
        }
    }

    /// Whoever passes is in the request's extensions, and so is the route.
    fn admit(&self, mut request: Request) -> Result<Answering, Problem> {
        let route = self.routes.at(request.uri().path()).ok().map(|found| found.value);
        let caller = self.gate.judge(&request, route.map(|route| (route.pattern.0, &route.rule)))?;
        let Some(route) = route else { return Err(nothing_here()) };
        let Some(handle) = route.handlers.of(request.method()) else {
            return Err(method_not_allowed(&route.rule.methods()));
        };
        let answers_once = caller.is_some()
            && *request.method() == Method::POST
            && request.headers().contains_key(idempotency::HEADER)
            && route.rule.answers_once(request.method());
        request.extensions_mut().insert(route.pattern);
        if let Some(caller) = caller {
            request.extensions_mut().insert(caller);
        }
        let next = Next { handle: Arc::clone(handle), site: self.site.clone() };
        if answers_once {
            return Ok(Box::pin(Arc::clone(&self.keyed).answer(request, next)));
        }
        Ok(next.run(request))
    }
}
