//! The serde mirror of an experiment file: every value with the place where it stands.

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use spillbench_core::hardware::SpillCost;
use std::fmt;
use std::marker::PhantomData;
use toml::Spanned;

/// An axis: a list, or one value that stands for a list of one.
pub(super) type Axis<T> = Spanned<List<T>>;

/// A whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub name: Spanned<String>,
    pub title: Option<String>,
    pub studies: Option<Axis<String>>,
    pub seed: Option<u64>,
    pub repetitions: Option<Spanned<u32>>,
    pub bound: Option<Spanned<String>>,
    pub attribution: Option<Spanned<bool>>,
    pub best_order: Option<Spanned<String>>,
    pub axes: Option<Spanned<RawAxes>>,
    pub search: Option<Spanned<RawSearch>>,
    #[serde(default)]
    pub capacities: IndexMap<Spanned<String>, Axis<RawCapacity>>,
    pub reserve: Option<Axis<String>>,
    #[serde(default)]
    pub tables: Vec<Spanned<RawTable>>,
    #[serde(default)]
    pub figures: Vec<Spanned<RawFigure>>,
}

/// `[axes]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAxes {
    pub graphs: Axis<String>,
    pub schedules: Option<Axis<String>>,
    pub hardware: Option<Axis<String>>,
    pub cost_models: Option<Axis<RawCost>>,
    pub normalize: Option<Axis<String>>,
    pub heuristics: Option<Axis<String>>,
    pub strategies: Option<Axis<String>>,
    pub placements: Option<Axis<String>>,
    pub attempts: Option<Axis<u32>>,
    pub prefetch: Option<Axis<u32>>,
    pub retime: Option<Axis<bool>>,
}

/// `[search]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSearch {
    pub objectives: Option<Axis<String>>,
    pub max_movement: Option<Axis<RawScalar>>,
    pub evaluations: Option<Axis<u64>>,
    pub seconds: Option<Axis<f64>>,
    pub seeds: Option<Axis<u64>>,
    pub islands: Option<Spanned<u32>>,
}

/// `[[tables]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTable {
    pub name: Spanned<String>,
    pub title: Option<String>,
    pub compare: Spanned<String>,
    pub baseline: Spanned<RawScalar>,
    pub value: Option<Spanned<String>>,
    pub by: Option<Axis<String>>,
    #[serde(rename = "where", default)]
    pub filter: IndexMap<Spanned<String>, Axis<RawScalar>>,
}

/// `[[figures]]`; which of the keys mean something depends on the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFigure {
    pub name: Spanned<String>,
    pub kind: Spanned<String>,
    pub title: Option<String>,
    pub width: Option<Spanned<String>>,
    pub value: Option<Spanned<String>>,
    pub group: Option<Spanned<String>>,
    pub series: Option<Spanned<String>>,
    pub facet: Option<Spanned<String>>,
    pub x: Option<Spanned<String>>,
    pub y: Option<Spanned<String>>,
    pub part: Option<Spanned<String>>,
    pub scale: Option<Spanned<String>>,
    pub cache: Option<Spanned<String>>,
    #[serde(rename = "where", default)]
    pub filter: IndexMap<Spanned<String>, Axis<RawScalar>>,
}

/// The items of an axis. An item written without brackets has the span `0..0`.
pub(super) struct List<T>(pub Vec<Spanned<T>>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> ListVisitor<T> {
    fn one<E: Error>(d: impl Deserializer<'de, Error = E>) -> Result<List<T>, E> {
        Ok(List(vec![Spanned::new(0..0, T::deserialize(d)?)]))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(List(items))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<List<T>, E> {
        Self::one(v.into_deserializer())
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<List<T>, E> {
        Self::one(v.into_deserializer())
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<List<T>, E> {
        Self::one(v.into_deserializer())
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<List<T>, E> {
        Self::one(v.into_deserializer())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T>, A::Error> {
        Self::one(MapAccessDeserializer::new(map))
    }
}

/// A scalar, kept as the text that tables show.
pub(super) struct RawScalar(pub String);

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = RawScalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a truth value")
    }

    fn visit_str<E>(self, v: &str) -> Result<RawScalar, E> {
        Ok(RawScalar(v.to_owned()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<RawScalar, E> {
        Ok(RawScalar(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<RawScalar, E> {
        Ok(RawScalar(v.to_string()))
    }

    fn visit_bool<E>(self, v: bool) -> Result<RawScalar, E> {
        Ok(RawScalar(v.to_string()))
    }
}

impl<'de> Deserialize<'de> for RawScalar {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ScalarVisitor)
    }
}

/// A capacity as written: an integer or a text, not yet understood.
pub(super) struct RawCapacity(pub String);

impl<'de> Deserialize<'de> for RawCapacity {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        RawScalar::deserialize(d).map(|scalar| Self(scalar.0))
    }
}

/// A cost model: a name, or a table that spells one out.
pub(super) enum RawCost {
    Named(String),
    Given(SpillCost),
}

struct CostVisitor;

impl<'de> Visitor<'de> for CostVisitor {
    type Value = RawCost;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a cost model, or a table such as {model = \"bandwidth\", bytes_per_cycle = 256}")
    }

    fn visit_str<E>(self, v: &str) -> Result<RawCost, E> {
        Ok(RawCost::Named(v.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawCost, A::Error> {
        SpillCost::deserialize(MapAccessDeserializer::new(map)).map(RawCost::Given)
    }
}

impl<'de> Deserialize<'de> for RawCost {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(CostVisitor)
    }
}
