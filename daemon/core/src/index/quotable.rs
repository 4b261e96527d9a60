//! Which results show a line that a later text may quote.
//!
//! Kept for every line of 40 and more characters of every result, so it is packed: eight bytes a
//! line, of which 40 bits are the line's hash and 24 name the result (or a list of several).
//! A false match needs two of some hundred thousand lines to agree in 40 bits, and would only keep
//! a result that could have gone.

use hashbrown::HashTable;

use super::intern::NONE;

const HASH_BITS: u64 = !0xff_ffff;
const LIST: u32 = 1 << 23;

/// One more result with the same line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct More {
    pub(crate) result: u32,
    pub(crate) next: u32,
}

/// See the module. Results are named by their place in the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quotable {
    lines: HashTable<u64>,
    more: Vec<More>,
}

impl Quotable {
    /// Notes that a result shows a line. Results come in order.
    pub(crate) fn add(&mut self, line: u64, result: u32) {
        if result >= LIST || self.more.len() + 2 >= LIST as usize {
            return; // more results than any host lets a session have
        }
        let Some(known) = self.lines.find_mut(place(line), |known| same(*known, line)) else {
            let packed = line & HASH_BITS | u64::from(result);
            self.lines.insert_unique(place(packed), packed, |&packed| place(packed));
            return;
        };
        let head = low(*known);
        let next = if head & LIST == 0 {
            self.more.push(More { result: head, next: NONE });
            last(&self.more)
        } else {
            head & !LIST
        };
        super::log::push(&mut self.more, More { result, next });
        *known = line & HASH_BITS | u64::from(LIST | last(&self.more));
    }

    /// Whether any result shows the line.
    pub(crate) fn holds(&self, line: u64) -> bool {
        self.lines.find(place(line), |known| same(*known, line)).is_some()
    }

    /// The results that show the line, the newest first.
    pub(crate) fn results(&self, line: u64) -> impl Iterator<Item = u32> + '_ {
        let head = self.lines.find(place(line), |known| same(*known, line));
        let head = head.map_or(NONE, |&known| low(known));
        let single = (head & LIST == 0).then_some(head);
        let mut at = if head != NONE && head & LIST != 0 { head & !LIST } else { NONE };
        let list = std::iter::from_fn(move || {
            let more = self.more.get(at as usize)?;
            at = more.next;
            Some(more.result)
        });
        single.into_iter().chain(list)
    }

    /// What a snapshot stores.
    pub(crate) fn parts(&self) -> (Vec<u64>, &[More]) {
        (self.lines.iter().copied().collect(), &self.more)
    }

    /// What a snapshot stored.
    pub(crate) fn from_parts(lines: &[u64], more: Vec<More>) -> Self {
        let mut table = HashTable::with_capacity(lines.len());
        for &packed in lines {
            table.insert_unique(place(packed), packed, |&packed| place(packed));
        }
        Self { lines: table, more }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.lines.allocation_size() + self.more.capacity() * size_of::<More>()
    }
}

/// Where a line is looked for. The table takes both ends of it, and the low bits of what is packed
/// are no hash.
fn place(line: u64) -> u64 {
    let bits = line & HASH_BITS;
    bits | bits >> 40
}

fn same(known: u64, line: u64) -> bool {
    (known ^ line) & HASH_BITS == 0
}

fn low(packed: u64) -> u32 {
    (packed & !HASH_BITS) as u32
}

fn last(more: &[More]) -> u32 {
    u32::try_from(more.len()).unwrap_or(NONE).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_results_of_a_line_newest_first() {
        let mut quotable = Quotable::default();
        let line = 0x1234_5678_9abc_def0;
        for result in [3, 5, 9] {
            quotable.add(line, result);
        }
        quotable.add(line ^ (1 << 40), 7);
        assert_eq!(quotable.results(line).collect::<Vec<_>>(), [9, 5, 3]);
        assert_eq!(quotable.results(line ^ (1 << 40)).collect::<Vec<_>>(), [7]);
        assert!(!quotable.holds(1 << 50) && quotable.results(1 << 50).next().is_none());
        let (lines, more) = quotable.parts();
        let again = Quotable::from_parts(&lines, more.to_vec());
        assert_eq!(again.results(line).collect::<Vec<_>>(), [9, 5, 3]);
    }
}
