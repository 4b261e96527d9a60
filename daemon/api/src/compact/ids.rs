//! The ids of one row: almost always none or one, and then without an allocation of their own.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::Text;

/// A list of ids.
#[derive(Debug, Clone, Default)]
pub struct Ids<'a>(Held<'a>);

#[derive(Debug, Clone, Default)]
enum Held<'a> {
    #[default]
    None,
    One(Text<'a>),
    Many(Vec<Text<'a>>),
}

impl<'a> Ids<'a> {
    /// Puts an id behind the others.
    pub fn push(&mut self, id: Text<'a>) {
        self.0 = match std::mem::take(&mut self.0) {
            Held::None => Held::One(id),
            Held::One(first) => Held::Many(vec![first, id]),
            Held::Many(mut ids) => {
                ids.push(id);
                Held::Many(ids)
            }
        };
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> Deref for Ids<'a> {
    type Target = [Text<'a>];

    fn deref(&self) -> &[Text<'a>] {
        match &self.0 {
            Held::None => &[],
            Held::One(id) => std::slice::from_ref(id),
            Held::Many(ids) => ids,
        }
    }
}

impl PartialEq for Ids<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'a> From<Vec<Text<'a>>> for Ids<'a> {
    fn from(ids: Vec<Text<'a>>) -> Self {
        Self(Held::Many(ids))
    }
}

impl<'i, 'a> IntoIterator for &'i Ids<'a> {
    type Item = &'i Text<'a>;
    type IntoIter = std::slice::Iter<'i, Text<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Ids<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
