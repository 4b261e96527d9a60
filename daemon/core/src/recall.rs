//! Where a result and its call stand in the transcript, for giving back what a pass took away.

use crate::index::Index;
use crate::index::log::{Item, result_flag};

/// A row that holds a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultPlace {
    /// Byte at which its line starts, in the file that the row stands in.
    pub offset: u64,
    /// Characters of the result there.
    pub chars: u32,
    /// It is a note of an earlier pass.
    pub noted: bool,
}

/// All rows of a history that hold a result or its call, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Rows with the result: the thing itself, copies of it, and notes in its place.
    pub results: Vec<ResultPlace>,
    /// Offsets of rows with the call.
    pub calls: Vec<u64>,
}

impl Places {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.results.is_empty() && self.calls.is_empty()
    }
}

impl Index {
    /// Where the result with this id and its call stand. Costs the number of rows if the id is known at
    /// all, else next to nothing.
    #[must_use]
    pub fn places(&self, id: &str) -> Places {
        let mut places = Places::default();
        let log = self.log();
        let Some(wanted) = log.names.find(id) else { return places };
        for at in 0..log.len() {
            for &item in log.items(at) {
                match item {
                    Item::Result(result) if log.result(result).id == wanted => {
                        let entry = log.result(result);
                        places.results.push(ResultPlace {
                            offset: log.row(at).offset,
                            chars: entry.chars,
                            noted: entry.flags & result_flag::NOTED != 0,
                        });
                    }
                    Item::Call(call) if log.call(call).id == wanted => {
                        places.calls.push(log.row(at).offset);
                    }
                    _ => {}
                }
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note;
    use crate::record::Host;
    use crate::settings::Settings;

    #[test]
    fn the_first_row_is_the_thing_and_notes_are_marked() {
        let mut index = Index::new(Host::Claude, &Settings::default());
        let call = r#"{"type":"assistant","uuid":"a","parentUuid":null,"message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#;
        let result = |uuid: &str, text: &str| {
            format!(
                r#"{{"type":"user","uuid":"{uuid}","parentUuid":"a","message":{{"content":[{{"type":"tool_result","tool_use_id":"t1","content":"{text}"}}]}}}}"#
            )
        };
        let mut offset = 0;
        for line in [call.to_owned(), result("b", "one two"), result("c", &note::dropped(7))] {
            index.apply(line.as_bytes(), offset);
            offset += line.len() as u64 + 1;
        }
        let places = index.places("t1");
        let first = call.len() as u64 + 1;
        assert_eq!(places.calls, [0]);
        assert_eq!(places.results[0], ResultPlace { offset: first, chars: 7, noted: false });
        assert!(places.results[1].noted && places.results.len() == 2);
        assert!(index.places("t2").is_empty());
    }
}
