//! From text to tree, within limits. It goes on after what it can go on after, so that one look shows all that is wrong.

use std::collections::BTreeMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use super::{Content, DEPTH_MAX, DOCUMENT_BYTES_MAX, EXPANDED_BYTES_MAX, Entry, NODES_MAX, Node, Place, Scalar, Style};
use crate::finding::Finding;

/// The document's root, and what is wrong with how it is written. No root: it could not be read to its end, or it is empty.
pub fn read(text: &str) -> (Option<Node>, Vec<Finding>) {
    if text.len() > DOCUMENT_BYTES_MAX {
        let message =
            format!("the file has {} bytes: at most {DOCUMENT_BYTES_MAX} are allowed (`config_bytes_max`)", text.len());
        return (None, vec![Finding::new(Place::START, "", message)]);
    }
    // One level more than we allow, so that the refusal is in our words.
    let nesting = DEPTH_MAX as usize + 1;
    let options = granit_parser::options! {
        disallow_directives: true,
        flow_nesting_limit: nesting,
        block_nesting_limit: nesting,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(read) => read,
            Err(error) => {
                builder.stop(place_of(error.marker()), format!("this cannot be read as YAML: {}", error.info()));
                break;
            }
        };
        builder.take(event, &span);
        if builder.stopped {
            break;
        }
    }
    let root = if builder.stopped { None } else { builder.root };
    (root, builder.findings)
}

fn place_of(mark: &Marker) -> Place {
    let number = |from_one: usize| u32::try_from(from_one).unwrap_or(u32::MAX);
    Place { line: number(mark.line().max(1)), column: number(mark.col() + 1) }
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    /// Complete values by the number of their anchor, each with its height and how many nodes it has.
    anchors: BTreeMap<usize, Anchored>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    bytes: usize,
    findings: Vec<Finding>,
    /// Nothing more can be made of it.
    stopped: bool,
}

struct Anchored {
    node: Node,
    height: u32,
    nodes: usize,
    bytes: usize,
}

/// A list or map that has begun.
struct Open {
    place: Place,
    anchor: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, merged: Vec<Node>, key: Key },
}

enum Key {
    Awaited,
    Read {
        text: String,
        place: Place,
        is_merge: bool,
    },
    /// It is no text: its value is read and left out.
    Unusable,
}

impl Builder {
    fn stop(&mut self, place: Place, message: impl Into<String>) {
        self.findings.push(Finding::new(place, "", message));
        self.stopped = true;
    }

    fn take(&mut self, event: Event<'_>, span: &Span) {
        let place = place_of(&span.start);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.stop(place, "a second document begins here: one file is one document");
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let style = self.style(style, tag.as_deref(), place);
                let node = Node { place, content: Content::Scalar(Scalar { text: text.into_owned(), style }) };
                self.complete(node, anchor);
            }
            Event::SequenceStart(_, anchor, tag) => self.begin(place, anchor, tag.as_deref(), Kind::List(Vec::new())),
            Event::MappingStart(_, anchor, tag) => {
                let kind = Kind::Map { entries: Vec::new(), merged: Vec::new(), key: Key::Awaited };
                self.begin(place, anchor, tag.as_deref(), kind);
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, place),
            // Nothing that a value hangs on.
            _ => {}
        }
    }

    fn style(&mut self, style: ScalarStyle, tag: Option<&Tag>, place: Place) -> Style {
        match tag {
            None if style == ScalarStyle::Plain => Style::Plain,
            None => Style::Quoted,
            Some(tag) if tag.core_suffix() == Some("str") => Style::Literal,
            Some(tag) => {
                self.refuse_tag(tag, place);
                Style::Quoted
            }
        }
    }

    fn refuse_tag(&mut self, tag: &Tag, place: Place) {
        let shown: String = tag.original().chars().take(80).collect();
        let message =
            format!("the tag `{shown}` has no meaning here: values are written without tags, but for `!!str`");
        self.findings.push(Finding::new(place, "", message));
    }

    fn begin(&mut self, place: Place, anchor: usize, tag: Option<&Tag>, kind: Kind) {
        if let Some(tag) = tag {
            self.refuse_tag(tag, place);
        }
        if self.open.len() as u32 >= DEPTH_MAX {
            return self
                .stop(place, format!("lists and maps are more than {DEPTH_MAX} deep here (`config_depth_max`)"));
        }
        self.open.push(Open { place, anchor, kind });
    }

    fn end(&mut self) {
        let Some(Open { place, anchor, kind }) = self.open.pop() else { return };
        let content = match kind {
            Kind::List(nodes) => Content::List(nodes),
            Kind::Map { entries, merged, .. } => Content::Map(self.with_merged(entries, merged)),
        };
        self.complete(Node { place, content }, anchor);
    }

    /// A value is whole: it is counted, remembered under its anchor, and goes where it belongs.
    fn complete(&mut self, node: Node, anchor: usize) {
        self.nodes += 1;
        if let Content::Scalar(scalar) = &node.content {
            self.bytes += scalar.text.len();
        }
        if self.is_too_much(node.place) {
            return;
        }
        if anchor != 0 {
            let (height, nodes, bytes) = measure(&node);
            self.anchors.insert(anchor, Anchored { node: node.clone(), height, nodes, bytes });
        }
        self.place_node(node);
    }

    fn is_too_much(&mut self, place: Place) -> bool {
        if self.nodes > NODES_MAX {
            self.stop(
                place,
                format!("there are more than {NODES_MAX} values in it, those that aliases repeat included (`config_values_max`)"),
            );
        } else if self.bytes > EXPANDED_BYTES_MAX {
            let what = "bytes of values in it, those that aliases repeat included (`config_expanded_bytes_max`)";
            self.stop(place, format!("there are more than {EXPANDED_BYTES_MAX} {what}"));
        }
        self.stopped
    }

    fn alias(&mut self, anchor: usize, place: Place) {
        let Some(known) = self.anchors.get(&anchor) else {
            return self.stop(place, "this alias stands inside the value that it repeats");
        };
        if self.open.len() as u32 + known.height > DEPTH_MAX {
            return self.stop(
                place,
                format!(
                    "lists and maps are more than {DEPTH_MAX} deep with what this alias repeats (`config_depth_max`)"
                ),
            );
        }
        let (nodes, bytes) = (known.nodes, known.bytes);
        // Counted before it is copied.
        self.nodes = self.nodes.saturating_add(nodes);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.is_too_much(place) {
            return;
        }
        if let Some(known) = self.anchors.get(&anchor) {
            let node = known.node.clone();
            self.place_node(node);
        }
    }

    fn place_node(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        let (entries, merged, key) = match &mut open.kind {
            Kind::List(nodes) => return nodes.push(node),
            Kind::Map { entries, merged, key } => (entries, merged, key),
        };
        match std::mem::replace(key, Key::Awaited) {
            Key::Awaited => {
                let place = node.place;
                *key = match node.content {
                    Content::Scalar(Scalar { text, style }) => {
                        let is_merge = style == Style::Plain && text == "<<";
                        Key::Read { text, place, is_merge }
                    }
                    Content::List(_) | Content::Map(_) => {
                        self.findings.push(Finding::new(place, "", "a key is a single text"));
                        Key::Unusable
                    }
                };
            }
            Key::Unusable => {}
            Key::Read { is_merge: true, .. } => merged.push(node),
            Key::Read { text, place, .. } => entries.push(Entry { key: text, key_place: place, value: node }),
        }
    }

    /// Duplicates are refused; what `<<` brings comes behind the map's own keys, which win.
    fn with_merged(&mut self, entries: Vec<Entry>, merged: Vec<Node>) -> Vec<Entry> {
        let mut first: BTreeMap<String, Place> = BTreeMap::new();
        let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
        for entry in entries {
            match first.get(&entry.key) {
                None => {
                    first.insert(entry.key.clone(), entry.key_place);
                    kept.push(entry);
                }
                Some(before) => {
                    let key: String = entry.key.chars().take(80).collect();
                    let message = format!("`{key}` is there twice: first on line {}", before.line);
                    self.findings.push(Finding::new(entry.key_place, "", message));
                }
            }
        }
        let mut maps: Vec<Node> = Vec::new();
        for node in merged {
            match node.content {
                Content::List(nodes) => maps.extend(nodes),
                _ => maps.push(node),
            }
        }
        for map in maps {
            let Content::Map(entries) = map.content else {
                self.findings.push(Finding::new(map.place, "", "`<<` takes a map, or a list of maps, to merge from"));
                continue;
            };
            for entry in entries {
                if !first.contains_key(&entry.key) {
                    first.insert(entry.key.clone(), entry.key_place);
                    kept.push(entry);
                }
            }
        }
        kept
    }
}

/// Height in lists and maps, and how many nodes and bytes there are. As deep as the limit allows, no deeper.
fn measure(node: &Node) -> (u32, usize, usize) {
    let sum = |nodes: &mut dyn Iterator<Item = &Node>| {
        nodes
            .map(measure)
            .fold((0, 1, 0), |all: (u32, usize, usize), one| (all.0.max(one.0), all.1 + one.1, all.2 + one.2))
    };
    let (height, nodes, bytes) = match &node.content {
        Content::Scalar(scalar) => return (0, 1, scalar.text.len()),
        Content::List(nodes) => sum(&mut nodes.iter()),
        Content::Map(entries) => sum(&mut entries.iter().map(|entry| &entry.value)),
    };
    (height + 1, nodes, bytes)
}
