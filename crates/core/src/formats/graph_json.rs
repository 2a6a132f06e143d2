//! Graphs as JSON: `{"Nodes":[…],"Edges":[[0,1],…],"Meta":{…}}`.
//!
//! Reading goes straight from the text into the columns of a [`GraphBuilder`], with no tree in
//! between. Unknown keys are ignored with one notice per key.

use super::{FormatError, body};
use crate::graph::{Field, Graph, GraphBuilder, InternedNode, NodeKind, Notice};
use crate::index::NodeIx;
use crate::units::{BufId, Cycles};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

/// Reads a graph.
///
/// # Errors
/// Broken JSON or a field of the wrong type, with line and column; otherwise all that is wrong with
/// the graph.
pub fn read(bytes: &[u8]) -> Result<(Graph, Vec<Notice>), FormatError> {
    let (builder, notices) = parse(bytes)?;
    finish(builder, notices)
}

/// Reads the text of a graph into a builder, which holds no part of the text.
pub(super) fn parse(bytes: &[u8]) -> Result<(GraphBuilder, Vec<Notice>), FormatError> {
    let mut reader = Reader::default();
    let mut json = serde_json::Deserializer::from_slice(body(bytes)?);
    Document(&mut reader).deserialize(&mut json)?;
    json.end()?;
    let notices = reader.keys.into_inner().notices();
    Ok((reader.builder, notices))
}

pub(super) fn finish(builder: GraphBuilder, mut notices: Vec<Notice>) -> Result<(Graph, Vec<Notice>), FormatError> {
    let (graph, more) = builder.build()?;
    notices.extend(more);
    Ok((graph, notices))
}

#[derive(Default)]
struct Reader {
    builder: GraphBuilder,
    keys: RefCell<UnknownKeys>,
    writes: Vec<u64>,
}

/// Unknown keys with how often they stood there, a bounded number of them.
#[derive(Default)]
pub(super) struct UnknownKeys {
    counts: BTreeMap<String, usize>,
    more: usize,
}

impl UnknownKeys {
    const LISTED: usize = 20;
    const LONGEST: usize = 80;

    pub(super) fn add(&mut self, key: &str) {
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
        } else if self.counts.len() < Self::LISTED && key.len() <= Self::LONGEST {
            self.counts.insert(key.to_owned(), 1);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn notices(self) -> Vec<Notice> {
        let mut notices: Vec<_> =
            self.counts.into_iter().map(|(key, count)| Notice::UnknownKey { key, count }).collect();
        if self.more > 0 {
            notices.push(Notice::MoreUnknownKeys { keys: self.more });
        }
        notices
    }
}

#[derive(Clone, Copy, PartialEq)]
enum TopKey {
    Nodes,
    Edges,
    Meta,
    Unknown,
}

struct TopKeySeed<'a>(&'a RefCell<UnknownKeys>);

impl<'de> DeserializeSeed<'de> for TopKeySeed<'_> {
    type Value = TopKey;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<TopKey, D::Error> {
        d.deserialize_identifier(self)
    }
}

impl Visitor<'_> for TopKeySeed<'_> {
    type Value = TopKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<TopKey, E> {
        Ok(match key {
            "Nodes" => TopKey::Nodes,
            "Edges" => TopKey::Edges,
            "Meta" => TopKey::Meta,
            _ => {
                self.0.borrow_mut().add(key);
                TopKey::Unknown
            }
        })
    }
}

/// The whole document.
struct Document<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a graph, {\"Nodes\": [...], \"Edges\": [...]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut nodes, mut edges, mut meta) = (false, false, false);
        while let Some(key) = map.next_key_seed(TopKeySeed(&self.0.keys))? {
            let (seen, name) = match key {
                TopKey::Nodes => (&mut nodes, "Nodes"),
                TopKey::Edges => (&mut edges, "Edges"),
                TopKey::Meta => (&mut meta, "Meta"),
                TopKey::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if std::mem::replace(seen, true) {
                return Err(A::Error::custom(format!("{name} stands twice")));
            }
            match key {
                TopKey::Nodes => map.next_value_seed(NodesSeed(self.0))?,
                TopKey::Edges => map.next_value_seed(EdgesSeed(&mut self.0.builder))?,
                _ => {
                    let text = map.next_value::<Box<RawValue>>()?;
                    if !text.get().starts_with('{') {
                        return Err(A::Error::custom("Meta is not an object"));
                    }
                    self.0.builder.meta(String::from(Box::<str>::from(text)));
                }
            }
        }
        let missing = [(nodes, "Nodes"), (edges, "Edges")].into_iter().find(|m| !m.0);
        missing.map_or(Ok(()), |(_, name)| Err(A::Error::custom(format!("the document has no {name}"))))
    }
}

struct NodesSeed<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for NodesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for NodesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nodes, an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(NodeSeed(self.0))?.is_some() {}
        Ok(())
    }
}

struct NodeSeed<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nodes[{}], an object", self.0.builder.len())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Reader { builder, keys, writes } = self.0;
        let place = builder.len();
        let mut node = PartialNode::default();
        writes.clear();
        while let Some(key) = map.next_key_seed(FieldSeed(keys))? {
            let Some(field) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if !node.first_time(field) {
                return Err(A::Error::custom(format!("{field} stands twice in Nodes[{place}]")));
            }
            node.read_field(field, &mut map, builder, writes)
                .map_err(|e| A::Error::custom(format!("{field} of Nodes[{place}]: {e}")))?;
        }
        let absent = |field| A::Error::custom(format!("Nodes[{place}] has no {field}"));
        builder.push(
            InternedNode {
                id: node.id.ok_or_else(|| absent(Field::Id))?,
                op: node.op.ok_or_else(|| absent(Field::Op))?,
                buf: node.buf,
                size: node.size,
                cache: node.cache,
                pipe: node.pipe,
                cycles: node.cycles,
                has_bufs: node.has_bufs,
                has_writes: node.has_writes,
            },
            writes,
        );
        Ok(())
    }
}

#[derive(Default)]
struct PartialNode {
    seen: u16,
    id: Option<u64>,
    op: Option<u32>,
    buf: Option<u64>,
    size: Option<u64>,
    cache: Option<u32>,
    pipe: Option<u32>,
    cycles: Option<u64>,
    has_bufs: bool,
    has_writes: bool,
}

impl PartialNode {
    fn first_time(&mut self, field: Field) -> bool {
        let bit = 1 << field as u16;
        let first = self.seen & bit == 0;
        self.seen |= bit;
        first
    }

    #[inline]
    fn read_field<'de, A: MapAccess<'de>>(
        &mut self,
        field: Field,
        map: &mut A,
        builder: &mut GraphBuilder,
        writes: &mut Vec<u64>,
    ) -> Result<(), A::Error> {
        match field {
            Field::Id => self.id = Some(map.next_value()?),
            Field::BufId => self.buf = map.next_value()?,
            Field::Size => self.size = map.next_value()?,
            Field::Cycles => self.cycles = map.next_value()?,
            Field::Op => self.op = map.next_value_seed(Name(|s: &str| builder.ops.intern(s)))?,
            Field::Type => self.cache = map.next_value_seed(Name(|s: &str| builder.caches.intern(s)))?,
            Field::Pipe => self.pipe = map.next_value_seed(Name(|s: &str| builder.pipes.intern(s)))?,
            Field::Bufs => self.has_bufs = map.next_value_seed(Numbers(|b| builder.push_buf(b)))?,
            Field::Writes => self.has_writes = map.next_value_seed(Numbers(|b| writes.push(b)))?,
        }
        Ok(())
    }
}

struct FieldSeed<'a>(&'a RefCell<UnknownKeys>);

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Option<Field>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = Option<Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Some(match key {
            "Id" => Field::Id,
            "Op" => Field::Op,
            "BufId" => Field::BufId,
            "Size" => Field::Size,
            "Type" => Field::Type,
            "Pipe" => Field::Pipe,
            "Cycles" => Field::Cycles,
            "Bufs" => Field::Bufs,
            "Writes" => Field::Writes,
            _ => {
                self.0.borrow_mut().add(key);
                return Ok(None);
            }
        }))
    }
}

/// A string, handed to `F`; null is `None`.
struct Name<F>(F);

impl<'de, F: FnOnce(&str) -> u32> DeserializeSeed<'de> for Name<F> {
    type Value = Option<u32>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<F: FnOnce(&str) -> u32> Visitor<'_> for Name<F> {
    type Value = Option<u32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, s: &str) -> Result<Self::Value, E> {
        Ok(Some((self.0)(s)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// An array of numbers, each handed to `F`; null is `false`.
struct Numbers<F>(F);

impl<'de, F: FnMut(u64)> DeserializeSeed<'de> for Numbers<F> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<bool, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de, F: FnMut(u64)> Visitor<'de> for Numbers<F> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of buffer ids")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<bool, A::Error> {
        while let Some(number) = seq.next_element()? {
            (self.0)(number);
        }
        Ok(true)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }
}

struct EdgesSeed<'a>(&'a mut GraphBuilder);

impl<'de> DeserializeSeed<'de> for EdgesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EdgesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Edges, an array of [from, to] pairs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut place = 0usize;
        loop {
            let edge = seq.next_element_seed(EdgeSeed);
            match edge.map_err(|e| A::Error::custom(format!("Edges[{place}]: {e}")))? {
                Some([from, to]) => self.0.edge(from, to),
                None => return Ok(()),
            };
            place += 1;
        }
    }
}

/// One edge: exactly two ids.
struct EdgeSeed;

impl<'de> DeserializeSeed<'de> for EdgeSeed {
    type Value = [u64; 2];

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<[u64; 2], D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EdgeSeed {
    type Value = [u64; 2];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pair of node ids, [from, to]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<[u64; 2], A::Error> {
        let mut ids = [0; 2];
        for (found, id) in ids.iter_mut().enumerate() {
            *id = seq.next_element()?.ok_or_else(|| not_a_pair(found))?;
        }
        let mut found = ids.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            found += 1;
        }
        if found == ids.len() { Ok(ids) } else { Err(not_a_pair(found)) }
    }
}

fn not_a_pair<E: serde::de::Error>(found: usize) -> E {
    let plural = if found == 1 { "" } else { "s" };
    E::custom(format!("holds {found} id{plural}, not a pair of node ids, [from, to]"))
}

/// Writes a graph, one node or edge per line.
///
/// # Errors
/// When the writer fails.
pub fn write(graph: &Graph, mut out: impl std::io::Write) -> std::io::Result<()> {
    out.write_all(b"{\"Nodes\":[")?;
    for (i, n) in graph.nodes().enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut out, &NodeView(graph, n))?;
    }
    out.write_all(b"\n],\"Edges\":[")?;
    let mut first = true;
    for from in graph.nodes() {
        for &to in graph.successors(from) {
            out.write_all(if first { b"\n" } else { b",\n" })?;
            first = false;
            serde_json::to_writer(&mut out, &[graph.id(from), graph.id(to)])?;
        }
    }
    out.write_all(b"\n]")?;
    if let Some(meta) = graph.meta() {
        write!(out, ",\"Meta\":{meta}")?;
    }
    out.write_all(b"}\n")
}

/// A node as the file shows it.
struct NodeView<'a>(&'a Graph, NodeIx);

impl Serialize for NodeView<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Self(graph, n) = *self;
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("Id", &graph.id(n))?;
        map.serialize_entry("Op", graph.op_name(n))?;
        if let NodeKind::Alloc(b) | NodeKind::Free(b) = graph.kind(n) {
            let buf = graph.buf(b);
            map.serialize_entry("BufId", &buf.id)?;
            map.serialize_entry("Size", &buf.size)?;
            map.serialize_entry("Type", graph.cache_name(buf.cache))?;
        } else {
            if let Some(pipe) = graph.pipe(n) {
                map.serialize_entry("Pipe", &graph.pipe_names()[pipe])?;
            }
            if let Some(Cycles(cycles)) = graph.cycles(n) {
                map.serialize_entry("Cycles", &cycles)?;
            }
            map.serialize_entry("Bufs", &BufsView(graph, graph.operands(n)))?;
            if let Some(writes) = graph.writes(n) {
                map.serialize_entry("Writes", &BufsView(graph, writes))?;
            }
        }
        map.end()
    }
}

struct BufsView<'a>(&'a Graph, &'a [crate::index::BufIx]);

impl Serialize for BufsView<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(Some(self.1.len()))?;
        for &b in self.1 {
            let BufId(id) = self.0.buf(b).id;
            seq.serialize_element(&id)?;
        }
        seq.end()
    }
}
