//! Every page with the scopes that it needs. It must not know what a page shows.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::get;
use postrider_core::access::{Scope, ScopeSet};
use postrider_engine::Clock;

use super::board::Board;
use super::door::{Door, open};
use super::fault::nothing_here;
use super::routes::{Opens, Pages};
use super::{assets, connections, log_in, overview, theme};
use crate::api::{AppState, router};
use crate::auth::AdminKey;

/// Whoever is logged in, with whatever scopes.
const ANYBODY: Opens = Opens::Session(ScopeSet::NONE);
const READ: Opens = Opens::Session(ScopeSet::of(&[Scope::Read]));
const OPERATE: Opens = Opens::Session(ScopeSet::of(&[Scope::Operate]));

/// A path below a project.
macro_rules! in_project {
    ($path:literal) => {
        concat!("/ui/projects/{project}", $path)
    };
}

/// Everything that a server answers: the API, the dashboard, and `/`, which leads to it (D16).
pub fn site(state: AppState, admin: AdminKey, clock: Arc<dyn Clock>) -> Router {
    let engine = state.engine().clone();
    let api = router(state, admin.clone());
    let board = Board::new(api.clone(), engine, admin, clock);
    let (pages, doors) = pages().finish();
    let door = Arc::new(Door { board: board.clone(), doors });
    let dashboard = pages
        .route("/ui/{*rest}", get(async || nothing_here()))
        .layer(from_fn_with_state(door, open))
        .with_state(board)
        .route("/", get(async || Redirect::temporary("/ui")));
    dashboard.fallback_service(api)
}

fn pages() -> Pages {
    let pages = Pages::default()
        .page("/ui/assets/{name}", Opens::Everybody, assets::one)
        .page("/ui/log-in", Opens::Everybody, log_in::show)
        .act("/ui/log-in", Opens::Everybody, log_in::log_in)
        .act("/ui/log-out", ANYBODY, log_in::log_out)
        .act("/ui/theme", ANYBODY, theme::choose)
        .page("/ui", ANYBODY, overview::first_project)
        .page("/ui/", ANYBODY, overview::first_project)
        .page(in_project!(""), READ, overview::of_project);
    of_connections(pages)
}

fn of_connections(pages: Pages) -> Pages {
    pages
        .page(in_project!("/connections"), READ, connections::list)
        .act(in_project!("/connections/{kind}/{name}/pause"), OPERATE, connections::pause)
        .act(in_project!("/connections/{kind}/{name}/resume"), OPERATE, connections::resume)
}
