//! Routes together with what they need: a route cannot be added without saying who may take it.
//!
//! The builder keeps one table of rules beside the router, and the gate lets nothing through that has no rule in it. It must not know what a
//! handler does.

use std::collections::BTreeMap;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, any, on};
use http::Method;
use postrider_core::access::ScopeSet;

use crate::api::Site;

/// The segment that names the project; whatever is below it is of that project.
pub const PROJECT: &str = "/api/v1/projects/{project}";

/// Who may take a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Anybody, without a key: health only.
    Nobody,
    /// Any key with these scopes; the handler shows it no more than its own project.
    AnyKey(ScopeSet),
    /// A key of the project in the path, or of the installation, with these scopes.
    InProject(ScopeSet),
    /// A key of the installation with these scopes.
    Installation(ScopeSet),
}

impl Needs {
    pub const fn scopes(self) -> ScopeSet {
        match self {
            Needs::Nobody => ScopeSet::NONE,
            Needs::AnyKey(scopes) | Needs::InProject(scopes) | Needs::Installation(scopes) => scopes,
        }
    }
}

/// The methods of one path, each with what it needs.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    of_methods: Vec<(Method, Needs)>,
    /// Every method is taken, known or not.
    of_any: Option<Needs>,
}

/// Those that stand for any: some of those that HTTP names.
const ANY: [Method; 6] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

impl Rule {
    /// A path that answers GET answers HEAD.
    pub fn needs(&self, method: &Method) -> Option<Needs> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.of_methods.iter().find(|(known, _)| known == method).map(|(_, needs)| *needs).or(self.of_any)
    }

    /// Each method with what it needs; where any is taken, the most usual ones.
    pub fn iter(&self) -> impl Iterator<Item = (&Method, Needs)> {
        let any = self.of_any.into_iter().flat_map(|needs| ANY.iter().map(move |method| (method, needs)));
        self.of_methods.iter().map(|(method, needs)| (method, *needs)).chain(any)
    }

    /// For the `Allow` of a 405.
    pub fn methods(&self) -> String {
        let names = self.iter().map(|(method, _)| if *method == Method::GET { "GET,HEAD" } else { method.as_str() });
        names.collect::<Vec<_>>().join(",")
    }
}

/// Every path there is. Order has no meaning.
pub type Rules = BTreeMap<&'static str, Rule>;

/// Routes as they are added.
#[derive(Default)]
pub struct Routes {
    router: Router<Site>,
    rules: Rules,
}

impl Routes {
    /// A route with what it needs. What lies below `PROJECT` needs to be of the project, or more.
    #[must_use]
    pub fn add<H, T>(mut self, method: Method, path: &'static str, needs: Needs, handler: H) -> Self
    where
        H: Handler<T, Site>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        self.router = self.router.route(path, on(filter, handler));
        self.rules.entry(path).or_default().of_methods.push((method, needs));
        self
    }

    /// The same for a route that takes every method.
    #[must_use]
    pub fn add_any<H, T>(mut self, path: &'static str, needs: Needs, handler: H) -> Self
    where
        H: Handler<T, Site>,
        T: 'static,
    {
        self.router = self.router.route(path, any(handler));
        self.rules.entry(path).or_default().of_any = Some(needs);
        self
    }

    /// The router, as yet without the gate, and the rules for it.
    pub fn finish(self) -> (Router<Site>, Rules) {
        (self.router, self.rules)
    }
}
