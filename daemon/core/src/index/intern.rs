//! Interning: a number for every distinct hash or string, given in order of first sight.

use hashbrown::HashTable;

use crate::hash::hash;

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

/// Numbers for 64-bit hashes (terms, lines). The texts themselves are not kept.
#[derive(Debug, Default, Clone)]
pub(crate) struct Hashes {
    hashes: Vec<u64>,
    table: HashTable<u32>,
}

impl Hashes {
    /// The number of `hash`, a new one if it was never seen.
    pub(crate) fn intern(&mut self, hash: u64) -> u32 {
        let Self { hashes, table } = self;
        let at = |&id: &u32| hashes.get(id as usize).copied().unwrap_or_default();
        if let Some(&id) = table.find(hash, |id| at(id) == hash) {
            return id;
        }
        let id = u32::try_from(hashes.len()).unwrap_or(NONE);
        table.insert_unique(hash, id, at);
        super::log::push(hashes, hash);
        id
    }

    /// The number of `hash` if it was seen.
    pub(crate) fn find(&self, hash: u64) -> Option<u32> {
        self.table.find(hash, |&id| self.hashes.get(id as usize) == Some(&hash)).copied()
    }

    /// How many distinct hashes there are.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The hashes in order of their numbers.
    pub(crate) fn all(&self) -> &[u64] {
        &self.hashes
    }

    /// Builds the table again from hashes in order of their numbers (a snapshot's).
    pub(crate) fn from_all(hashes: Vec<u64>) -> Self {
        let mut table = HashTable::with_capacity(hashes.len());
        for (id, &hash) in (0u32..).zip(&hashes) {
            table.insert_unique(hash, id, |&id: &u32| {
                hashes.get(id as usize).copied().unwrap_or_default()
            });
        }
        Self { hashes, table }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.hashes.capacity() * 8 + self.table.allocation_size()
    }
}

/// Numbers for strings (call ids, tool names, paths). The texts are kept.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names {
    text: String,
    ends: Vec<u32>,
    table: HashTable<u32>,
}

impl Names {
    /// The text of a number; empty for one that was never given.
    pub(crate) fn get(&self, id: u32) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// The number of `name`, a new one if it was never seen.
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        if let Some(id) = self.find(name) {
            return id;
        }
        let id = u32::try_from(self.ends.len()).unwrap_or(NONE);
        self.text.push_str(name);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(NONE));
        let Self { text, ends, table } = self;
        table
            .insert_unique(hash(name.as_bytes()), id, |&id| hash(slice(text, ends, id).as_bytes()));
        id
    }

    /// The number of `name` if it has one.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.table.find(hash(name.as_bytes()), |&id| self.get(id) == name).copied()
    }

    /// All texts, and where each ends.
    pub(crate) fn parts(&self) -> (&str, &[u32]) {
        (&self.text, &self.ends)
    }

    /// Builds the table again from a snapshot's parts; `None` if they do not fit together.
    pub(crate) fn from_parts(text: &str, ends: &[u32]) -> Option<Self> {
        let mut names = Self::default();
        let mut start = 0;
        for (at, &end) in (0u32..).zip(ends) {
            if names.intern(text.get(start..end as usize)?) != at {
                return None;
            }
            start = end as usize;
        }
        (start == text.len()).then_some(names)
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 4 + self.table.allocation_size()
    }
}

fn slice<'a>(text: &'a str, ends: &[u32], id: u32) -> &'a str {
    let at = id as usize;
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(at).and_then(|&end| text.get(start as usize..end as usize)).unwrap_or_default()
}
