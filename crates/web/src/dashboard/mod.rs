//! The dashboard at `/ui`: one file a page, its template beside it.
//!
//! It is a client of the API within the process (`ask`): the same gate, the same scopes, the same refusals, never a second way to act. It must not
//! know of the engine's insides, of the store or of policies. Pages work without script; everything they need is in the binary.
//!
//! A new page: a file with a handler that takes a `Visit` (and a `Form` when it acts), its template beside it, a line in `table` with the scope, and a
//! line in the navigation of `frame`. It shows with `visit::show`, acts through `visit.api`, and ends with `visit.done` or `visit.not_done`.
//! Whatever shows by itself what changes stands in an element with `data-live`.

mod account;
mod acts;
mod answer;
mod ask;
mod assets;
mod board;
mod body;
mod bulk;
mod charts;
mod configuration;
mod connection;
mod connections;
mod delivery;
mod destinations;
mod door;
mod endpoints;
mod families;
mod fault;
mod fields;
mod filters;
mod first;
mod form;
mod forms;
mod frame;
mod history;
mod jobs;
mod keys;
mod labels;
mod listing;
mod lists;
mod live;
mod log_in;
mod one;
mod order;
mod overview;
mod parts;
mod projects;
mod question;
mod routes;
mod schedule;
mod security;
mod services;
mod session;
mod settings;
mod source_forms;
mod sources;
mod subscriptions;
mod table;
mod theme;
mod timeline;
mod topics;
mod trial;
mod users;
mod visit;

pub use table::site;
