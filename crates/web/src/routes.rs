//! Routes together with what they need and what they are: a route cannot be added without saying who may take it, nor without its description.
//!
//! The builder keeps one table of rules beside the handlers. The gate lets nothing through that has no rule in it, and the OpenAPI document is made of
//! it. It must not know what a handler does.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use http::Method;
use postrider_core::access::ScopeSet;

use crate::api::Site;
use crate::openapi::Describe;
use crate::server::Answering;

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

/// What a route needs, and what it is.
#[derive(Clone, Copy, Debug)]
struct Entry {
    needs: Needs,
    describe: Describe,
    /// Its idempotency keys are the gate's business, and not its handler's (D15).
    answers_once: bool,
}

/// The methods of one path, each with its entry.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    of_methods: Vec<(Method, Entry)>,
    /// Every method is taken, known or not.
    of_any: Option<Entry>,
}

/// Those that stand for any: some of those that HTTP names.
const ANY: [Method; 6] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

impl Rule {
    /// A path that answers GET answers HEAD.
    pub fn needs(&self, method: &Method) -> Option<Needs> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let entry = self.of_methods.iter().find(|(known, _)| known == method).map(|(_, entry)| *entry);
        entry.or(self.of_any).map(|entry| entry.needs)
    }

    /// Each method with what it needs; where any is taken, the most usual ones.
    pub fn iter(&self) -> impl Iterator<Item = (&Method, Needs)> {
        self.described().map(|(method, needs, _)| (method, needs))
    }

    /// The same with what says what the route is.
    pub fn described(&self) -> impl Iterator<Item = (&Method, Needs, Describe)> {
        let any = self.of_any.into_iter().flat_map(|entry| ANY.iter().map(move |method| (method, entry)));
        let all = self.of_methods.iter().map(|(method, entry)| (method, *entry)).chain(any);
        all.map(|(method, entry)| (method, entry.needs, entry.describe))
    }

    /// Whether nobody needs a key here, whatever the method.
    pub fn is_open(&self) -> bool {
        self.iter().all(|(_, needs)| needs == Needs::Nobody)
    }

    /// Whether the gate sees to it that a request with an idempotency key is acted on once.
    pub fn answers_once(&self, method: &Method) -> bool {
        self.of_methods.iter().any(|(known, entry)| known == method && entry.answers_once)
    }

    /// For the `Allow` of a 405.
    pub fn methods(&self) -> String {
        let names = self.iter().map(|(method, _)| if *method == Method::GET { "GET,HEAD" } else { method.as_str() });
        names.collect::<Vec<_>>().join(",")
    }
}

/// Every path there is. Order has no meaning.
pub type Rules = BTreeMap<&'static str, Rule>;

/// A handler, whatever it takes out of a request.
pub type Handle = Arc<dyn Fn(Request, Site) -> Answering + Send + Sync>;

/// The handlers of one path.
#[derive(Default)]
pub struct Handlers {
    of_methods: Vec<(Method, Handle)>,
    /// Every method is taken, known or not.
    of_any: Option<Handle>,
}

impl Handlers {
    /// A path that answers GET answers HEAD; the body of that answer is not sent.
    pub fn of(&self, method: &Method) -> Option<&Handle> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let handle = self.of_methods.iter().find(|(known, _)| known == method).map(|(_, handle)| handle);
        handle.or(self.of_any.as_ref())
    }
}

/// Routes as they are added.
#[derive(Default)]
pub struct Routes {
    handlers: BTreeMap<&'static str, Handlers>,
    rules: Rules,
}

impl Routes {
    /// A GET with what it needs and what it is. What lies below `PROJECT` needs to be of the project, or more.
    #[must_use]
    pub fn get<H, T>(self, path: &'static str, needs: Needs, handler: H, describe: Describe) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.add(Method::GET, path, Entry { needs, describe, answers_once: false }, handler)
    }

    #[must_use]
    pub fn post<H, T>(self, path: &'static str, needs: Needs, handler: H, describe: Describe) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.add(Method::POST, path, Entry { needs, describe, answers_once: true }, handler)
    }

    /// The same for a handler that sees to idempotency keys itself, in the transaction in which it stores.
    #[must_use]
    pub fn post_keyed<H, T>(self, path: &'static str, needs: Needs, handler: H, describe: Describe) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.add(Method::POST, path, Entry { needs, describe, answers_once: false }, handler)
    }

    #[must_use]
    pub fn put<H, T>(self, path: &'static str, needs: Needs, handler: H, describe: Describe) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.add(Method::PUT, path, Entry { needs, describe, answers_once: false }, handler)
    }

    #[must_use]
    pub fn patch<H, T>(self, path: &'static str, needs: Needs, handler: H, describe: Describe) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.add(Method::PATCH, path, Entry { needs, describe, answers_once: false }, handler)
    }

    #[must_use]
    pub fn delete<H, T>(self, path: &'static str, needs: Needs, handler: H, describe: Describe) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.add(Method::DELETE, path, Entry { needs, describe, answers_once: false }, handler)
    }

    /// The same for a route that takes every method.
    #[must_use]
    pub fn any<H, T>(mut self, path: &'static str, needs: Needs, handler: H, describe: Describe) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.handlers.entry(path).or_default().of_any = Some(handle(handler));
        self.rules.entry(path).or_default().of_any = Some(Entry { needs, describe, answers_once: false });
        self
    }

    fn add<H, T>(mut self, method: Method, path: &'static str, entry: Entry, handler: H) -> Self
    where
        H: Handler<T, Site, Future = Answering>,
        T: 'static,
    {
        self.handlers.entry(path).or_default().of_methods.push((method.clone(), handle(handler)));
        self.rules.entry(path).or_default().of_methods.push((method, entry));
        self
    }

    /// The handlers, as yet without the gate, and the rules for it.
    pub fn finish(self) -> (BTreeMap<&'static str, Handlers>, Rules) {
        (self.handlers, self.rules)
    }
}

/// The future of a function is in a box already: nothing is boxed twice.
fn handle<H, T>(handler: H) -> Handle
where
    H: Handler<T, Site, Future = Answering>,
    T: 'static,
{
    Arc::new(move |request, site| handler.clone().call(request, site))
}
