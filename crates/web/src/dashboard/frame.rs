//! What stands around every page: navigation, project, who is logged in, and what was just done.
//!
//! The navigation is one list; it shows only what whoever looks may open. It must not know what a page shows.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use postrider_core::Timestamp;
use postrider_core::access::{Scope, ScopeSet};
use serde::Deserialize;

use super::assets;
use super::board::Board;
use super::fault::Fault;
use super::session::Session;
use super::theme::Theme;
use super::visit::{Visit, segment};

/// One page in the navigation.
struct Entry {
    /// What a page names to be marked.
    place: &'static str,
    label: &'static str,
    /// Below the project; with `/ui` in front it is of the installation.
    path: &'static str,
    scope: Scope,
    /// Shown to nobody who is bound to one project.
    is_of_installation: bool,
}

struct Group {
    label: &'static str,
    entries: &'static [Entry],
}

const fn entry(place: &'static str, label: &'static str, path: &'static str, scope: Scope) -> Entry {
    Entry { place, label, path, scope, is_of_installation: false }
}

const fn of_installation(place: &'static str, label: &'static str, path: &'static str) -> Entry {
    Entry { place, label, path, scope: Scope::Admin, is_of_installation: true }
}

/// In the order in which people need them: what is wrong, what goes out, what is set up.
const NAVIGATION: &[Group] = &[
    Group { label: "", entries: &[entry("overview", "Overview", "", Scope::Read)] },
    Group {
        label: "Deliver",
        entries: &[
            entry("connections", "Connections", "/connections", Scope::Read),
            entry("endpoints", "Endpoints", "/endpoints", Scope::Read),
            entry("subscriptions", "Subscriptions", "/subscriptions", Scope::Read),
            entry("topics", "Topics", "/topics", Scope::Read),
        ],
    },
    Group {
        label: "Take in",
        entries: &[
            entry("channels", "Channels", "/channels", Scope::Read),
            entry("services", "Services", "/services", Scope::Read),
            entry("sources", "Sources", "/sources", Scope::Read),
        ],
    },
    Group {
        label: "Look after",
        entries: &[
            entry("failed", "Failed Messages", "/failed", Scope::Read),
            entry("failed-forwards", "Failed Forwards", "/failed-forwards", Scope::Read),
            entry("deliveries", "Delivery log", "/deliveries", Scope::Read),
            entry("jobs", "Jobs", "/jobs", Scope::Read),
            entry("alerts", "Alerts", "/alerts", Scope::Read),
        ],
    },
    Group {
        label: "Settings",
        entries: &[
            entry("security", "Security", "/security", Scope::Read),
            entry("keys", "Keys", "/keys", Scope::Admin),
            entry("users", "Users", "/users", Scope::Admin),
            entry("configuration", "Import and export", "/configuration", Scope::Admin),
            entry("audit", "Audit log", "/audit", Scope::Admin),
        ],
    },
    Group {
        label: "Installation",
        entries: &[
            of_installation("settings", "Project settings", "/settings"),
            of_installation("projects", "Projects", "/ui/all-projects"),
            of_installation("installation-keys", "Keys of all", "/ui/keys"),
            of_installation("all-users", "Users of all", "/ui/users"),
        ],
    },
];

/// A link of the navigation as it is shown.
pub struct Link {
    pub label: &'static str,
    pub href: String,
    pub is_here: bool,
}

pub struct LinkGroup {
    pub label: &'static str,
    pub links: Vec<Link>,
}

#[derive(Deserialize)]
pub struct ProjectName {
    pub name: String,
}

#[derive(Deserialize)]
struct Projects {
    data: Vec<ProjectName>,
}

pub struct Frame {
    pub title: String,
    /// Empty on a page of no project.
    pub project: String,
    pub projects: Vec<ProjectName>,
    pub navigation: Vec<LinkGroup>,
    pub flash: Option<Flash>,
    /// Who is logged in; empty: nobody.
    pub who: String,
    pub csrf: String,
    pub theme: Theme,
    /// To come back to.
    pub way: String,
    pub now: Timestamp,
    pub style: &'static str,
    pub script: &'static str,
    pub icon: &'static str,
}

impl Frame {
    /// Of a page in a project.
    pub async fn of(visit: &Visit, title: &str, place: &'static str) -> Result<Frame, Fault> {
        let projects: Projects = visit.api.get("/api/v1/projects").await?;
        let mut frame = Frame::bare(title, &visit.board, Some(&visit.session), visit.theme);
        let project = visit.project();
        let named =
            if project.is_empty() { projects.data.first().map_or("", |first| first.name.as_str()) } else { project };
        let caller = &visit.session.caller;
        frame.navigation = navigation(caller.scopes(), caller.only_project().is_some(), named, place);
        frame.project = project.to_owned();
        frame.projects = projects.data;
        frame.way = visit.way.clone();
        frame.flash = visit.board.flashes().take(&visit.session.id);
        Ok(frame)
    }

    /// Without navigation: the log-in page, and what went wrong.
    pub fn bare(title: &str, board: &Board, session: Option<&Session>, theme: Theme) -> Frame {
        Frame {
            title: title.to_owned(),
            project: String::new(),
            projects: Vec::new(),
            navigation: Vec::new(),
            flash: None,
            who: session.map(|session| session.name.clone()).unwrap_or_default(),
            csrf: session.map(|session| session.csrf.clone()).unwrap_or_default(),
            theme,
            way: "/ui".to_owned(),
            now: board.now(),
            style: assets::style(),
            script: assets::script(),
            icon: assets::icon(),
        }
    }
}

fn navigation(scopes: ScopeSet, is_bound: bool, project: &str, place: &str) -> Vec<LinkGroup> {
    let groups = NAVIGATION.iter().map(|group| {
        let may_open =
            |entry: &&Entry| scopes.cover(ScopeSet::of(&[entry.scope])) && !(is_bound && entry.is_of_installation);
        let shown = group.entries.iter().filter(may_open);
        let links = shown.map(|entry| Link {
            label: entry.label,
            href: if entry.path.starts_with("/ui") {
                entry.path.to_owned()
            } else {
                format!("/ui/projects/{}{}", segment(project), entry.path)
            },
            is_here: entry.place == place,
        });
        LinkGroup { label: group.label, links: links.collect() }
    });
    groups.filter(|group| !group.links.is_empty()).collect()
}

/// What was just done, shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    pub text: String,
    pub is_bad: bool,
}

impl Flash {
    pub fn good(text: impl Into<String>) -> Flash {
        Flash { text: text.into(), is_bad: false }
    }

    pub fn bad(text: impl Into<String>) -> Flash {
        Flash { text: text.into(), is_bad: true }
    }
}

/// `flashes_max`: more are not kept; they are remarks, and the page shows what is so without them.
const FLASHES_MAX: usize = 10_000;

/// Between the form and the page that follows it, by session.
#[derive(Default)]
pub struct Flashes(Mutex<HashMap<[u8; 32], Flash>>);

impl Flashes {
    pub fn put(&self, session: [u8; 32], flash: Flash) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < FLASHES_MAX {
            kept.insert(session, flash);
        }
    }

    pub fn take(&self, session: &[u8; 32]) -> Option<Flash> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(session)
    }
}
