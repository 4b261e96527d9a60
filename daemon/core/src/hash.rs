//! The one hash of the index: terms, lines and contents are known by it, and it stands on disk.

use std::hash::{BuildHasher, Hasher};

/// XXH3-64 with seed 0. Stable: stored files hold these numbers.
#[inline]
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// Hashes keys that are hashes already (numbers from [`hash`]): a key is its own hash.
///
/// Only for keys from [`hash`]: its bits are spread evenly, those of a counter are not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Identity;

/// The hasher of [`Identity`].
#[derive(Debug, Clone, Copy, Default)]
pub struct IdentityHasher(u64);

impl BuildHasher for Identity {
    type Hasher = IdentityHasher;

    #[inline]
    fn build_hasher(&self) -> IdentityHasher {
        IdentityHasher(0)
    }
}

impl Hasher for IdentityHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    /// Keys of another kind than `u64` are hashed, so that a wrong use is slow rather than wrong.
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash(b"a"), 0xe6c6_32b6_1e96_4e1f);
        assert_eq!(hash(b"daemon/core/src/terms.rs"), hash("daemon/core/src/terms.rs".as_bytes()));
    }

    #[test]
    fn a_key_is_its_own_hash() {
        assert_eq!(Identity.hash_one(7_u64), 7);
        let mut map: hashbrown::HashMap<u64, u32, Identity> =
            hashbrown::HashMap::with_hasher(Identity);
        for i in 0..1000_u32 {
            map.insert(hash(&i.to_le_bytes()), i);
        }
        assert_eq!(map.len(), 1000);
        assert_eq!(map.get(&hash(&5_u32.to_le_bytes())), Some(&5));
    }

    #[test]
    fn short_words_do_not_collide() {
        let mut seen: Vec<u64> =
            (0..1_000_000).map(|i| hash(format!("id_{i}").as_bytes())).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1_000_000);
    }
}
