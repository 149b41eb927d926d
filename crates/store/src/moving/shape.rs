//! The columns of each table, as both databases have them. It must not move anything.

use super::cell::Kind;
use super::source::Source;
use super::tables::{TABLES, Table};
use super::target::Target;
use crate::StoreError;

/// A column of the target, and what of the source's row goes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
    pub expression: String,
}

#[derive(Debug)]
pub(super) struct Shape {
    pub table: &'static Table,
    pub columns: Vec<Column>,
    /// The columns that the source's rows are read in the order of.
    pub order: Vec<String>,
}

impl Shape {
    pub fn names(&self) -> String {
        self.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// # Errors
/// `Corrupt` when the two schemas do not fit together, which is a defect.
pub(super) async fn of_all(source: &Source, target: &Target) -> Result<Vec<Shape>, StoreError> {
    let mut shapes = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let (has, order) = (source.columns(table.source)?, source.order(table.source)?);
        let wanted = target.columns(table.name).await?;
        shapes.push(Shape { table, columns: matched(table, &has, wanted)?, order });
    }
    Ok(shapes)
}

/// Every column of the target has its value, and every column of the source its place.
pub(super) fn matched(table: &Table, has: &[String], wanted: Vec<(String, String)>) -> Result<Vec<Column>, StoreError> {
    let odd = |what: String| StoreError::Corrupt(format!("the table `{}` cannot be moved: {what}", table.name));
    let mut columns = Vec::with_capacity(wanted.len());
    for (name, type_name) in wanted {
        let kind = Kind::of_type(&type_name).ok_or_else(|| odd(format!("`{name}` is of the type {type_name}")))?;
        let made = table.made.iter().find(|(made, _)| *made == name).map(|(_, expression)| (*expression).to_owned());
        let expression = made.or_else(|| has.contains(&name).then(|| name.clone()));
        let expression = expression.ok_or_else(|| odd(format!("`{name}` has no counterpart")))?;
        columns.push(Column { name, kind, expression });
    }
    let moved = |name: &String| columns.iter().any(|column| column.expression == *name);
    match has.iter().find(|name| !moved(name) && !table.left.contains(&name.as_str())) {
        Some(forgotten) => Err(odd(format!("`{forgotten}` of the source would be left behind"))),
        None => Ok(columns),
    }
}
