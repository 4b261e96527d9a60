//! Changes inside a JSON text that leave every other byte as it is.

use std::ops::Range;

/// Replacements of parts of one text.
#[derive(Debug, Default)]
pub(crate) struct Splice {
    parts: Vec<(Range<usize>, String)>,
}

impl Splice {
    /// Puts `with` in the place of `part`, which must be a slice of the text.
    pub(crate) fn replace(&mut self, text: &str, part: &str, with: String) {
        if let Some(range) = place(text, part) {
            self.parts.push((range, with));
        }
    }

    /// Puts `with` in front of the byte at `at`.
    pub(crate) fn insert(&mut self, at: usize, with: String) {
        self.parts.push((at..at, with));
    }

    /// The text with everything replaced. Overlapping parts: the first one counts.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.parts.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (range, with) in self.parts {
            if range.start < at {
                continue;
            }
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(&with);
            at = range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// Where a slice of a text stands in it.
pub(crate) fn place(text: &str, part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let range = start..start.checked_add(part.len())?;
    (text.get(range.clone()) == Some(part)).then_some(range)
}

/// A text as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactd_core::record::json;

    #[test]
    fn the_rest_keeps_its_bytes() {
        let text = r#"{"a":"x" , "b": 1.0}"#;
        let value = json::value(text).unwrap();
        let mut splice = Splice::default();
        splice.replace(text, value.member("b").unwrap().get(), "2".into());
        splice.replace(text, value.member("a").unwrap().get(), quote("\n\u{1}"));
        splice.insert(text.len() - 1, ",\"c\":3".into());
        assert_eq!(splice.apply(text), "{\"a\":\"\\n\\u0001\" , \"b\": 2,\"c\":3}");
    }
}
