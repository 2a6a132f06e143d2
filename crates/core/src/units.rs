//! Quantities and external names, each a newtype: bytes, cycles, offsets, ids.

use derive_more::{Add, AddAssign, Display, From, Into, Sub, SubAssign, Sum};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest id a node, a buffer or a spill node may have: 2⁶³ − 1.
pub const MAX_ID: u64 = i64::MAX as u64;

/// The external id of a node, as it stands in the files: 0 to 2⁶³ − 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Display, From, Into, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Id(pub u64);

/// The external id of a buffer, as it stands in the files: 0 to 2⁶³ − 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Display, From, Into, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BufId(pub u64);

/// An address inside a cache, counted from the start of the cache.
///
/// Caches end below 2⁶³, so numbers from there up stand for the addresses below 0 that a stranger's
/// plan may hold, in two's complement: no segment there fits its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, From, Into)]
pub struct Offset(pub u64);

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.signed().fmt(f)
    }
}

impl Serialize for Offset {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_i64(self.signed())
    }
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        i64::deserialize(d).map(Self::from_signed)
    }
}

/// A number of bytes (or of whatever unit the sizes of a graph are in).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Display,
    From,
    Into,
    Serialize,
    Deserialize,
    Add,
    AddAssign,
    Sub,
    SubAssign,
    Sum,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// In words, for messages: `1 byte`, `6 bytes`.
    pub fn in_words(self) -> String {
        format!("{self} byte{}", if self.0 == 1 { "" } else { "s" })
    }

    /// The sum, or `None` past 2⁶⁴ − 1.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or 0 where `other` is larger.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// A number of clock cycles.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Display,
    From,
    Into,
    Serialize,
    Deserialize,
    Add,
    AddAssign,
    Sub,
    SubAssign,
    Sum,
)]
#[serde(transparent)]
pub struct Cycles(pub u64);

impl Offset {
    /// The address as a number with a sign, as it stands in the files.
    pub fn signed(self) -> i64 {
        self.0.cast_signed()
    }

    /// The address of that number.
    pub fn from_signed(address: i64) -> Self {
        Self(address.cast_unsigned())
    }

    /// The address just after a block of `size` bytes that begins here, saturating at 2⁶⁴ − 1.
    pub fn end(self, size: Bytes) -> Self {
        Self(self.0.saturating_add(size.0))
    }
}
