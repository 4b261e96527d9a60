use super::*;

#[test]
fn a_flaw_names_its_place() {
    let flaw = |raw| item(raw).unwrap_err().to_string();
    assert_eq!(
        flaw(
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":null}]}"#
        ),
        "at /content/1/text: expected a string"
    );
    assert_eq!(flaw("7"), "at /: expected an object");
    assert_eq!(flaw("{"), "at /: expected JSON");
    assert_eq!(
        flaw(r#"{"type":"novel"}"#),
        "at /type: expected a kind of item that the host sends on"
    );
}
