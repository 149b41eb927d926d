//! A YAML document as a tree that remembers where everything stands. It must not know what any key means.

mod read;
mod scalar;

pub use read::read;
pub use scalar::{Reading, Style, read_as, surprise};

/// `config_bytes_max`: a file may have this many bytes.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// `config_depth_max`: lists and maps inside each other.
pub const DEPTH_MAX: u32 = 32;
/// `config_values_max`: values in all, those that aliases repeat included: an alias bomb ends here.
pub const NODES_MAX: usize = 200_000;
/// `config_expanded_bytes_max`: bytes of all values, those that aliases repeat included.
pub const EXPANDED_BYTES_MAX: usize = 4 * DOCUMENT_BYTES_MAX;

/// Where something begins; both are counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub const START: Place = Place { line: 1, column: 1 };
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub place: Place,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub text: String,
    pub style: Style,
}

/// One key of a map. Keys are unique, but for one that a merge (`<<`) brought: then the map's own comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_place: Place,
    pub value: Node,
}

impl Node {
    /// Nothing was written, or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.style == Style::Plain && scalar::is_null(&scalar.text))
    }

    /// In words.
    pub fn kind(&self) -> &'static str {
        match &self.content {
            Content::Scalar(_) if self.is_null() => "nothing",
            Content::Scalar(_) => "a single value",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }
}
