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

#[test]
fn dump() {
    let Some(path) = option_env!("SHAPE_TABLE") else { return };
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for row in rows {
        let verdict = match item(&row["item"].to_string()) {
            Ok(kind) => format!("OK {kind:?}"),
            Err(flaw) => flaw.to_string(),
        };
        println!("DUMP {verdict}");
    }
}
