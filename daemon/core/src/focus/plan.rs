//! Which few rows of the context the focus text is written from.

use hashbrown::{HashMap, HashSet};

use crate::hash::Identity;
use crate::index::log::{Item, RowKind, result_flag, row_flag, text_flag};
use crate::index::{History, Index};
use crate::tools::{ToolKind, kind};

/// No more rows than this are looked at, from the newest back.
const ROWS: usize = 4_000;
const PROMPTS: usize = 20;
const SAID: usize = 12;
const FAILED: usize = 8;
/// Calls that are read again to see whether one that failed passed later.
const RAN: usize = 40;
const CHANGED: usize = 12;
const READ: usize = 24;

/// What a row is wanted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The person's words.
    Prompt,
    /// The agent's words.
    Said,
    /// A result that is an error.
    Failed {
        /// Its id.
        id: String,
    },
    /// A call: what it ran.
    Ran {
        /// Its id.
        id: String,
    },
    /// A call: which file it changed.
    Changed {
        /// Its id.
        id: String,
    },
}

/// A row to read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Byte at which its line starts, in the file that the row stands in.
    pub offset: u64,
    /// What it is wanted for.
    pub kind: Kind,
    /// Characters of the wanted text (prompts and the agent's words), by which it is known again.
    pub chars: u32,
    /// Its place in the context: a larger one is newer.
    pub place: u32,
}

/// What to read again, and what the index itself knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The rows, the newest first.
    pub rows: Vec<Wanted>,
    /// Paths of files read, the newest first.
    pub read: Vec<String>,
    /// Names of files changed, with the place of the change; of a shell command only names of files that
    /// were read too, because what else it may write is mostly a guess.
    pub changed: Vec<(u32, String)>,
    /// Calls that passed: place and id.
    pub passed: Vec<(u32, String)>,
}

impl Index {
    /// What the focus text of the present context is written from. The index must be settled; the cost
    /// is bounded.
    #[must_use]
    pub fn focus_plan(&self) -> Plan {
        let live = self.live(History::Context);
        let log = self.log();
        let results: HashMap<u32, usize, Identity> =
            live.results().iter().enumerate().map(|(at, result)| (result.entry, at)).collect();
        let read: HashSet<u32, Identity> = live
            .results()
            .iter()
            .rev()
            .take(ROWS)
            .flat_map(|result| log.reads(log.result(result.entry)).map(|(_, name)| name))
            .collect();
        let mut plan = Plan::default();
        let mut counts = [0_usize; 5];
        let mut take = |of: usize, most: usize| {
            let count = counts.get_mut(of)?;
            *count += 1;
            (*count <= most).then_some(())
        };
        // The calls whose rows, further back, are to be read.
        let mut ran: HashMap<u32, u32, Identity> = HashMap::default();
        let mut changed: HashMap<u32, u32, Identity> = HashMap::default();
        let mut place = u32::try_from(live.rows().len()).unwrap_or(u32::MAX);
        for &(at, _) in live.rows().iter().rev().take(ROWS) {
            place = place.saturating_sub(1);
            let row = log.row(at);
            let name = |number: u32| log.names.get(number).to_owned();
            // What stands beside a result is not the person's.
            let has_result = log.items(at).iter().any(|item| matches!(item, Item::Result(_)));
            for &item in log.items(at) {
                let mut want = |kind: Kind, chars: u32| {
                    plan.rows.push(Wanted { offset: row.offset, kind, chars, place });
                };
                match item {
                    Item::Text(text) if row.flags & row_flag::SUMMARY == 0 => {
                        let text = log.text(text);
                        let is_prompt = row.kind == RowKind::User
                            && row.flags & row_flag::PROMPT != 0
                            && !has_result;
                        if text.flags & text_flag::BLANK != 0 {
                        } else if is_prompt && take(0, PROMPTS).is_some() {
                            want(Kind::Prompt, text.chars);
                        } else if row.kind == RowKind::Assistant && take(1, SAID).is_some() {
                            want(Kind::Said, text.chars);
                        }
                    }
                    Item::Result(result) => {
                        let entry = log.result(result);
                        let Some(counted) =
                            results.get(&result).and_then(|&at| live.results().get(at))
                        else {
                            continue;
                        };
                        if entry.flags & result_flag::NOTED != 0 {
                            // What it said is gone from the context.
                        } else if entry.flags & result_flag::ERROR != 0 {
                            if take(2, FAILED).is_some() {
                                want(Kind::Failed { id: name(entry.id) }, 0);
                                ran.insert(counted.call, place);
                            }
                        } else if take(3, RAN).is_some() {
                            plan.passed.push((place, name(entry.id)));
                            ran.insert(counted.call, place);
                        }
                        for (path, _) in log.reads(entry) {
                            let path = name(path);
                            if plan.read.len() < READ && !plan.read.contains(&path) {
                                plan.read.push(path);
                            }
                        }
                        let names = log.name_refs(entry.writes);
                        if !names.is_empty() && take(4, CHANGED).is_some() {
                            let tool = log.names.get(log.call(counted.call).tool);
                            let is_sure = matches!(kind(tool), ToolKind::Edit | ToolKind::Code);
                            let names =
                                names.iter().filter(|&&file| is_sure || read.contains(&file));
                            plan.changed.extend(names.map(|&file| (place, name(file))));
                            changed.insert(counted.call, place);
                        }
                    }
                    Item::Call(call) => {
                        let id = log.call(call).id;
                        if let Some(place) = ran.remove(&call) {
                            let kind = Kind::Ran { id: name(id) };
                            plan.rows.push(Wanted { offset: row.offset, kind, chars: 0, place });
                        }
                        if let Some(place) = changed.remove(&call) {
                            let kind = Kind::Changed { id: name(id) };
                            plan.rows.push(Wanted { offset: row.offset, kind, chars: 0, place });
                        }
                    }
                    _ => {}
                }
            }
        }
        plan
    }
}
