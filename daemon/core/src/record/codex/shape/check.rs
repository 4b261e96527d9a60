//! Shapes as tables, and the walk that holds a value against one.

use std::borrow::Cow;
use std::fmt::Display;

use super::super::super::json::Raw;
use super::Flaw;

pub(super) type Check = Result<(), Flaw>;

/// Lists and objects within each other that the host's JSON reader takes.
const DEPTH_MAX: usize = 127;

/// What may stand at a place.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// Anything that the host can read.
    Any,
    Text,
    Flag,
    /// A whole number from 0 that fits 64 bits.
    Count,
    /// A whole number that fits 64 bits with a sign.
    Whole,
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    List(&'static Self),
    /// An object with these fields; others are allowed.
    Object(&'static [Field]),
    /// An object whose keys are free.
    Map(&'static Self),
    /// An object whose `type` says which fields it has.
    Tagged(&'static [(&'static str, &'static [Field])]),
    /// Either of two.
    Either(&'static Self, &'static Self),
    /// What no table can say.
    By(fn(Raw<'_>, usize) -> Check),
}

/// A field of an object.
#[derive(Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    shape: Shape,
    need: Need,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    /// May be missing, but not null.
    Could,
    /// May be missing or null.
    May,
}

pub(super) const fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, need: Need::Must }
}

pub(super) const fn could(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, need: Need::Could }
}

pub(super) const fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, need: Need::May }
}

impl Flaw {
    pub(super) fn here(expected: impl Into<String>) -> Self {
        Self { place: String::new(), expected: expected.into() }
    }

    /// The same flaw, seen from the thing that holds this one under `key`.
    pub(super) fn under(mut self, key: impl Display) -> Self {
        let key = key.to_string().replace('~', "~0").replace('/', "~1");
        self.place = format!("/{key}{}", self.place);
        self
    }
}

/// Holds a value against a shape; `depth`: lists and objects around it.
pub(super) fn check(shape: Shape, raw: Raw<'_>, depth: usize) -> Check {
    match shape {
        Shape::Any => sound(raw, depth),
        Shape::Text => text(raw).map(|_| ()),
        Shape::Flag => is(matches!(raw.get(), "true" | "false"), "true or false"),
        Shape::Count => is(raw.get().parse::<u64>().is_ok(), "a whole number from 0"),
        Shape::Whole => is(raw.get().parse::<i64>().is_ok(), "a whole number"),
        Shape::Number => is(is_number(raw), "a number").and_then(|()| number(raw)),
        Shape::Word(words) => {
            let found = text(raw).is_ok_and(|text| words.contains(&text.as_ref()));
            is(found, &one_of(words.iter().copied()))
        }
        Shape::List(element) => {
            is(raw.is_list(), "a list")?;
            deeper(depth)?;
            for (at, value) in raw.elements().enumerate() {
                check(*element, value, depth + 1).map_err(|flaw| flaw.under(at))?;
            }
            Ok(())
        }
        Shape::Object(fields) => object(fields, raw, depth),
        Shape::Map(value) => {
            is(raw.is_object(), "an object")?;
            members(raw, depth, |_, raw| check(*value, raw, depth + 1))
        }
        Shape::Tagged(kinds) => {
            let kind = kind(raw)?;
            let Some((_, fields)) = kinds.iter().find(|(name, _)| *name == kind) else {
                let names = kinds.iter().map(|(name, _)| *name);
                return Err(Flaw::here(one_of(names)).under("type"));
            };
            object(fields, raw, depth)
        }
        Shape::Either(one, other) => {
            let first = match check(*one, raw, depth) {
                Ok(()) => return Ok(()),
                Err(flaw) => flaw,
            };
            check(*other, raw, depth).map_err(|mut second| {
                // The flaw that lies deeper says which of the two was meant.
                if first.place.len() > second.place.len() {
                    return first;
                }
                if first.place == second.place {
                    second.expected = format!("{} or {}", first.expected, second.expected);
                }
                second
            })
        }
        Shape::By(function) => function(raw, depth),
    }
}

/// The `type` of an object.
pub(super) fn kind(raw: Raw<'_>) -> Result<Cow<'_, str>, Flaw> {
    is(raw.is_object(), "an object")?;
    let kind = raw.member("type").ok_or_else(|| Flaw::here("a string").under("type"))?;
    text(kind).map_err(|flaw| flaw.under("type"))
}

/// Holds an object against its fields.
pub(super) fn object(fields: &[Field], raw: Raw<'_>, depth: usize) -> Check {
    is(raw.is_object(), "an object")?;
    members(raw, depth, |key, value| match fields.iter().find(|field| field.name == key) {
        Some(field) if field.need == Need::May && value.is_null() => Ok(()),
        Some(field) => check(field.shape, value, depth + 1),
        None => sound(value, depth + 1),
    })?;
    let missing =
        fields.iter().find(|field| field.need == Need::Must && raw.member(field.name).is_none());
    missing.map_or(Ok(()), |field| Err(Flaw::here(words(field.shape)).under(field.name)))
}

/// Goes over the members of an object: a key that is given twice is a flaw, because the host
/// refuses it in some places and takes the last in others.
fn members(raw: Raw<'_>, depth: usize, each: impl Fn(&str, Raw<'_>) -> Check) -> Check {
    deeper(depth)?;
    let mut keys: Vec<Cow<'_, str>> = Vec::new();
    let mut at = raw.walk();
    at.enter(b'{');
    while let (Some(key), Some(value)) = (at.value(), at.value()) {
        let Ok(key) = text(key) else { return Err(Flaw::here("keys without lone surrogates")) };
        if keys.contains(&key) {
            return Err(Flaw::here("one value for this key").under(key));
        }
        each(&key, value).map_err(|flaw| flaw.under(&key))?;
        keys.push(key);
    }
    Ok(())
}

/// Can the host read this, whatever it is?
fn sound(raw: Raw<'_>, depth: usize) -> Check {
    if raw.is_object() {
        return members(raw, depth, |_, value| sound(value, depth + 1));
    }
    if raw.is_list() {
        deeper(depth)?;
        for (at, value) in raw.elements().enumerate() {
            sound(value, depth + 1).map_err(|flaw| flaw.under(at))?;
        }
        return Ok(());
    }
    if raw.is_string() {
        return text(raw).map(|_| ());
    }
    if is_number(raw) { number(raw) } else { Ok(()) }
}

fn deeper(depth: usize) -> Check {
    is(depth < DEPTH_MAX, "no more than 127 lists and objects within each other")
}

fn is_number(raw: Raw<'_>) -> bool {
    raw.get().bytes().next().is_some_and(|byte| byte == b'-' || byte.is_ascii_digit())
}

/// A whole number that does not fit 64 bits voids the record; others are kept as written.
fn number(raw: Raw<'_>) -> Check {
    let written = raw.get();
    let whole = !written.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    let fits = !whole || written.parse::<u64>().is_ok() || written.parse::<i64>().is_ok();
    is(fits, "a number that fits 64 bits")
}

/// The text of a string; lone surrogates are none to the host.
fn text(raw: Raw<'_>) -> Result<Cow<'_, str>, Flaw> {
    is(raw.is_string(), "a string")?;
    let written = raw.get();
    if !written.contains("\\u") {
        return raw.text().ok_or_else(|| Flaw::here("a string"));
    }
    let decoded = serde_json::from_str::<String>(written);
    decoded.map(Cow::Owned).map_err(|_| Flaw::here("a string without lone surrogates"))
}

pub(super) fn is(good: bool, expected: &str) -> Check {
    if good { Ok(()) } else { Err(Flaw::here(expected)) }
}

fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    match words.as_slice() {
        [word] => word.clone(),
        _ => format!("one of {}", words.join(", ")),
    }
}

fn words(shape: Shape) -> String {
    match shape {
        Shape::Any => "a value".to_owned(),
        Shape::Text => "a string".to_owned(),
        Shape::Flag => "true or false".to_owned(),
        Shape::Count => "a whole number from 0".to_owned(),
        Shape::Whole => "a whole number".to_owned(),
        Shape::Number => "a number".to_owned(),
        Shape::Word(words) => one_of(words.iter().copied()),
        Shape::List(_) => "a list".to_owned(),
        Shape::Object(_) | Shape::Map(_) | Shape::Tagged(_) | Shape::By(_) => {
            "an object".to_owned()
        }
        Shape::Either(one, other) => format!("{} or {}", words(*one), words(*other)),
    }
}
