//! A JSON Schema (2020-12, the one of OpenAPI 3.1) as a value that is built, and the example that follows from it.
//!
//! It must not know of the API.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value, json};

/// What a value may be.
#[derive(Clone, Debug)]
pub struct Schema {
    shape: Shape,
    /// `description`, `default` and the like: said beside whatever the shape says.
    notes: Map<String, Value>,
    example: Option<Value>,
}

#[derive(Clone, Debug)]
enum Shape {
    Plain(Map<String, Value>),
    Object {
        members: Vec<Member>,
        is_closed: bool,
    },
    /// Any names, each with such a value.
    Map(Box<Schema>),
    List {
        entry: Box<Schema>,
        bounds: Map<String, Value>,
    },
    Either(Vec<Schema>),
    Named(&'static str, Box<Schema>),
}

/// One member of an object.
#[derive(Clone, Debug)]
pub struct Member {
    name: String,
    schema: Schema,
    is_required: bool,
    /// Whether the example has it.
    is_shown: bool,
}

impl Member {
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A member that is always there.
pub fn always(name: impl Into<String>, schema: Schema) -> Member {
    Member { name: name.into(), schema, is_required: true, is_shown: true }
}

/// A member of an answer that is not always there.
pub fn sometimes(name: impl Into<String>, schema: Schema) -> Member {
    Member { name: name.into(), schema, is_required: false, is_shown: true }
}

/// The same for one that is mostly not there, and not in the example.
pub fn rarely(name: impl Into<String>, schema: Schema) -> Member {
    Member { is_shown: false, ..sometimes(name, schema) }
}

/// A member of a request that may be left out; null is as good as absent.
pub fn optional(name: impl Into<String>, schema: Schema) -> Member {
    Member { name: name.into(), schema: schema.or_null(), is_required: false, is_shown: true }
}

/// The schemas that have names, as they were met.
pub type Components = BTreeMap<&'static str, Value>;

impl Schema {
    fn plain(kind: &str) -> Schema {
        Schema::of(Shape::Plain(Map::from_iter([("type".to_owned(), kind.into())])))
    }

    fn of(shape: Shape) -> Schema {
        Schema { shape, notes: Map::new(), example: None }
    }

    /// Anything at all.
    pub fn any() -> Schema {
        Schema::of(Shape::Plain(Map::new()))
    }

    pub fn null() -> Schema {
        Schema::plain("null").example(Value::Null)
    }

    pub fn text() -> Schema {
        Schema::plain("string")
    }

    /// A text of a known format, such as `date-time`.
    pub fn formatted(format: &str, example: &str) -> Schema {
        Schema::text().with("format", format.into()).example(example)
    }

    pub fn time() -> Schema {
        Schema::formatted("date-time", "2026-03-12T12:05:34.730Z")
    }

    /// An id with its prefix: 26 digits and letters without i, l, o, u.
    pub fn id(prefix: &str) -> Schema {
        Schema::text()
            .with("pattern", format!("^{prefix}[0-7][0-9a-hjkmnp-tv-z]{{25}}$").into())
            .example(format!("{prefix}01k3v9q8h4m2n6p7r0s5t1w2x3"))
    }

    pub fn flag() -> Schema {
        Schema::plain("boolean").example(false)
    }

    pub fn whole(min: u64, max: u64) -> Schema {
        Schema::plain("integer").with("minimum", min.into()).with("maximum", max.into()).example(min)
    }

    /// How many of something.
    pub fn count() -> Schema {
        Schema::plain("integer").with("minimum", 0.into()).example(1)
    }

    pub fn decimal(min: f64, max: f64) -> Schema {
        Schema::plain("number").with("minimum", number(min)).with("maximum", number(max)).example(number(min))
    }

    pub fn number() -> Schema {
        Schema::plain("number").example(1)
    }

    /// One of these texts.
    pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Schema {
        let words: Vec<Value> = words.into_iter().map(Value::from).collect();
        let first = words.first().cloned().unwrap_or_default();
        Schema::text().with("enum", Value::Array(words)).example(first)
    }

    pub fn object(members: impl IntoIterator<Item = Member>) -> Schema {
        Schema::of(Shape::Object { members: members.into_iter().collect(), is_closed: false })
    }

    /// An object of a request: what it does not name is refused.
    pub fn closed(members: impl IntoIterator<Item = Member>) -> Schema {
        Schema::of(Shape::Object { members: members.into_iter().collect(), is_closed: true })
    }

    pub fn map(value: Schema) -> Schema {
        Schema::of(Shape::Map(Box::new(value)))
    }

    pub fn list(entry: Schema) -> Schema {
        Schema::of(Shape::List { entry: Box::new(entry), bounds: Map::new() })
    }

    pub fn either(schemas: impl IntoIterator<Item = Schema>) -> Schema {
        Schema::of(Shape::Either(schemas.into_iter().collect()))
    }

    /// A schema that has a name and stands in the document once.
    #[must_use]
    pub fn named(self, name: &'static str) -> Schema {
        Schema::of(Shape::Named(name, Box::new(self)))
    }

    #[must_use]
    pub fn or_null(self) -> Schema {
        match self.shape {
            Shape::Plain(map) if map.is_empty() => Schema { shape: Shape::Plain(map), ..self },
            _ => {
                let (notes, example) = (self.notes.clone(), Some(self.sample()));
                let bare = Schema { notes: Map::new(), ..self };
                Schema { shape: Shape::Either(vec![bare, Schema::null()]), notes, example }
            }
        }
    }

    /// A further keyword of JSON Schema.
    #[must_use]
    pub fn with(mut self, keyword: &str, value: Value) -> Schema {
        match &mut self.shape {
            Shape::Plain(map) | Shape::List { bounds: map, .. } => map.insert(keyword.to_owned(), value),
            _ => self.notes.insert(keyword.to_owned(), value),
        };
        self
    }

    #[must_use]
    pub fn length(self, min: usize, max: usize) -> Schema {
        let (low, high) = match self.shape {
            Shape::List { .. } => ("minItems", "maxItems"),
            _ => ("minLength", "maxLength"),
        };
        self.with(low, min.into()).with(high, max.into())
    }

    #[must_use]
    pub fn pattern(self, pattern: &str) -> Schema {
        self.with("pattern", pattern.into())
    }

    #[must_use]
    pub fn describe(mut self, words: impl Into<String>) -> Schema {
        self.notes.insert("description".to_owned(), Value::String(words.into()));
        self
    }

    #[must_use]
    pub fn default_value(mut self, value: impl Into<Value>) -> Schema {
        self.notes.insert("default".to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn example(mut self, value: impl Into<Value>) -> Schema {
        self.example = Some(value.into());
        self
    }

    /// As JSON Schema. What has a name goes into the components, and a reference to it stands here.
    pub fn to_json(&self, components: &mut Components) -> Value {
        let mut json = match &self.shape {
            Shape::Plain(map) => map.clone(),
            Shape::Object { members, is_closed } => object(members, *is_closed, components),
            Shape::Map(value) => Map::from_iter([
                ("type".to_owned(), "object".into()),
                ("additionalProperties".to_owned(), value.to_json(components)),
            ]),
            Shape::List { entry, bounds } => {
                let mut list = Map::from_iter([("type".to_owned(), "array".into())]);
                list.insert("items".to_owned(), entry.to_json(components));
                list.extend(bounds.clone());
                list
            }
            Shape::Either(schemas) => {
                let any: Vec<Value> = schemas.iter().map(|schema| schema.to_json(components)).collect();
                Map::from_iter([("anyOf".to_owned(), Value::Array(any))])
            }
            Shape::Named(name, schema) => {
                if !components.contains_key(name) {
                    let json = schema.to_json(components);
                    components.insert(name, json);
                }
                Map::from_iter([("$ref".to_owned(), format!("#/components/schemas/{name}").into())])
            }
        };
        json.extend(self.notes.clone());
        Value::Object(json)
    }

    /// A value that the schema allows, to be shown.
    pub fn sample(&self) -> Value {
        if let Some(example) = self.example.as_ref().or_else(|| self.notes.get("default")) {
            return example.clone();
        }
        match &self.shape {
            Shape::Plain(map) => match map.get("type").and_then(Value::as_str) {
                Some("string") => "text".into(),
                Some("object") => json!({}),
                _ => Value::Null,
            },
            Shape::Object { members, .. } => {
                let shown = members.iter().filter(|member| member.is_shown);
                shown.map(|member| (member.name.clone(), member.schema.sample())).collect::<Map<_, _>>().into()
            }
            Shape::Map(_) => json!({}),
            Shape::List { entry, .. } => json!([entry.sample()]),
            Shape::Either(schemas) => schemas.first().map(Schema::sample).unwrap_or_default(),
            Shape::Named(_, schema) => schema.sample(),
        }
    }
}

fn object(members: &[Member], is_closed: bool, components: &mut Components) -> Map<String, Value> {
    let mut json = Map::from_iter([("type".to_owned(), "object".into())]);
    let required: Vec<&str> =
        members.iter().filter(|member| member.is_required).map(|member| member.name.as_str()).collect();
    if !required.is_empty() {
        json.insert("required".to_owned(), required.into());
    }
    let properties: Map<String, Value> =
        members.iter().map(|member| (member.name.clone(), member.schema.to_json(components))).collect();
    json.insert("properties".to_owned(), Value::Object(properties));
    if is_closed {
        json.insert("additionalProperties".to_owned(), false.into());
    }
    json
}

/// Whole numbers are written without a decimal point.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && (0.0..9e15).contains(&value) {
        return (value as u64).into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
