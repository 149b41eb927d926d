//! What is said about one route: its name, what it takes, what it answers. What follows from the route itself (path, scopes, and the
//! refusals that every such route has) is not said here; `document` adds it.

use http::StatusCode;
use serde_json::Value;

use super::schema::Schema;
use super::tag::Tag;

/// The description of a route, made when the document is asked for.
pub type Describe = fn() -> Operation;

#[derive(Clone, Debug)]
pub struct Operation {
    pub id: &'static str,
    pub tag: Tag,
    pub summary: &'static str,
    pub details: String,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    pub answers: Vec<Answer>,
    /// Refusals beside those that follow from the route.
    pub refusals: Vec<StatusCode>,
    /// Neither its query string nor its headers are looked at, so nothing about them is refused.
    pub takes_anything: bool,
    pub is_raw: bool,
}

/// In the query string or in a header.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub place: Place,
    pub schema: Schema,
    pub meaning: String,
    pub is_required: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Query,
    Header,
}

#[derive(Clone, Debug)]
pub struct Body {
    pub is_required: bool,
    pub contents: Vec<Content>,
}

#[derive(Clone, Debug)]
pub struct Content {
    pub media_type: &'static str,
    pub schema: Schema,
    pub example: Option<Value>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    /// `None`: any other status, as on the raw path.
    pub status: Option<StatusCode>,
    pub meaning: &'static str,
    pub contents: Vec<Content>,
    pub headers: Vec<(&'static str, &'static str)>,
}

pub const JSON: &str = "application/json";

impl Operation {
    /// `id` is how generated clients call it: camelCase, unique.
    pub fn new(tag: Tag, id: &'static str, summary: &'static str) -> Operation {
        Operation {
            id,
            tag,
            summary,
            details: String::new(),
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: Vec::new(),
            takes_anything: false,
            is_raw: false,
        }
    }

    #[must_use]
    pub fn details(mut self, words: impl Into<String>) -> Operation {
        self.details = words.into();
        self
    }

    /// A parameter of the query string.
    #[must_use]
    pub fn query(self, name: impl Into<String>, schema: Schema, meaning: impl Into<String>) -> Operation {
        self.parameter(name.into(), Place::Query, schema, meaning.into(), false)
    }

    /// The same, one that must be there.
    #[must_use]
    pub fn required_query(self, name: &str, schema: Schema, meaning: &str) -> Operation {
        self.parameter(name.to_owned(), Place::Query, schema, meaning.to_owned(), true)
    }

    #[must_use]
    pub fn header(self, name: &str, schema: Schema, meaning: &str) -> Operation {
        self.parameter(name.to_owned(), Place::Header, schema, meaning.to_owned(), false)
    }

    fn parameter(
        mut self,
        name: String,
        place: Place,
        schema: Schema,
        meaning: String,
        is_required: bool,
    ) -> Operation {
        self.parameters.push(Parameter { name, place, schema, meaning, is_required });
        self
    }

    /// A JSON body that must be there.
    #[must_use]
    pub fn takes(self, schema: Schema) -> Operation {
        self.takes_as(&[JSON], schema, true, None)
    }

    /// The same, with an example of its own.
    #[must_use]
    pub fn takes_such_as(self, schema: Schema, example: Value) -> Operation {
        self.takes_as(&[JSON], schema, true, Some(example))
    }

    /// A JSON body that may be left out, with an example of its own.
    #[must_use]
    pub fn may_take_such_as(self, schema: Schema, example: Value) -> Operation {
        self.takes_as(&[JSON], schema, false, Some(example))
    }

    /// A JSON body that may be left out.
    #[must_use]
    pub fn may_take(self, schema: Schema) -> Operation {
        self.takes_as(&[JSON], schema, false, None)
    }

    /// A body in one of several media types.
    #[must_use]
    pub fn takes_as(
        mut self,
        media_types: &[&'static str],
        schema: Schema,
        is_required: bool,
        example: Option<Value>,
    ) -> Operation {
        let contents = media_types.iter().map(|media_type| Content {
            media_type,
            schema: schema.clone(),
            example: example.clone(),
        });
        let body = self.body.get_or_insert(Body { is_required, contents: Vec::new() });
        body.contents.extend(contents);
        self
    }

    /// An answer in JSON.
    #[must_use]
    pub fn answers(self, status: StatusCode, meaning: &'static str, schema: Schema) -> Operation {
        self.answers_as(Some(status), meaning, JSON, schema)
    }

    /// 200 in JSON.
    #[must_use]
    pub fn gives(self, meaning: &'static str, schema: Schema) -> Operation {
        self.answers(StatusCode::OK, meaning, schema)
    }

    /// 201 in JSON.
    #[must_use]
    pub fn creates(self, meaning: &'static str, schema: Schema) -> Operation {
        self.answers(StatusCode::CREATED, meaning, schema)
    }

    /// 200 with a page: `{"data": […], "next_cursor": …}`.
    #[must_use]
    pub fn lists(self, meaning: &'static str, entry: Schema) -> Operation {
        self.gives(meaning, super::shapes::page(entry))
    }

    /// 204 without a body.
    #[must_use]
    pub fn empties(mut self, meaning: &'static str) -> Operation {
        let status = Some(StatusCode::NO_CONTENT);
        self.answers.push(Answer { status, meaning, contents: Vec::new(), headers: Vec::new() });
        self
    }

    #[must_use]
    pub fn answers_as(
        mut self,
        status: Option<StatusCode>,
        meaning: &'static str,
        media_type: &'static str,
        schema: Schema,
    ) -> Operation {
        let contents = vec![Content { media_type, schema, example: None }];
        self.answers.push(Answer { status, meaning, contents, headers: Vec::new() });
        self
    }

    /// A header of the answer described last.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, meaning: &'static str) -> Operation {
        if let Some(answer) = self.answers.last_mut() {
            answer.headers.push((name, meaning));
        }
        self
    }

    /// Refusals that do not follow from the route. Those that do: 400, and with a key 401, 403, 404 below a project, 503; with a body 408,
    /// 413, 415, 422.
    #[must_use]
    pub fn refuses(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Operation {
        self.refusals.extend(statuses);
        self
    }

    /// `limit` and `cursor`, as every list takes them.
    #[must_use]
    pub fn pages(self) -> Operation {
        use crate::read::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX};
        let limit = Schema::whole(1, PAGE_ROWS_MAX.into()).default_value(PAGE_ROWS_DEFAULT);
        self.query("limit", limit, "Entries of a page, at most.").query(
            "cursor",
            Schema::text().example(""),
            "The `next_cursor` of the page before; empty or left out for the first page.",
        )
    }

    /// The order of what is listed, beside `pages`.
    pub fn sorts(self) -> Operation {
        let words = Schema::words(crate::api::SORT_WORDS);
        self.query("sort", words, "What the list goes by; with `-` in front the other way round. Left out: as things were made. A cursor belongs to its order.")
    }

    /// D15. Those that the gate sees to have it without asking.
    #[must_use]
    pub fn takes_idempotency_key(self) -> Operation {
        use crate::api::idempotency::KEY_BYTES_MAX;
        let key = Schema::text().length(1, KEY_BYTES_MAX).pattern("^[ -~]+$").example("invoice-17");
        let meaning = "A repeat with the same key and the same request within 24 hours is given the first answer again; another request under \
                       the key is answered 409.";
        self.header("Idempotency-Key", key, meaning).refuses([StatusCode::CONFLICT])
    }

    /// Anything may be in its query string and its headers.
    #[must_use]
    pub fn takes_anything(mut self) -> Operation {
        self.takes_anything = true;
        self
    }

    /// Nothing is read as ours: the request is the remote system's.
    #[must_use]
    pub fn is_raw(mut self) -> Operation {
        self.is_raw = true;
        self.takes_anything = true;
        self
    }
}
