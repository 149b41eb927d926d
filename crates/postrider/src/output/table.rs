//! Aligned columns. Widths are counted in characters, before any colour.

use super::plain;
use super::style::{Tint, stdout_is_coloured};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    /// For numbers.
    Right,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tint: Option<Tint>,
}

impl Cell {
    pub fn new(text: impl AsRef<str>) -> Cell {
        Cell { text: plain(text.as_ref()), tint: None }
    }

    /// Empty where there is nothing to say.
    pub fn maybe(text: Option<impl AsRef<str>>) -> Cell {
        Cell::new(text.as_ref().map_or("", AsRef::as_ref))
    }

    #[must_use]
    pub fn tinted(self, tint: Option<Tint>) -> Cell {
        Cell { tint, ..self }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(value: T) -> Self {
        Cell::new(value.to_string())
    }
}

#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// A table without rows says so in words.
    pub fn print(&self, when_empty: &str) {
        if self.rows.is_empty() {
            super::print(when_empty);
        } else {
            super::print(&self.text(stdout_is_coloured()));
        }
    }

    fn text(&self, coloured: bool) -> String {
        let mut widths: Vec<usize> = self.columns.iter().map(|(title, _)| title.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let titles: Vec<Cell> =
            self.columns.iter().map(|(title, _)| Cell::new(title).tinted(Some(Tint::Faint))).collect();
        let lines = std::iter::once(&titles).chain(&self.rows).map(|row| self.line(row, &widths, coloured));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn line(&self, row: &[Cell], widths: &[usize], coloured: bool) -> String {
        let mut line = String::new();
        let last = row.len().saturating_sub(1);
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let gap = " ".repeat(width.saturating_sub(cell.text.chars().count()));
            let shown = match cell.tint {
                Some(tint) => tint.paint(&cell.text, coloured),
                None => cell.text.clone(),
            };
            match self.columns[at].1 {
                Align::Right => line.push_str(&format!("{gap}{shown}")),
                Align::Left => line.push_str(&format!("{shown}{gap}")),
            }
            if at < last {
                line.push_str("  ");
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_to_the_right() {
        let mut table = Table::new(&[("NAME", Align::Left), ("N", Align::Right), ("WHY", Align::Left)]);
        table.row(vec!["größte".into(), 5.into(), Cell::maybe(None::<&str>)]);
        table.row(vec!["b".into(), 1234.into(), "a\nb".into()]);
        assert_eq!(table.text(false), "NAME       N  WHY\ngrößte     5\nb       1234  a\\nb");
    }

    #[test]
    fn colour_does_not_shift_columns() {
        let mut table = Table::new(&[("A", Align::Left), ("B", Align::Left)]);
        table.row(vec![Cell::new("x").tinted(Some(Tint::Bad)), "y".into()]);
        let bare: String = table.text(true).replace("\u{1b}[31m", "").replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
        assert_eq!(bare, "A  B\nx  y");
    }
}
