//! Many rows for one statement, column by column: `unnest($1::uuid[], $2::bigint[], …)`. It must not know of tables.

use std::borrow::Cow;

use postrider_core::Timestamp;
use tokio_postgres::types::ToSql;

use super::key::{Id, Key};

pub(super) type Param<'p> = &'p (dyn ToSql + Sync);

enum Column<'a> {
    Keys(Vec<Option<Key>>),
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'a, str>>>),
    Bytes(Vec<&'a [u8]>),
    Flags(Vec<Option<bool>>),
}

/// Filled row by row, from left to right; every row pushes the same kinds in the same order.
#[derive(Default)]
pub(super) struct Columns<'a> {
    columns: Vec<Column<'a>>,
    next: usize,
    rows: usize,
}

/// Pushes a value where the cursor stands; the first row makes the columns.
macro_rules! push {
    ($self:ident, $kind:ident, $value:expr) => {{
        if $self.rows == 0 {
            $self.columns.push(Column::$kind(Vec::new()));
        }
        match $self.columns.get_mut($self.next) {
            Some(Column::$kind(values)) => values.push($value),
            _ => debug_assert!(false, "a row of another shape"),
        }
        $self.next += 1;
    }};
}

impl<'a> Columns<'a> {
    /// One row after the other, each written by `row`.
    pub fn of<T>(items: impl IntoIterator<Item = T>, mut row: impl FnMut(&mut Columns<'a>, T)) -> Self {
        let mut columns = Columns::default();
        for item in items {
            row(&mut columns, item);
            columns.end_row();
        }
        columns
    }

    pub fn end_row(&mut self) {
        debug_assert_eq!(self.next, self.columns.len(), "a row that is too short");
        self.next = 0;
        self.rows += 1;
    }

    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub const fn rows(&self) -> usize {
        self.rows
    }

    pub fn key(&mut self, id: impl Id) {
        push!(self, Keys, Some(id.key()));
    }

    pub fn optional_key(&mut self, id: Option<impl Id>) {
        push!(self, Keys, id.map(Id::key));
    }

    pub fn int(&mut self, value: impl Into<i64>) {
        push!(self, Ints, Some(value.into()));
    }

    pub fn optional_int(&mut self, value: Option<impl Into<i64>>) {
        push!(self, Ints, value.map(Into::into));
    }

    pub fn time(&mut self, time: Timestamp) {
        self.int(time.as_millis());
    }

    pub fn optional_time(&mut self, time: Option<Timestamp>) {
        self.optional_int(time.map(Timestamp::as_millis));
    }

    pub fn text(&mut self, text: impl Into<Cow<'a, str>>) {
        push!(self, Texts, Some(storable(text.into())));
    }

    pub fn optional_text(&mut self, text: Option<&'a str>) {
        push!(self, Texts, text.map(|text| storable(text.into())));
    }

    pub fn bytes(&mut self, bytes: &'a [u8]) {
        push!(self, Bytes, bytes);
    }

    pub fn flag(&mut self, flag: bool) {
        push!(self, Flags, Some(flag));
    }

    pub fn optional_flag(&mut self, flag: Option<bool>) {
        push!(self, Flags, flag);
    }

    /// The call of `unnest` for these columns, whose parameters begin at this number.
    pub fn unnest(&self, first: usize) -> String {
        let arrays: Vec<String> = self
            .columns
            .iter()
            .zip(first..)
            .map(|(column, number)| {
                let kind = match column {
                    Column::Keys(_) => "uuid",
                    Column::Ints(_) => "bigint",
                    Column::Texts(_) => "text",
                    Column::Bytes(_) => "bytea",
                    Column::Flags(_) => "boolean",
                };
                format!("${number}::{kind}[]")
            })
            .collect();
        format!("unnest({})", arrays.join(", "))
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        self.columns.iter().map(Column::param).collect()
    }
}

impl Column<'_> {
    fn param(&self) -> Param<'_> {
        match self {
            Column::Keys(values) => values,
            Column::Ints(values) => values,
            Column::Texts(values) => values,
            Column::Bytes(values) => values,
            Column::Flags(values) => values,
        }
    }
}

/// PostgreSQL's texts hold no NUL; a remote's error text might.
pub(crate) fn storable(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { text }
}
