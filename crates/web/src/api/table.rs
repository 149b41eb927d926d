//! Every route of the API with the scope that it needs and its description. It must not know what a handler does.

use postrider_core::access::{Scope, ScopeSet};

use super::{
    alerts, audit, channels, configuration, connections, deliveries, delivery_acts, destinations, dlq, docs,
    documentation, endpoint_acts, endpoints, events, flow, forwards, health, ingress, jobs, keys, metrics, ping,
    projects, publish_batch, queues, raw, schedule, security, send, services, sources, subscriptions, topic_messages,
    topics, transformations, users,
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
        .get("/health/live", Needs::Nobody, health::live, docs::health::live)
        .get("/health/ready", Needs::Nobody, health::ready, docs::health::ready)
        .get("/openapi.json", Needs::Nobody, documentation::openapi, docs::documentation::openapi)
        .get("/docs", Needs::Nobody, documentation::page, docs::documentation::page)
        .get("/docs/style.css", Needs::Nobody, documentation::style, docs::documentation::style)
        .get("/metrics", Needs::Installation(READ), metrics::metrics, docs::metrics::metrics)
        .get("/api/v1/schedule", Needs::AnyKey(ScopeSet::NONE), schedule::of_preset, docs::schedule::of_preset)
        .get("/api/v1/projects", Needs::AnyKey(READ), projects::list, docs::projects::list)
        .post("/api/v1/projects", Needs::Installation(ADMIN), projects::create, docs::projects::create)
        .get("/api/v1/keys", Needs::Installation(ADMIN), keys::list, docs::keys::list_of_installation)
        .post("/api/v1/keys", Needs::Installation(ADMIN), keys::create, docs::keys::create_of_installation)
        .get("/api/v1/keys/{key}", Needs::Installation(ADMIN), keys::one, docs::keys::one_of_installation)
        .delete("/api/v1/keys/{key}", Needs::Installation(ADMIN), keys::revoke, docs::keys::revoke_of_installation)
        .post("/api/v1/keys/{key}/rotate", Needs::Installation(ADMIN), keys::rotate, docs::keys::rotate_of_installation)
        .post("/api/v1/import", Needs::AnyKey(ADMIN), configuration::import, docs::configuration::import)
        .get("/api/v1/export", Needs::AnyKey(ADMIN), configuration::export, docs::configuration::export)
        .get("/api/v1/alerts", Needs::Installation(READ), alerts::of_installation, docs::alerts::of_installation)
        .get("/api/v1/audit", Needs::Installation(ADMIN), audit::of_all, docs::audit::of_all);
    let routes = of_deliveries(of_security(of_channels(of_connections(of_project(routes)))));
    of_incoming(of_webhooks(of_people(of_topics(of_jobs(routes)))))
}

fn of_people(routes: Routes) -> Routes {
    let (admin, all) = (Needs::InProject(ADMIN), Needs::Installation(ADMIN));
    routes
        .get("/api/v1/users", all, users::list, docs::users::list_of_installation)
        .post("/api/v1/users", all, users::create, docs::users::create_of_installation)
        .get("/api/v1/users/{user}", all, users::one, docs::users::one_of_installation)
        .patch("/api/v1/users/{user}", all, users::change, docs::users::change_of_installation)
        .delete("/api/v1/users/{user}", all, users::delete, docs::users::delete_of_installation)
        .get(in_project!("/users"), admin, users::list, docs::users::list)
        .post(in_project!("/users"), admin, users::create, docs::users::create)
        .get(in_project!("/users/{user}"), admin, users::one, docs::users::one)
        .patch(in_project!("/users/{user}"), admin, users::change, docs::users::change)
        .delete(in_project!("/users/{user}"), admin, users::delete, docs::users::delete)
}

fn of_project(routes: Routes) -> Routes {
    let admin = Needs::InProject(ADMIN);
    routes
        .get(in_project!(""), Needs::InProject(READ), projects::one, docs::projects::one)
        .patch(in_project!(""), Needs::Installation(ADMIN), projects::merge, docs::projects::merge)
        .get(in_project!("/keys"), admin, keys::list, docs::keys::list)
        .post(in_project!("/keys"), admin, keys::create, docs::keys::create)
        .get(in_project!("/keys/{key}"), admin, keys::one, docs::keys::one)
        .delete(in_project!("/keys/{key}"), admin, keys::revoke, docs::keys::revoke)
        .post(in_project!("/keys/{key}/rotate"), admin, keys::rotate, docs::keys::rotate)
        .post(in_project!("/schedule"), Needs::InProject(READ), schedule::of_settings, docs::schedule::of_settings)
        .get(in_project!("/flow"), Needs::InProject(READ), flow::of_project, docs::flow::of_project)
        .get(in_project!("/flow/connections"), Needs::InProject(READ), flow::of_connections, docs::flow::of_connections)
        .get(in_project!("/alerts"), Needs::InProject(READ), alerts::of_project, docs::alerts::of_project)
        .get(in_project!("/audit"), admin, audit::of_project, docs::audit::of_project)
}

fn of_connections(routes: Routes) -> Routes {
    let [read, send, operate, admin] = [READ, SEND, OPERATE, ADMIN].map(Needs::InProject);
    routes
        .get(in_project!("/connections"), read, connections::list, docs::connections::list)
        .post(in_project!("/connections"), admin, connections::create, docs::connections::create)
        .get(in_project!("/connections/{name}"), read, connections::one, docs::connections::one)
        .put(in_project!("/connections/{name}"), admin, connections::replace, docs::connections::replace)
        .patch(in_project!("/connections/{name}"), admin, connections::merge, docs::connections::merge)
        .delete(in_project!("/connections/{name}"), admin, connections::delete, docs::connections::delete)
        .post(in_project!("/connections/{name}/pause"), operate, connections::pause, docs::connections::pause)
        .post(in_project!("/connections/{name}/resume"), operate, connections::resume, docs::connections::resume)
        .post(in_project!("/connections/{name}/ping"), operate, ping::ping, docs::ping::ping)
        .post_keyed(in_project!("/connections/{name}/send"), send, send::send, docs::send::send)
        .post_keyed(in_project!("/connections/{name}/publish"), send, send::publish, docs::send::publish)
        .post_keyed(
            in_project!("/connections/{name}/publish/batch"),
            send,
            publish_batch::publish_batch,
            docs::publish_batch::publish_batch,
        )
        .get(in_project!("/connections/{name}/queue"), read, queues::queue, docs::queues::queue)
        .post(
            in_project!("/connections/{name}/queue/attempt-now"),
            operate,
            queues::attempt_head_now,
            docs::queues::attempt_head_now,
        )
        .post(
            in_project!("/connections/{name}/queue/set-aside"),
            operate,
            jobs::set_queue_aside,
            docs::jobs::set_queue_aside,
        )
        .get(in_project!("/connections/{name}/dlq"), read, queues::dead_letters, docs::queues::dead_letters)
        .get(in_project!("/connections/{name}/schedule"), read, schedule::of_connection, docs::schedule::of_connection)
        .any(in_project!("/connections/{name}/raw"), send, raw::raw, docs::raw::raw)
        .any(in_project!("/connections/{name}/raw/"), send, raw::raw, docs::raw::raw)
        .any(in_project!("/connections/{name}/raw/{*rest}"), send, raw::raw, docs::raw::raw)
}

fn of_security(routes: Routes) -> Routes {
    let [read, admin] = [READ, ADMIN].map(Needs::InProject);
    routes
        .get(in_project!("/security"), read, security::list, docs::security::list)
        .post(in_project!("/security"), admin, security::create, docs::security::create)
        .get(in_project!("/security/{name}"), read, security::one, docs::security::one)
        .put(in_project!("/security/{name}"), admin, security::replace, docs::security::replace)
        .patch(in_project!("/security/{name}"), admin, security::change, docs::security::change)
        .delete(in_project!("/security/{name}"), admin, security::delete, docs::security::delete)
}

/// Requests to the channels themselves are no routes of the API: they are at the addresses that the channels say.
fn of_channels(routes: Routes) -> Routes {
    let [read, operate, admin] = [READ, OPERATE, ADMIN].map(Needs::InProject);
    routes
        .get(in_project!("/channels"), read, channels::list, docs::channels::list)
        .post(in_project!("/channels"), admin, channels::create, docs::channels::create)
        .get(in_project!("/channels/{name}"), read, channels::one, docs::channels::one)
        .put(in_project!("/channels/{name}"), admin, channels::replace, docs::channels::replace)
        .patch(in_project!("/channels/{name}"), admin, channels::merge, docs::channels::merge)
        .delete(in_project!("/channels/{name}"), admin, channels::delete, docs::channels::delete)
        .post(in_project!("/channels/{name}/pause"), operate, channels::pause, docs::channels::pause)
        .post(in_project!("/channels/{name}/resume"), operate, channels::resume, docs::channels::resume)
        .get(in_project!("/channels/{name}/queue"), read, channels::queue, docs::channels::queue)
        .get(in_project!("/channels/{name}/dlq"), read, channels::dead_letters, docs::channels::dead_letters)
        .post(
            in_project!("/channels/{name}/queue/attempt-now"),
            operate,
            channels::attempt_head_now,
            docs::channels::attempt_head_now,
        )
        .get(in_project!("/services"), read, services::list, docs::services::list)
        .post(in_project!("/services"), admin, services::create, docs::services::create)
        .get(in_project!("/services/{name}"), read, services::one, docs::services::one)
        .put(in_project!("/services/{name}"), admin, services::replace, docs::services::replace)
        .patch(in_project!("/services/{name}"), admin, services::merge, docs::services::merge)
        .delete(in_project!("/services/{name}"), admin, services::delete, docs::services::delete)
        .post(in_project!("/services/{name}/pause"), operate, services::pause, docs::services::pause)
        .post(in_project!("/services/{name}/resume"), operate, services::resume, docs::services::resume)
}

fn of_deliveries(routes: Routes) -> Routes {
    let [read, operate] = [READ, OPERATE].map(Needs::InProject);
    routes
        .get(in_project!("/deliveries"), read, deliveries::list, docs::deliveries::list)
        .get(in_project!("/deliveries/{id}"), read, deliveries::one, docs::deliveries::one)
        .patch(in_project!("/deliveries/{id}"), operate, delivery_acts::edit, docs::delivery_acts::edit)
        .delete(in_project!("/deliveries/{id}"), operate, delivery_acts::discard, docs::delivery_acts::discard)
        .get(in_project!("/deliveries/{id}/attempts"), read, deliveries::attempts, docs::deliveries::attempts)
        .get(in_project!("/deliveries/{id}/body"), read, deliveries::body, docs::deliveries::body)
        .post(in_project!("/deliveries/{id}/retry"), operate, delivery_acts::retry, docs::delivery_acts::retry)
        .post(in_project!("/deliveries/{id}/resend"), operate, delivery_acts::resend, docs::delivery_acts::resend)
        .post(
            in_project!("/deliveries/{id}/set-aside"),
            operate,
            delivery_acts::set_aside,
            docs::delivery_acts::set_aside,
        )
        .post(
            in_project!("/deliveries/{id}/attempt-now"),
            operate,
            delivery_acts::attempt_now,
            docs::delivery_acts::attempt_now,
        )
        .post(in_project!("/deliveries/{id}/forward"), operate, delivery_acts::forward, docs::delivery_acts::forward)
        .get(in_project!("/dlq"), read, dlq::list, docs::dlq::list)
        .post(in_project!("/dlq/retry"), operate, dlq::retry_several, docs::dlq::retry_several)
        .get(in_project!("/dlq/{id}"), read, dlq::one, docs::dlq::one)
        .post(in_project!("/dlq/{id}/retry"), operate, delivery_acts::retry, docs::dlq::retry)
}

/// One act over many deliveries.
fn of_jobs(routes: Routes) -> Routes {
    let [read, operate] = [READ, OPERATE].map(Needs::InProject);
    routes
        .post(in_project!("/deliveries/retry"), operate, jobs::retry, docs::jobs::retry)
        .post(in_project!("/deliveries/resend"), operate, jobs::resend, docs::jobs::resend)
        .post(in_project!("/deliveries/discard"), operate, jobs::discard, docs::jobs::discard)
        .post(in_project!("/deliveries/set-aside"), operate, jobs::set_aside, docs::jobs::set_aside)
        .post(in_project!("/deliveries/forward"), operate, jobs::forward, docs::jobs::forward)
        .post(in_project!("/dlq/resend"), operate, jobs::resend_dead, docs::jobs::resend_dead)
        .post(in_project!("/dlq/discard"), operate, jobs::discard_dead, docs::jobs::discard_dead)
        .post(in_project!("/dlq/forward"), operate, jobs::forward_dead, docs::jobs::forward_dead)
        .get(in_project!("/jobs"), read, jobs::list, docs::jobs::list)
        .get(in_project!("/jobs/{id}"), read, jobs::one, docs::jobs::one)
        .post(in_project!("/jobs/{id}/pause"), operate, jobs::pause, docs::jobs::pause)
        .post(in_project!("/jobs/{id}/resume"), operate, jobs::resume, docs::jobs::resume)
        .post(in_project!("/jobs/{id}/cancel"), operate, jobs::cancel, docs::jobs::cancel)
}

fn of_webhooks(routes: Routes) -> Routes {
    let [read, send, admin] = [READ, SEND, ADMIN].map(Needs::InProject);
    of_endpoint_acts(routes)
        .post(in_project!("/events"), send, events::publish, docs::events::publish)
        .get(in_project!("/events"), read, events::list, docs::events::list)
        .post(in_project!("/events/batch"), send, events::publish_batch, docs::events::publish_batch)
        .get(in_project!("/events/{event}"), read, events::one, docs::events::one)
        .get(in_project!("/endpoints"), read, endpoints::list, docs::endpoints::list)
        .post(in_project!("/endpoints"), admin, endpoints::create, docs::endpoints::create)
        .get(in_project!("/endpoints/{endpoint}"), read, endpoints::one, docs::endpoints::one)
        .put(in_project!("/endpoints/{endpoint}"), admin, endpoints::replace, docs::endpoints::replace)
        .patch(in_project!("/endpoints/{endpoint}"), admin, endpoints::change, docs::endpoints::change)
        .delete(in_project!("/endpoints/{endpoint}"), admin, endpoints::delete, docs::endpoints::delete)
        .post(
            in_project!("/endpoints/{endpoint}/rotate-secret"),
            admin,
            endpoints::rotate_secret,
            docs::endpoints::rotate_secret,
        )
        .post(in_project!("/transformations/preview"), admin, transformations::preview, docs::transformations::preview)
        .get(in_project!("/subscriptions"), read, subscriptions::list, docs::subscriptions::list)
        .post(in_project!("/subscriptions"), admin, subscriptions::create, docs::subscriptions::create)
        .get(in_project!("/subscriptions/{subscription}"), read, subscriptions::one, docs::subscriptions::one)
        .put(in_project!("/subscriptions/{subscription}"), admin, subscriptions::replace, docs::subscriptions::replace)
        .patch(in_project!("/subscriptions/{subscription}"), admin, subscriptions::change, docs::subscriptions::change)
        .delete(in_project!("/subscriptions/{subscription}"), admin, subscriptions::delete, docs::subscriptions::delete)
}

/// R12.
fn of_incoming(routes: Routes) -> Routes {
    let [read, operate, admin] = [READ, OPERATE, ADMIN].map(Needs::InProject);
    routes
        .post_keyed("/ingress/{token}", Needs::Nobody, ingress::receive, docs::ingress::receive)
        .get(in_project!("/sources"), read, sources::list, docs::sources::list)
        .post(in_project!("/sources"), admin, sources::create, docs::sources::create)
        .get(in_project!("/sources/{source}"), read, sources::one, docs::sources::one)
        .put(in_project!("/sources/{source}"), admin, sources::replace, docs::sources::replace)
        .patch(in_project!("/sources/{source}"), admin, sources::change, docs::sources::change)
        .delete(in_project!("/sources/{source}"), admin, sources::delete, docs::sources::delete)
        .post(in_project!("/sources/{source}/rotate-token"), admin, sources::rotate_token, docs::sources::rotate_token)
        .post(
            in_project!("/sources/{source}/rotate-secret"),
            admin,
            sources::rotate_secret,
            docs::sources::rotate_secret,
        )
        .post(in_project!("/sources/{source}/replay"), operate, sources::replay, docs::sources::replay)
        .get(in_project!("/destinations"), read, destinations::list, docs::destinations::list)
        .post(in_project!("/destinations"), admin, destinations::create, docs::destinations::create)
        .get(in_project!("/destinations/{destination}"), read, destinations::one, docs::destinations::one)
        .patch(in_project!("/destinations/{destination}"), admin, destinations::change, docs::destinations::change)
        .delete(in_project!("/destinations/{destination}"), admin, destinations::delete, docs::destinations::delete)
        .get(in_project!("/forwards"), read, forwards::list, docs::forwards::list)
        .get(in_project!("/forwards/{id}"), read, forwards::one, docs::forwards::one)
        .post(in_project!("/forwards/{id}/retry"), operate, forwards::retry, docs::forwards::retry_forward)
        .get(in_project!("/incoming-dlq"), read, forwards::failed, docs::forwards::failed)
        .post(in_project!("/incoming-dlq/retry"), operate, forwards::retry_several, docs::forwards::retry_several)
        .get(in_project!("/incoming-dlq/{id}"), read, forwards::one_failed, docs::forwards::one_failed)
        .post(in_project!("/incoming-dlq/{id}/retry"), operate, forwards::retry, docs::forwards::retry)
}

/// What changes no setting.
fn of_endpoint_acts(routes: Routes) -> Routes {
    let [read, operate] = [READ, OPERATE].map(Needs::InProject);
    routes
        .post(in_project!("/endpoints/{endpoint}/test"), operate, endpoint_acts::test, docs::endpoint_acts::test)
        .post(in_project!("/endpoints/{endpoint}/verify"), operate, endpoint_acts::verify, docs::endpoint_acts::verify)
        .post(in_project!("/endpoints/{endpoint}/enable"), operate, endpoint_acts::enable, docs::endpoint_acts::enable)
        .post(
            in_project!("/endpoints/{endpoint}/disable"),
            operate,
            endpoint_acts::disable,
            docs::endpoint_acts::disable,
        )
        .get(in_project!("/endpoints/{endpoint}/health"), read, endpoint_acts::health, docs::endpoint_acts::health)
}

fn of_topics(routes: Routes) -> Routes {
    let [read, send, consume, admin] = [READ, SEND, CONSUME, ADMIN].map(Needs::InProject);
    routes
        .get(in_project!("/topics"), read, topics::list, docs::topics::list)
        .post(in_project!("/topics"), admin, topics::create, docs::topics::create)
        .get(in_project!("/topics/{topic}"), read, topics::one, docs::topics::one)
        .delete(in_project!("/topics/{topic}"), admin, topics::delete, docs::topics::delete)
        .post(in_project!("/topics/{topic}/publish"), send, topic_messages::publish, docs::topic_messages::publish)
        .get(in_project!("/topics/{topic}/messages"), read, topic_messages::list, docs::topic_messages::list)
        .get(in_project!("/topics/{topic}/subscriptions"), read, topics::subscriptions, docs::topics::subscriptions)
        .post(in_project!("/topics/{topic}/subscriptions"), admin, topics::subscribe, docs::topics::subscribe)
        .delete(
            in_project!("/topics/{topic}/subscriptions/{name}"),
            admin,
            topics::unsubscribe,
            docs::topics::unsubscribe,
        )
        .post(
            in_project!("/topics/{topic}/subscriptions/{name}/pull"),
            consume,
            topic_messages::pull,
            docs::topic_messages::pull,
        )
        .post(
            in_project!("/topics/{topic}/subscriptions/{name}/ack"),
            consume,
            topic_messages::acknowledge,
            docs::topic_messages::acknowledge,
        )
}
