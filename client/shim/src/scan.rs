//! Finds a string among the top-level fields of a JSON object, tolerantly: no allocation, no
//! validation, and no escapes in what is found (event names and ordinary paths have none).

/// The raw bytes of the string value of `key`, if the object has one at its top level.
pub(crate) fn string<'a>(json: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut depth = 0_usize;
    let mut at = 0;
    let mut last: Option<&[u8]> = None;
    let mut is_value = false;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let text = quoted(json.get(at..)?)?;
                at += text.len() + 1;
                if depth == 1 && is_value && last == Some(key) {
                    return (!text.contains(&b'\\')).then_some(text);
                }
                last = Some(text);
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 1 => is_value = true,
            b',' if depth == 1 => {
                is_value = false;
                last = None;
            }
            _ => {}
        }
    }
    None
}

/// What stands before the closing quote.
fn quoted(rest: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        match rest.get(at)? {
            b'"' => return rest.get(..at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn only_a_top_level_string_counts() {
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(string(json.as_bytes(), b"k"), expected.map(str::as_bytes), "{json}");
        };
        check(r#"{"k":"v"}"#, Some("v"));
        check(" {\n \"a\" : [1, {\"k\":\"no\"}], \"k\" :\t\"v\" }", Some("v"));
        check(r#"{"prompt":"say \"k\":\"no\" \\","k":"v"}"#, Some("v"));
        check(r#"{"a":"k","b":"no"}"#, None);
        check(r#"{"a":{"k":"no"}}"#, None);
        check(r#"{"k":null,"b":"no"}"#, None);
        check(r#"{"k":{"b":"no"}}"#, None);
        check(r#"{"k":"a\u0041"}"#, None);
        check(r#"{"k":"v"#, None);
        check(r#"{"k":"v\"#, None);
        check("", None);
        check("]]}}\"", None);
    }
}
