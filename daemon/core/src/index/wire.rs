//! Values with a fixed form in bytes, for snapshots.

use std::borrow::Cow;

/// A value with a fixed form in bytes (little endian, lengths before contents).
pub(super) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(rest: &mut &[u8]) -> Option<Self>;
}

macro_rules! wire_number {
    ($($kind:ty),*) => {$(
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(rest: &mut &[u8]) -> Option<Self> {
                let (head, tail) = rest.split_first_chunk()?;
                *rest = tail;
                Some(Self::from_le_bytes(*head))
            }
        }
    )*};
}
wire_number!(u8, u16, u32, u64);

macro_rules! wire_struct {
    ($kind:ty { $($field:ident),* $(,)? }) => {
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(rest: &mut &[u8]) -> Option<Self> {
                $(let $field = Wire::take(rest)?;)*
                Some(Self { $($field),* })
            }
        }
    };
}
pub(super) use wire_struct;

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        match u8::take(rest)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(rest)? { Some(T::take(rest)?) } else { None })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        for value in self {
            value.put(out);
        }
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let len = usize::try_from(u64::take(rest)?).ok()?;
        // A value takes at least a byte: a length that cannot be true reserves nothing.
        let mut values = Self::with_capacity(len.min(rest.len()));
        for _ in 0..len {
            values.push(T::take(rest)?);
        }
        Some(values)
    }
}

impl Wire for [u64; 6] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(out));
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let mut values = [0; 6];
        for value in &mut values {
            *value = u64::take(rest)?;
        }
        Some(values)
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let len = usize::try_from(u64::take(rest)?).ok()?;
        let (head, tail) = rest.split_at_checked(len)?;
        *rest = tail;
        Self::from_utf8(head.to_vec()).ok()
    }
}

impl Wire for Cow<'static, str> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        String::take(rest).map(Cow::Owned)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(rest: &mut &[u8]) -> Option<Self> {
        Some((A::take(rest)?, B::take(rest)?))
    }
}
