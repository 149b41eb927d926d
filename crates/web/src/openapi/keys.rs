//! Connections and security definitions as schemas, made of the key definitions that the server reads with and `docs/settings.md` is
//! written from. Nothing is said here that those do not say.

use postrider_core::connection::ConnectionKind;
use postrider_core::security::SecurityKind;
use postrider_core::settings::{self, KeyDoc, Shape, keys_of, security_keys};
use serde_json::{Value, json};

use super::schema::{Member, Schema, optional};

/// What one key may be.
pub fn of_key(doc: &KeyDoc) -> Schema {
    let own = match doc.shape {
        Shape::Text => Schema::text(),
        Shape::Flag => Schema::flag(),
        Shape::Whole { min, max } => Schema::whole(min.into(), max.into()),
        Shape::Decimal { min, max } => Schema::decimal(min, max),
        Shape::OneOf(words) => Schema::words(words.iter().copied()),
        Shape::Texts => Schema::either([Schema::list(Schema::text()), Schema::text()]),
        Shape::Numbers { min, max, count_max } => {
            let list = Schema::list(Schema::decimal(min, max)).length(1, count_max);
            Schema::either([list, Schema::text()])
        }
        Shape::Words { count_max } => {
            Schema::either([Schema::text(), Schema::list(Schema::text()).length(0, count_max)])
        }
        Shape::Pairs { count_max } => Schema::map(Schema::text()).with("maxProperties", count_max.into()),
    };
    let own = match doc.default_value() {
        Some(default) => own.default_value(default),
        None => own,
    };
    let own = if doc.is_secret { own.with("writeOnly", true.into()) } else { own };
    let default = match doc.default {
        "" => "an empty text",
        words => words,
    };
    own.describe(format!("{} Allowed: {}. Default: {default}.", doc.meaning, doc.allowed))
}

fn of_keys<'a>(keys: impl Iterator<Item = &'a KeyDoc>) -> Vec<Member> {
    keys.map(|doc| optional(doc.name, of_key(doc))).collect()
}

/// The keys of a connection as they are written, without `name` and `type`.
pub fn connection(kind: ConnectionKind) -> Vec<Member> {
    of_keys(keys_of(kind))
}

/// Names that the integration platform has and that mean nothing here: taken with a warning (D18). Whole families by how they begin.
pub fn passed_over(kind: ConnectionKind) -> (Vec<Member>, Option<Value>) {
    let (keys, families) = settings::passed_over(kind);
    let without_effect = |key: &&'static str| optional(*key, Schema::any().describe("Accepted, and without effect."));
    let pattern = (!families.is_empty()).then(|| json!({format!("^({})", families.join("|")): true}));
    (keys.iter().map(without_effect).collect(), pattern)
}

/// The keys of a security definition, its secret among them or not.
pub fn security(kind: SecurityKind, with_secret: bool) -> Vec<Member> {
    of_keys(security_keys(kind).iter().filter(|doc| with_secret || doc.name != kind.secret_key()))
}
