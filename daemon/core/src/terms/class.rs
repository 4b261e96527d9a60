//! What a byte is to the term rules, and where in a block a term may be.
//!
//! [`Block::mark`] looks at every byte, without branches, so that the compiler makes vector code of
//! it; everything after it looks only at the few bytes it marked.

/// `a`-`z`.
pub(super) const LOWER: u8 = 1;
/// `A`-`Z`.
pub(super) const UPPER: u8 = 2;
/// `0`-`9`.
pub(super) const DIGIT: u8 = 4;
/// `_`.
pub(super) const UNDER: u8 = 8;
/// `-` and `$`: in an identifier, neither letter, digit nor `_`.
pub(super) const JOIN: u8 = 16;
/// `.`
pub(super) const DOT: u8 = 32;
/// `,`
pub(super) const COMMA: u8 = 64;
/// `/ \ ~ @ +`: in a chunk, but not in an identifier.
pub(super) const PATH: u8 = 128;

pub(super) const LETTER: u8 = LOWER | UPPER;
pub(super) const ALNUM: u8 = LETTER | DIGIT;
/// What identifiers are made of.
pub(super) const WORD: u8 = ALNUM | UNDER | JOIN;
/// What chunks are made of.
pub(super) const CHUNK: u8 = WORD | DOT | PATH;
/// What numbers are made of.
pub(super) const NUMBER: u8 = DIGIT | UNDER | DOT | COMMA;

/// The class of every byte; 0 for those that are in no term but a line or a quotation.
pub(super) const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = match b as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDER,
            b'-' | b'$' => JOIN,
            b'.' => DOT,
            b',' => COMMA,
            b'/' | b'\\' | b'~' | b'@' | b'+' => PATH,
            _ => 0,
        };
        b += 1;
    }
    table
};

/// Whether a byte is of one of the classes.
#[inline]
pub(super) fn is(byte: u8, classes: u8) -> bool {
    CLASS[usize::from(byte)] & classes != 0
}

/// Whether the byte before `at` is of one of the classes; no byte is of none.
#[inline]
pub(super) fn behind(bytes: &[u8], at: usize, classes: u8) -> bool {
    at.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(|b| is(*b, classes))
}

/// Inside an identifier, if it has the length: `_` behind another word byte and before one, `-`
/// between letters and digits, a capital behind a small letter or digit. A bit each.
const IDENTIFIER: u8 = 1 | 2 | 4;
/// A number may start here, or `E` and four digits one byte before.
pub(super) const NUMBER_START: u8 = 8;
/// `/` or `\`.
pub(super) const SLASH: u8 = 16;
/// `"` or a backtick.
const QUOTE: u8 = 32;
/// `'` behind no letter or digit.
const APOSTROPHE: u8 = 64;
/// Of the class [`WORD`].
const IN_WORD: u8 = 128;

/// The marks of 64 bytes, the first in the lowest bit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// One of the [`IDENTIFIER`] marks.
    pub(super) identifier: u64,
    /// Any other mark: [`NUMBER_START`], [`SLASH`] or a quote.
    pub(super) other: u64,
    /// Of the class [`WORD`].
    pub(super) word: u64,
}

/// Bytes looked at in one go: the scratch stays in the fastest cache.
pub(super) const BLOCK: usize = 4096;
/// Bytes of the text that a block shows behind its end: the longest error word less one.
pub(super) const AHEAD: usize = 8;
const LEAD: usize = 16;
const SIZE: usize = LEAD + BLOCK + 64;

/// Scratch of one block.
#[derive(Debug, Clone)]
pub(super) struct Block {
    text: Vec<u8>,
    lower: Vec<u8>,
    /// For each byte the marks it may have for itself, as the byte before and as the byte behind.
    itself: Vec<u8>,
    before: Vec<u8>,
    behind: Vec<u8>,
    marks: Vec<u8>,
    any: Vec<u8>,
    planes: Vec<Marks>,
}

/// What [`Block::mark`] found.
pub(super) struct Marked<'a> {
    /// The marks of each 64 bytes.
    pub(super) planes: &'a [Marks],
    /// Which marks a byte has.
    pub(super) marks: &'a [u8],
    /// The block and [`AHEAD`] more bytes in ASCII lower case.
    pub(super) lower: &'a [u8],
}

impl Block {
    pub(super) fn new() -> Self {
        let bytes = || vec![0; SIZE];
        Self {
            text: bytes(),
            lower: bytes(),
            itself: bytes(),
            before: bytes(),
            behind: bytes(),
            marks: bytes(),
            any: bytes(),
            planes: vec![Marks::default(); BLOCK / 64],
        }
    }

    /// Looks at `bytes[at..]`, up to [`BLOCK`] bytes of it.
    pub(super) fn mark(&mut self, bytes: &[u8], at: usize) -> Marked<'_> {
        let rest = bytes.get(at..).unwrap_or_default();
        let len = rest.len().min(BLOCK);
        let seen = rest.len().min(BLOCK + AHEAD);
        let padded = len.next_multiple_of(64);
        let end = LEAD + padded + 16;

        self.text[LEAD - 1] = if at > 0 { bytes[at - 1] } else { 0 };
        self.text[LEAD..LEAD + seen].copy_from_slice(&rest[..seen]);
        self.text[LEAD + seen..end].fill(0);
        classify(
            &self.text[..end],
            &mut self.lower[..end],
            &mut self.itself[..end],
            &mut self.before[..end],
            &mut self.behind[..end],
        );
        join(
            &self.itself[LEAD..][..padded],
            &self.before[LEAD - 1..][..padded],
            [1, 2, 3].map(|i| &self.behind[LEAD + i..][..padded]),
            &mut self.marks[..padded],
            &mut self.any[..padded],
        );
        for (any, planes) in self.any[..padded].as_chunks().0.iter().zip(&mut self.planes) {
            *planes = Marks {
                identifier: plane::<1>(any),
                other: plane::<2>(any),
                word: plane::<IN_WORD>(any),
            };
        }
        Marked {
            planes: &self.planes[..padded / 64],
            marks: &self.marks[..padded],
            lower: &self.lower[LEAD..LEAD + seen],
        }
    }
}

/// One bit of each of 64 bytes. The product moves the bit of each of eight bytes by another
/// distance, so that the eight meet in its top byte.
#[inline]
fn plane<const BIT: u8>(bytes: &[u8; 64]) -> u64 {
    let ones = u64::from_le_bytes([BIT; 8]);
    let spread = 0x0102_0408_1020_4080 >> BIT.trailing_zeros();
    let mut plane = [0; 8];
    for (part, eight) in plane.iter_mut().zip(bytes.as_chunks().0) {
        *part = ((u64::from_le_bytes(*eight) & ones).wrapping_mul(spread) >> 56) as u8;
    }
    u64::from_le_bytes(plane)
}

/// `yes` as a mask of bits.
#[inline(always)]
fn when(yes: bool, bits: u8) -> u8 {
    if yes { bits } else { 0 }
}

/// Whether `b` is one of the `n` bytes from `first` on, as a mask.
#[inline(always)]
fn within(b: u8, first: u8, n: u8) -> u8 {
    when(b.wrapping_sub(first) < n, 0xff)
}

#[inline(always)]
fn equal(b: u8, to: u8) -> u8 {
    when(b == to, 0xff)
}

/// The first step: what each byte alone says.
#[inline(never)]
fn classify(
    text: &[u8],
    lower: &mut [u8],
    itself: &mut [u8],
    before: &mut [u8],
    behind: &mut [u8],
) {
    let n = text.len();
    let (lower, itself) = (&mut lower[..n], &mut itself[..n]);
    let (before, behind) = (&mut before[..n], &mut behind[..n]);
    for i in 0..n {
        let b = text[i];
        let (upper, digit) = (within(b, b'A', 26), within(b, b'0', 10));
        let small = within(b, b'a', 26) | digit;
        let alnum = small | upper;
        let (under, dash, dot) = (equal(b, b'_'), equal(b, b'-'), equal(b, b'.'));
        let word = alnum | under | dash | equal(b, b'$');
        lower[i] = b | (upper & 0x20);
        itself[i] = (under & 1)
            | (dash & 2)
            | (upper & 4)
            | (digit & NUMBER_START)
            | ((equal(b, b'/') | equal(b, b'\\')) & SLASH)
            | ((equal(b, b'"') | equal(b, b'`')) & QUOTE)
            | (equal(b, b'\'') & APOSTROPHE)
            | (word & IN_WORD);
        before[i] = (SLASH | QUOTE | IN_WORD)
            | (word & !under & 1)
            | (alnum & 2)
            | (small & 4)
            | ((!(alnum | under | dot) | equal(b, b'E')) & NUMBER_START)
            | (!alnum & APOSTROPHE);
        behind[i] = (4 | SLASH | QUOTE | APOSTROPHE | IN_WORD)
            | (word & 1)
            | (alnum & 2)
            | ((digit | under | dot | equal(b, b',')) & NUMBER_START);
    }
}

/// The second step: a byte has a mark if itself, the byte before and the byte behind may give it; a
/// number asks three bytes behind.
#[inline(never)]
fn join(itself: &[u8], before: &[u8], behind: [&[u8]; 3], marks: &mut [u8], any: &mut [u8]) {
    let n = marks.len();
    let (itself, before, any) = (&itself[..n], &before[..n], &mut any[..n]);
    let [behind, behind2, behind3] = behind.map(|s| &s[..n]);
    for i in 0..n {
        let number = (behind2[i] & behind3[i]) | !NUMBER_START;
        let mark = itself[i] & before[i] & behind[i] & number;
        marks[i] = mark;
        any[i] =
            (mark & IDENTIFIER).min(1) | (mark & !(IDENTIFIER | IN_WORD)).min(2) | (mark & IN_WORD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_see_the_classes() {
        let text: Vec<u8> = (0..=255).collect();
        let mut out: [Vec<u8>; 4] = std::array::from_fn(|_| vec![0; 256]);
        let [lower, itself, before, behind] = &mut out;
        classify(&text, lower, itself, before, behind);
        for b in 0..=255_u8 {
            let i = usize::from(b);
            assert_eq!(lower[i], b.to_ascii_lowercase());
            assert_eq!(itself[i] & IN_WORD != 0, is(b, WORD), "{b}");
            assert_eq!(itself[i] & NUMBER_START != 0, is(b, DIGIT), "{b}");
            assert_eq!(before[i] & 1 != 0, is(b, WORD & !UNDER), "{b}");
            assert_eq!(before[i] & 2 != 0, is(b, ALNUM), "{b}");
            assert_eq!(before[i] & 4 != 0, is(b, LOWER | DIGIT), "{b}");
            let stop = is(b, ALNUM | UNDER | DOT) && b != b'E';
            assert_eq!(before[i] & NUMBER_START == 0, stop, "{b}");
            assert_eq!(before[i] & APOSTROPHE == 0, is(b, ALNUM), "{b}");
            assert_eq!(behind[i] & NUMBER_START != 0, is(b, NUMBER), "{b}");
        }
    }

    #[test]
    fn planes_are_the_bits() {
        let bytes: [u8; 64] = std::array::from_fn(|i| (i * 37 + i / 3) as u8);
        let want = |bit: u32| (0..64).map(|i| u64::from(bytes[i] >> bit & 1) << i).sum::<u64>();
        assert_eq!(plane::<1>(&bytes), want(0));
        assert_eq!(plane::<2>(&bytes), want(1));
        assert_eq!(plane::<16>(&bytes), want(4));
        assert_eq!(plane::<128>(&bytes), want(7));
        assert_eq!(plane::<16>(&[255; 64]), u64::MAX);
    }
}
