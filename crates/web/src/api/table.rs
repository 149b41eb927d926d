//! Every route of the API with the scope that it needs. It must not know what a handler does.

use http::Method;
use postrider_core::access::{Scope, ScopeSet};

use super::{
    audit, configuration, connections, deliveries, delivery_acts, dlq, health, jobs, keys, metrics, projects,
    publish_batch, queues, raw, schedule, security, send, topic_messages, topics,
};
use crate::routes::{Needs, Routes};

const READ: ScopeSet = ScopeSet::of(&[Scope::Read]);
const SEND: ScopeSet = ScopeSet::of(&[Scope::Send]);
/// Takes messages out, and so sees them.
const CONSUME: ScopeSet = ScopeSet::of(&[Scope::Send, Scope::Read]);
const OPERATE: ScopeSet = ScopeSet::of(&[Scope::Operate]);
const ADMIN: ScopeSet = ScopeSet::of(&[Scope::Admin]);

/// A path below a project.
macro_rules! in_project {
    ($path:literal) => {
        concat!("/api/v1/projects/{project}", $path)
    };
}

pub fn routes() -> Routes {
    let routes = Routes::default()
        .add(Method::GET, "/health/live", Needs::Nobody, health::live)
        .add(Method::GET, "/health/ready", Needs::Nobody, health::ready)
        .add(Method::GET, "/metrics", Needs::Installation(READ), metrics::metrics)
        .add(Method::GET, "/api/v1/schedule", Needs::AnyKey(ScopeSet::NONE), schedule::of_preset)
        .add(Method::GET, "/api/v1/projects", Needs::AnyKey(READ), projects::list)
        .add(Method::POST, "/api/v1/projects", Needs::Installation(ADMIN), projects::create)
        .add(Method::GET, "/api/v1/keys", Needs::Installation(ADMIN), keys::list)
        .add(Method::POST, "/api/v1/keys", Needs::Installation(ADMIN), keys::create)
        .add(Method::GET, "/api/v1/keys/{key}", Needs::Installation(ADMIN), keys::one)
        .add(Method::DELETE, "/api/v1/keys/{key}", Needs::Installation(ADMIN), keys::revoke)
        .add(Method::POST, "/api/v1/keys/{key}/rotate", Needs::Installation(ADMIN), keys::rotate)
        .add(Method::POST, "/api/v1/import", Needs::AnyKey(ADMIN), configuration::import)
        .add(Method::GET, "/api/v1/export", Needs::AnyKey(ADMIN), configuration::export)
        .add(Method::GET, "/api/v1/audit", Needs::Installation(ADMIN), audit::of_all);
    of_topics(of_jobs(of_deliveries(of_security(of_connections(of_project(routes))))))
}

fn of_project(routes: Routes) -> Routes {
    let admin = Needs::InProject(ADMIN);
    routes
        .add(Method::GET, in_project!(""), Needs::InProject(READ), projects::one)
        .add(Method::PATCH, in_project!(""), Needs::Installation(ADMIN), projects::merge)
        .add(Method::GET, in_project!("/keys"), admin, keys::list)
        .add(Method::POST, in_project!("/keys"), admin, keys::create)
        .add(Method::GET, in_project!("/keys/{key}"), admin, keys::one)
        .add(Method::DELETE, in_project!("/keys/{key}"), admin, keys::revoke)
        .add(Method::POST, in_project!("/keys/{key}/rotate"), admin, keys::rotate)
        .add(Method::GET, in_project!("/audit"), admin, audit::of_project)
}

fn of_connections(routes: Routes) -> Routes {
    let [read, send, operate, admin] = [READ, SEND, OPERATE, ADMIN].map(Needs::InProject);
    routes
        .add(Method::GET, in_project!("/connections"), read, connections::list)
        .add(Method::POST, in_project!("/connections"), admin, connections::create)
        .add(Method::GET, in_project!("/connections/{name}"), read, connections::one)
        .add(Method::PUT, in_project!("/connections/{name}"), admin, connections::replace)
        .add(Method::PATCH, in_project!("/connections/{name}"), admin, connections::merge)
        .add(Method::DELETE, in_project!("/connections/{name}"), admin, connections::delete)
        .add(Method::POST, in_project!("/connections/{name}/pause"), operate, connections::pause)
        .add(Method::POST, in_project!("/connections/{name}/resume"), operate, connections::resume)
        .add(Method::POST, in_project!("/connections/{name}/send"), send, send::send)
        .add(Method::POST, in_project!("/connections/{name}/publish"), send, send::publish)
        .add(Method::POST, in_project!("/connections/{name}/publish/batch"), send, publish_batch::publish_batch)
        .add(Method::GET, in_project!("/connections/{name}/queue"), read, queues::queue)
        .add(Method::POST, in_project!("/connections/{name}/queue/attempt-now"), operate, queues::attempt_head_now)
        .add(Method::POST, in_project!("/connections/{name}/queue/set-aside"), operate, jobs::set_queue_aside)
        .add(Method::GET, in_project!("/connections/{name}/dlq"), read, queues::dead_letters)
        .add(Method::GET, in_project!("/connections/{name}/schedule"), read, schedule::of_connection)
        .add_any(in_project!("/connections/{name}/raw"), send, raw::raw)
        .add_any(in_project!("/connections/{name}/raw/"), send, raw::raw)
        .add_any(in_project!("/connections/{name}/raw/{*rest}"), send, raw::raw)
}

fn of_security(routes: Routes) -> Routes {
    let [read, admin] = [READ, ADMIN].map(Needs::InProject);
    routes
        .add(Method::GET, in_project!("/security"), read, security::list)
        .add(Method::POST, in_project!("/security"), admin, security::create)
        .add(Method::GET, in_project!("/security/{name}"), read, security::one)
        .add(Method::PUT, in_project!("/security/{name}"), admin, security::replace)
        .add(Method::PATCH, in_project!("/security/{name}"), admin, security::change)
        .add(Method::DELETE, in_project!("/security/{name}"), admin, security::delete)
}

fn of_deliveries(routes: Routes) -> Routes {
    let [read, operate] = [READ, OPERATE].map(Needs::InProject);
    routes
        .add(Method::GET, in_project!("/deliveries"), read, deliveries::list)
        .add(Method::GET, in_project!("/deliveries/{id}"), read, deliveries::one)
        .add(Method::PATCH, in_project!("/deliveries/{id}"), operate, delivery_acts::edit)
        .add(Method::DELETE, in_project!("/deliveries/{id}"), operate, delivery_acts::discard)
        .add(Method::GET, in_project!("/deliveries/{id}/attempts"), read, deliveries::attempts)
        .add(Method::GET, in_project!("/deliveries/{id}/body"), read, deliveries::body)
        .add(Method::POST, in_project!("/deliveries/{id}/retry"), operate, delivery_acts::retry)
        .add(Method::POST, in_project!("/deliveries/{id}/resend"), operate, delivery_acts::resend)
        .add(Method::POST, in_project!("/deliveries/{id}/set-aside"), operate, delivery_acts::set_aside)
        .add(Method::POST, in_project!("/deliveries/{id}/attempt-now"), operate, delivery_acts::attempt_now)
        .add(Method::POST, in_project!("/deliveries/{id}/forward"), operate, delivery_acts::forward)
        .add(Method::GET, in_project!("/dlq"), read, dlq::list)
        .add(Method::POST, in_project!("/dlq/retry"), operate, dlq::retry_several)
        .add(Method::GET, in_project!("/dlq/{id}"), read, dlq::one)
        .add(Method::POST, in_project!("/dlq/{id}/retry"), operate, delivery_acts::retry)
}

/// One act over many deliveries.
fn of_jobs(routes: Routes) -> Routes {
    let [read, operate] = [READ, OPERATE].map(Needs::InProject);
    routes
        .add(Method::POST, in_project!("/deliveries/retry"), operate, jobs::retry)
        .add(Method::POST, in_project!("/deliveries/resend"), operate, jobs::resend)
        .add(Method::POST, in_project!("/deliveries/discard"), operate, jobs::discard)
        .add(Method::POST, in_project!("/deliveries/set-aside"), operate, jobs::set_aside)
        .add(Method::POST, in_project!("/deliveries/forward"), operate, jobs::forward)
        .add(Method::POST, in_project!("/dlq/resend"), operate, jobs::resend_dead)
        .add(Method::POST, in_project!("/dlq/discard"), operate, jobs::discard_dead)
        .add(Method::POST, in_project!("/dlq/forward"), operate, jobs::forward_dead)
        .add(Method::GET, in_project!("/jobs"), read, jobs::list)
        .add(Method::GET, in_project!("/jobs/{id}"), read, jobs::one)
        .add(Method::POST, in_project!("/jobs/{id}/pause"), operate, jobs::pause)
        .add(Method::POST, in_project!("/jobs/{id}/resume"), operate, jobs::resume)
        .add(Method::POST, in_project!("/jobs/{id}/cancel"), operate, jobs::cancel)
}

fn of_topics(routes: Routes) -> Routes {
    let [read, send, consume, admin] = [READ, SEND, CONSUME, ADMIN].map(Needs::InProject);
    routes
        .add(Method::GET, in_project!("/topics"), read, topics::list)
        .add(Method::POST, in_project!("/topics"), admin, topics::create)
        .add(Method::GET, in_project!("/topics/{topic}"), read, topics::one)
        .add(Method::DELETE, in_project!("/topics/{topic}"), admin, topics::delete)
        .add(Method::POST, in_project!("/topics/{topic}/publish"), send, topic_messages::publish)
        .add(Method::GET, in_project!("/topics/{topic}/messages"), read, topic_messages::list)
        .add(Method::GET, in_project!("/topics/{topic}/subscriptions"), read, topics::subscriptions)
        .add(Method::POST, in_project!("/topics/{topic}/subscriptions"), admin, topics::subscribe)
        .add(Method::DELETE, in_project!("/topics/{topic}/subscriptions/{name}"), admin, topics::unsubscribe)
        .add(Method::POST, in_project!("/topics/{topic}/subscriptions/{name}/pull"), consume, topic_messages::pull)
        .add(
            Method::POST,
            in_project!("/topics/{topic}/subscriptions/{name}/ack"),
            consume,
            topic_messages::acknowledge,
        )
}
