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
    account, acts, assets, body, bulk, configuration, connection, connections, destinations, endpoints, first, history,
    jobs, keys, lists, live, log_in, one, overview, projects, schedule, security, services, settings, source_forms,
    sources, subscriptions, theme, topics, trial, users,
};
use crate::api::{AppState, api, with_channels};
use crate::auth::AdminKey;

/// Whoever is logged in, with whatever scopes.
const ANYBODY: Opens = Opens::Session(ScopeSet::NONE);
const READ: Opens = Opens::Session(ScopeSet::of(&[Scope::Read]));
const ADMIN: Opens = Opens::Session(ScopeSet::of(&[Scope::Admin]));
const ALL_ADMIN: Opens = Opens::Installation(ScopeSet::of(&[Scope::Admin]));
const SEND: Opens = Opens::Session(ScopeSet::of(&[Scope::Send]));
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
        .page(in_project!(""), READ, overview::of_project)
        .page(in_project!("/live"), READ, live::of_project);
    of_settings(of_incoming(of_events(of_deliveries(of_people(of_connections(pages))))))
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
        .page(in_project!("/connections/new"), ADMIN, settings::choose)
        .page(in_project!("/connections/new/{kind}"), ADMIN, settings::new)
        .act(in_project!("/connections/new/{kind}"), ADMIN, settings::create)
        .page(in_project!("/connections/{kind}/{name}"), READ, connection::one)
        .page(in_project!("/connections/{kind}/{name}/edit"), ADMIN, settings::edit)
        .act(in_project!("/connections/{kind}/{name}/edit"), ADMIN, settings::change)
        .page(in_project!("/connections/{kind}/{name}/send"), SEND, trial::show_send)
        .act(in_project!("/connections/{kind}/{name}/send"), SEND, trial::send)
        .act(in_project!("/connections/{kind}/{name}/ping"), OPERATE, trial::ping)
        .page(in_project!("/connections/{kind}/{name}/delete"), ADMIN, connection::ask_delete)
        .act(in_project!("/connections/{kind}/{name}/delete"), ADMIN, connection::delete)
        .act(in_project!("/connections/{kind}/{name}/pause"), OPERATE, connections::pause)
        .act(in_project!("/connections/{kind}/{name}/resume"), OPERATE, connections::resume)
        .page(in_project!("/channels"), READ, connections::channels)
        .page(in_project!("/channels/new"), ADMIN, settings::choose_channel)
        .page(in_project!("/services"), READ, services::list)
        .page(in_project!("/schedule"), READ, schedule::fragment)
}

fn of_events(pages: Pages) -> Pages {
    pages
        .page(in_project!("/endpoints"), READ, endpoints::list)
        .page(in_project!("/endpoints/new"), ADMIN, endpoints::new)
        .act(in_project!("/endpoints/new"), ADMIN, endpoints::create)
        .page(in_project!("/endpoints/{endpoint}"), READ, endpoints::one)
        .page(in_project!("/endpoints/{endpoint}/edit"), ADMIN, endpoints::edit)
        .act(in_project!("/endpoints/{endpoint}/edit"), ADMIN, endpoints::change)
        .act(in_project!("/endpoints/{endpoint}/test"), OPERATE, endpoints::test)
        .act(in_project!("/endpoints/{endpoint}/verify"), OPERATE, endpoints::verify)
        .act(in_project!("/endpoints/{endpoint}/enable"), OPERATE, endpoints::enable)
        .act(in_project!("/endpoints/{endpoint}/disable"), OPERATE, endpoints::disable)
        .page(in_project!("/endpoints/{endpoint}/rotate"), ADMIN, endpoints::ask_rotate)
        .act(in_project!("/endpoints/{endpoint}/rotate"), ADMIN, endpoints::rotate)
        .page(in_project!("/endpoints/{endpoint}/delete"), ADMIN, endpoints::ask_delete)
        .act(in_project!("/endpoints/{endpoint}/delete"), ADMIN, endpoints::delete)
        .page(in_project!("/subscriptions"), READ, subscriptions::list)
        .page(in_project!("/subscriptions/new"), ADMIN, subscriptions::new)
        .act(in_project!("/subscriptions/new"), ADMIN, subscriptions::create)
        .page(in_project!("/subscriptions/{subscription}"), ADMIN, subscriptions::edit)
        .act(in_project!("/subscriptions/{subscription}"), ADMIN, subscriptions::change)
        .page(in_project!("/subscriptions/{subscription}/delete"), ADMIN, subscriptions::ask_delete)
        .act(in_project!("/subscriptions/{subscription}/delete"), ADMIN, subscriptions::delete)
        .page(in_project!("/topics"), READ, topics::list)
        .page(in_project!("/new-topic"), ADMIN, topics::new)
        .act(in_project!("/new-topic"), ADMIN, topics::create)
        .page(in_project!("/topics/{topic}"), READ, topics::one)
        .page(in_project!("/topics/{topic}/publish"), SEND, topics::ask_publish)
        .act(in_project!("/topics/{topic}/publish"), SEND, topics::publish)
        .page(in_project!("/topics/{topic}/delete"), ADMIN, topics::ask_delete)
        .act(in_project!("/topics/{topic}/delete"), ADMIN, topics::delete)
        .page(in_project!("/topics/{topic}/subscriptions/new"), ADMIN, topics::new_subscription)
        .act(in_project!("/topics/{topic}/subscriptions/new"), ADMIN, topics::subscribe)
        .page(in_project!("/topics/{topic}/subscriptions/{name}/delete"), ADMIN, topics::ask_delete)
        .act(in_project!("/topics/{topic}/subscriptions/{name}/delete"), ADMIN, topics::delete)
}

fn of_incoming(pages: Pages) -> Pages {
    pages
        .page(in_project!("/sources"), READ, sources::list)
        .page(in_project!("/new-source"), ADMIN, source_forms::new)
        .act(in_project!("/new-source"), ADMIN, source_forms::create)
        .page(in_project!("/sources/{source}"), READ, sources::one)
        .act(in_project!("/sources/{source}/switch"), ADMIN, sources::switch)
        .page(in_project!("/sources/{source}/edit"), ADMIN, source_forms::edit)
        .act(in_project!("/sources/{source}/edit"), ADMIN, source_forms::change)
        .page(in_project!("/sources/{source}/rotate-token"), ADMIN, source_forms::ask_token)
        .act(in_project!("/sources/{source}/rotate-token"), ADMIN, source_forms::make_token)
        .page(in_project!("/sources/{source}/rotate-secret"), ADMIN, source_forms::ask_secret)
        .act(in_project!("/sources/{source}/rotate-secret"), ADMIN, source_forms::make_secret)
        .page(in_project!("/sources/{source}/replay"), OPERATE, source_forms::ask_replay)
        .act(in_project!("/sources/{source}/replay"), OPERATE, source_forms::replay)
        .page(in_project!("/sources/{source}/delete"), ADMIN, sources::ask_delete)
        .act(in_project!("/sources/{source}/delete"), ADMIN, sources::delete)
        .page(in_project!("/sources/{source}/destinations/new"), ADMIN, destinations::new)
        .act(in_project!("/sources/{source}/destinations/new"), ADMIN, destinations::create)
        .page(in_project!("/destinations/{destination}"), ADMIN, destinations::edit)
        .act(in_project!("/destinations/{destination}"), ADMIN, destinations::change)
        .page(in_project!("/destinations/{destination}/delete"), ADMIN, destinations::ask_delete)
        .act(in_project!("/destinations/{destination}/delete"), ADMIN, destinations::delete)
}

fn of_settings(pages: Pages) -> Pages {
    pages
        .page(in_project!("/security"), READ, security::list)
        .page(in_project!("/new-security/{kind}"), ADMIN, security::new)
        .act(in_project!("/new-security/{kind}"), ADMIN, security::create)
        .page(in_project!("/security/{name}"), ADMIN, security::edit)
        .act(in_project!("/security/{name}"), ADMIN, security::change)
        .page(in_project!("/security/{name}/delete"), ADMIN, security::ask_delete)
        .act(in_project!("/security/{name}/delete"), ADMIN, security::delete)
        .page(in_project!("/alerts"), READ, history::alerts)
        .page(in_project!("/audit"), ADMIN, history::audit)
        .page(in_project!("/configuration"), ADMIN, configuration::page)
        .act(in_project!("/configuration"), ADMIN, configuration::import)
        .page(in_project!("/configuration/export"), ADMIN, configuration::export)
        .page(in_project!("/settings"), ALL_ADMIN, projects::edit)
        .act(in_project!("/settings"), ALL_ADMIN, projects::change)
        .page("/ui/all-projects", ALL_ADMIN, projects::list)
        .page("/ui/all-projects/new", ALL_ADMIN, projects::new)
        .act("/ui/all-projects/new", ALL_ADMIN, projects::create)
        .page(in_project!("/keys"), ADMIN, keys::list)
        .page(in_project!("/keys/new"), ADMIN, keys::new)
        .act(in_project!("/keys/new"), ADMIN, keys::create)
        .page(in_project!("/keys/{key}/rotate"), ADMIN, keys::ask_rotate)
        .act(in_project!("/keys/{key}/rotate"), ADMIN, keys::rotate)
        .page(in_project!("/keys/{key}/revoke"), ADMIN, keys::ask_revoke)
        .act(in_project!("/keys/{key}/revoke"), ADMIN, keys::revoke)
        .page("/ui/keys", ALL_ADMIN, keys::list)
        .page("/ui/keys/new", ALL_ADMIN, keys::new)
        .act("/ui/keys/new", ALL_ADMIN, keys::create)
        .page("/ui/keys/{key}/rotate", ALL_ADMIN, keys::ask_rotate)
        .act("/ui/keys/{key}/rotate", ALL_ADMIN, keys::rotate)
        .page("/ui/keys/{key}/revoke", ALL_ADMIN, keys::ask_revoke)
        .act("/ui/keys/{key}/revoke", ALL_ADMIN, keys::revoke)
}
