//! A whole store from SQLite to PostgreSQL, table by table, so that a move that was cut off goes on where it was (D08).
//!
//! Each batch of rows and the note of how far the move is are one transaction of the target, so nothing is moved twice and nothing left
//! out, whenever it is killed. Both stores carry a mark meanwhile: a server is refused on a target that is not whole, and a source that a
//! server has opened since is not gone on with. It must not know what a row means: a table is its columns.

mod cell;
mod shape;
mod source;
mod state;
mod tables;
mod target;
#[cfg(test)]
mod tests;

use std::path::Path;

use postrider_core::Timestamp;

use crate::{Database, PostgresOptions, PostgresStore, StoreError};
use shape::Shape;
use source::Source;
use state::{Mark, MarkState, State};
use target::Target;

pub(crate) use state::MARK;

/// Rows of one transaction.
const BATCH_ROWS_MAX: usize = 2000;
/// Bytes of one transaction, but for its last row.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many rows of so many of this table are in the target.
    Moving { table: &'static str, rows: u64, rows_total: u64 },
    /// So many of its rows were read back.
    Verifying { table: &'static str, rows: u64, rows_total: u64 },
}

/// A table that was read back and found to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedTable {
    pub table: &'static str,
    pub rows: u64,
    /// The sum of what the rows hash to, which does not depend on their order.
    pub sum: u128,
}

/// A move that has begun, or goes on.
pub struct Move {
    source: Source,
    target: Target,
    shapes: Vec<Shape>,
    state: State,
    resumed_rows: u64,
}

impl Move {
    /// Brings both schemas to this program's version and looks whether the move may begin: nobody has the source open, and the target is
    /// empty, or has what an earlier run of this very move left there.
    ///
    /// # Errors
    /// `Conflict` when the target is not empty, or holds the beginning of another move, or the source was moved already; `Unavailable` when
    /// a server has the source, or either cannot be opened; `Corrupt` when one of them is no store.
    pub async fn begin(from: &Path, to: &Database, now: Timestamp) -> Result<Move, StoreError> {
        let source = Source::open(from)?;
        let mut target = Target::open(to).await?;
        let shapes = shape::of_all(&source, &target).await?;
        let state = match (source.mark()?, target.state().await?) {
            (Some(mark), Some(state)) if mark.id == state.id => state,
            (_, Some(_)) => {
                return Err(StoreError::Conflict(format!(
                    "the {} holds the beginning of a move from another store, or this one was opened by a server since: drop its schema and begin anew",
                    to.shown()
                )));
            }
            (Some(Mark { state: MarkState::Moved, to, at, .. }), None) => {
                return Err(StoreError::Conflict(format!(
                    "`{}` was moved to the {to} at {at} already; `migrate --take-back` lets it be used again",
                    from.display()
                )));
            }
            (_, None) => {
                target.require_empty(&shapes).await?;
                if let Some(oldest) = source.oldest_end()? {
                    target.reach_back(oldest).await?;
                }
                let state = State::begin(target.fresh_id().await?);
                // The source first: a target with a mark always has its source.
                source.set_mark(&Mark { id: state.id.clone(), state: MarkState::Moving, to: to.shown(), at: now })?;
                target.begin(&state).await?;
                state
            }
        };
        let resumed_rows = state.rows();
        Ok(Move { source, target, shapes, state, resumed_rows })
    }

    /// Rows that an earlier run left in the target; 0 where this is the first.
    pub const fn resumed_rows(&self) -> u64 {
        self.resumed_rows
    }

    /// Moves what is left, then reads all of it back and compares it with what was read from the source: so many rows, the same sum.
    ///
    /// # Errors
    /// Those of both stores; `Corrupt` when a row cannot be stored there, or what is read back is not what was moved.
    pub async fn run(&mut self, told: &mut (dyn FnMut(Progress) + Send)) -> Result<Vec<MovedTable>, StoreError> {
        for index in 0..self.shapes.len() {
            self.move_table(index, told).await?;
        }
        self.target.set_next_sequence(self.source.next_sequence()?).await?;
        if !self.state.verified {
            for shape in &self.shapes {
                self.verify(shape, told).await?;
            }
            self.target.analyze(&self.shapes).await?;
            self.state.verified = true;
            self.target.write_state(&self.state).await?;
        }
        let moved = self.shapes.iter().map(|shape| {
            let part = self.state.part(shape.table.name);
            MovedTable { table: shape.table.name, rows: part.rows, sum: part.sum }
        });
        Ok(moved.collect())
    }

    async fn move_table(&mut self, index: usize, told: &mut (dyn FnMut(Progress) + Send)) -> Result<(), StoreError> {
        let shape = &self.shapes[index];
        let table = shape.table.name;
        let mut part = self.state.part(table);
        if part.ended {
            return Ok(());
        }
        let rows_total = self.source.count(shape)?;
        told(Progress::Moving { table, rows: part.rows, rows_total });
        while !part.ended {
            let batch = self.source.batch(shape, part.cursor.as_deref(), BATCH_ROWS_MAX, BATCH_BYTES_MAX)?;
            part.rows += batch.rows.len() as u64;
            part.sum = batch.rows.iter().fold(part.sum, |sum, row| sum.wrapping_add(cell::hash(row)));
            part.ended = batch.cursor.is_none();
            part.cursor = batch.cursor.or(part.cursor);
            self.state.set_part(table, part.clone());
            self.target.add(shape, &batch.rows, &self.state).await?;
            told(Progress::Moving { table, rows: part.rows, rows_total });
        }
        Ok(())
    }

    async fn verify(&self, shape: &Shape, told: &mut (dyn FnMut(Progress) + Send)) -> Result<(), StoreError> {
        let (table, part) = (shape.table.name, self.state.part(shape.table.name));
        let in_source = self.source.count(shape)?;
        let mut tell = |rows| told(Progress::Verifying { table, rows, rows_total: part.rows });
        let (rows, sum) = self.target.sum(shape, &mut tell).await?;
        if (rows, sum) != (part.rows, part.sum) || rows != in_source {
            return Err(StoreError::Corrupt(format!(
                "the table `{table}` has {rows} rows with the sum {sum:032x} in the target, and {in_source} in the source, of which {} with the sum {:032x} were moved: \
                 nothing may be served from the target; drop its schema and begin anew",
                part.rows, part.sum
            )));
        }
        Ok(())
    }

    /// The target as a store, for what is to be done before a server may open it.
    ///
    /// # Errors
    /// Those of opening it.
    pub async fn store(&self) -> Result<PostgresStore, StoreError> {
        PostgresStore::open_unfinished(self.target.database(), PostgresOptions::default()).await
    }

    /// From now on servers may open the target, and none the source. Both may be called again after a cut.
    ///
    /// # Errors
    /// Those of both stores.
    pub async fn end(mut self, now: Timestamp) -> Result<(), StoreError> {
        let to = self.target.database().shown();
        self.source.set_mark(&Mark { id: self.state.id.clone(), state: MarkState::Moved, to, at: now })?;
        self.target.end().await
    }
}

/// Lets a store be served again that was moved. Where it was moved to; `None`: it was not.
///
/// # Errors
/// `Unavailable` when a server has it, or it cannot be opened.
pub fn take_back(from: &Path) -> Result<Option<String>, StoreError> {
    let source = Source::open(from)?;
    let mark = source.mark()?;
    source.clear_mark()?;
    Ok(mark.map(|mark| mark.to))
}
