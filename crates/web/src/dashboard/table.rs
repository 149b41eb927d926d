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
use super::{
    account, acts, assets, body, bulk, connections, first, jobs, lists, live, log_in, one, overview, theme, users,
};
use crate::api::{AppState, api, with_channels};
use crate::auth::AdminKey;

/// Whoever is logged in, with whatever scopes.
const ANYBODY: Opens = Opens::Session(ScopeSet::NONE);
const READ: Opens = Opens::Session(ScopeSet::of(&[Scope::Read]));
const ADMIN: Opens = Opens::Session(ScopeSet::of(&[Scope::Admin]));
const ALL_ADMIN: Opens = Opens::Installation(ScopeSet::of(&[Scope::Admin]));
const OPERATE: Opens = Opens::Session(ScopeSet::of(&[Scope::Operate]));

/// A path below a project.
macro_rules! in_project {
    ($path:literal) => {
        concat!("/ui/projects/{project}", $path)
    };
}

/// Everything that a server answers: channels, the API, the dashboard, and `/`, which leads to it unless a channel has it (D16).
pub fn site(state: AppState, admin: AdminKey, clock: Arc<dyn Clock>) -> Router {
    let engine = state.engine().clone();
    let api = api(state.clone(), admin.clone());
    let board = Board::new(api.clone(), engine, admin.clone(), clock);
    let (pages, doors) = pages().finish();
    let door = Arc::new(Door { board: board.clone(), doors });
    let dashboard = pages
        .route("/ui/{*rest}", get(async || nothing_here()))
        .layer(from_fn_with_state(door, open))
        .with_state(board)
        .route("/", get(async || Redirect::temporary("/ui")));
    with_channels(dashboard.fallback_service(api), state, admin)
}

fn pages() -> Pages {
    let pages = Pages::default()
        .page("/ui/assets/{name}", Opens::Everybody, assets::one)
        .page("/ui/log-in", Opens::Everybody, log_in::show)
        .act("/ui/log-in", Opens::Everybody, log_in::log_in)
        .act("/ui/log-out", ANYBODY, log_in::log_out)
        .page("/ui/first", Opens::Everybody, first::show)
        .act("/ui/first", Opens::Everybody, first::create)
        .page("/ui/account", ANYBODY, account::show)
        .act("/ui/account", ANYBODY, account::change_password)
        .act("/ui/theme", ANYBODY, theme::choose)
        .page("/ui", ANYBODY, overview::first_project)
        .page("/ui/", ANYBODY, overview::first_project)
        .page(in_project!(""), READ, overview::of_project);
    of_deliveries(of_people(of_connections(pages)))
}

fn of_deliveries(pages: Pages) -> Pages {
    pages
        .page(in_project!("/connections/{kind}/{name}/queue"), READ, lists::queue)
        .page(in_project!("/connections/{kind}/{name}/live"), READ, live::of_queue)
        .page(in_project!("/failed"), READ, lists::failed)
        .page(in_project!("/failed-forwards"), READ, lists::forwards)
        .act(in_project!("/deliveries/{delivery}/retry-forward"), OPERATE, acts::retry_forward)
        .page(in_project!("/deliveries"), READ, lists::log)
        .page(in_project!("/deliveries/{delivery}"), READ, one::page)
        .page(in_project!("/deliveries/{delivery}/answers"), READ, one::answers)
        .page(in_project!("/deliveries/{delivery}/live"), READ, live::of_delivery)
        .page(in_project!("/deliveries/{delivery}/queue"), READ, lists::queue_of)
        .page(in_project!("/deliveries/{delivery}/body"), READ, body::page)
        .page(in_project!("/deliveries/{delivery}/download"), READ, body::download)
        .page(in_project!("/deliveries/{delivery}/edit"), OPERATE, body::edit)
        .act(in_project!("/deliveries/{delivery}/edit"), OPERATE, body::change)
        .act(in_project!("/deliveries/{delivery}/retry"), OPERATE, acts::retry)
        .act(in_project!("/deliveries/{delivery}/attempt-now"), OPERATE, acts::attempt_now)
        .act(in_project!("/deliveries/{delivery}/set-aside"), OPERATE, acts::set_aside)
        .page(in_project!("/deliveries/{delivery}/resend"), OPERATE, acts::ask_resend)
        .act(in_project!("/deliveries/{delivery}/resend"), OPERATE, acts::resend)
        .page(in_project!("/deliveries/{delivery}/forward"), OPERATE, acts::ask_forward)
        .act(in_project!("/deliveries/{delivery}/forward"), OPERATE, acts::forward)
        .page(in_project!("/deliveries/{delivery}/discard"), OPERATE, acts::ask_discard)
        .act(in_project!("/deliveries/{delivery}/discard"), OPERATE, acts::discard)
        .act(in_project!("/bulk"), OPERATE, bulk::begin)
        .page(in_project!("/jobs"), READ, jobs::list)
        .page(in_project!("/jobs/{job}"), READ, jobs::one)
        .act(in_project!("/jobs/{job}"), OPERATE, jobs::control)
}

fn of_people(pages: Pages) -> Pages {
    pages
        .page("/ui/users", ALL_ADMIN, users::list)
        .act("/ui/users", ALL_ADMIN, users::create)
        .page("/ui/users/{user}", ALL_ADMIN, users::one)
        .act("/ui/users/{user}", ALL_ADMIN, users::change)
        .page("/ui/users/{user}/delete", ALL_ADMIN, users::ask_delete)
        .act("/ui/users/{user}/delete", ALL_ADMIN, users::delete)
        .page(in_project!("/users"), ADMIN, users::list)
        .act(in_project!("/users"), ADMIN, users::create)
        .page(in_project!("/users/{user}"), ADMIN, users::one)
        .act(in_project!("/users/{user}"), ADMIN, users::change)
        .page(in_project!("/users/{user}/delete"), ADMIN, users::ask_delete)
        .act(in_project!("/users/{user}/delete"), ADMIN, users::delete)
}

fn of_connections(pages: Pages) -> Pages {
    pages
        .page(in_project!("/connections"), READ, connections::list)
        .act(in_project!("/connections/{kind}/{name}/pause"), OPERATE, connections::pause)
        .act(in_project!("/connections/{kind}/{name}/resume"), OPERATE, connections::resume)
}
