//! Where the hosts keep their transcripts, and what a path alone says about a file.
//!
//! Claude Code: `<root>/projects/<dir>/<session>.jsonl`, sub-agents in
//! `<session>/subagents/agent-<id>.jsonl`. Codex: `rollout-<stamp>-<thread>[_<segment>].jsonl[.zst]`
//! anywhere below `sessions/`, or in `archived_sessions/`.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use compactd_core::record::Host;

/// Directories below a tree that are looked into: Codex finds rollouts in invented folders too.
const MAX_DEPTH: usize = 8;
const STAMP_CHARS: usize = "2026-11-30T08-56-12".len();
const UUID_CHARS: usize = 36;

/// What a path says about a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The program that writes there.
    pub host: Host,
    /// The session (Claude Code) or thread (Codex).
    pub key: String,
    /// The sub-agent whose transcript it is, where the path tells (Claude Code).
    pub agent: Option<String>,
    /// What else the name of a rollout tells (Codex).
    pub rollout: Option<Rollout>,
}

/// The parts of a rollout's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollout {
    /// Local time of its making, as written.
    pub stamp: String,
    /// Set for the second and later files of a thread.
    pub segment: Option<String>,
    /// Lies in `archived_sessions`.
    pub is_archived: bool,
    /// Packed with zstd.
    pub is_packed: bool,
}

impl Place {
    /// Reads a path without knowing the roots; `None` if it looks like neither host's.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let parts = normal_parts(path)?;
        let name = *parts.last()?;
        let after = |folder: &str| Some(parts.iter().rposition(|part| *part == folder)? + 1);
        if let Some(start) = after("projects")
            && let Some(place) = claude_place(&parts[start..])
        {
            return Some(place);
        }
        codex_place(name, after("archived_sessions").is_some())
    }

    /// The place of a file that lies anywhere: its name is the key, unless it is a rollout's.
    #[must_use]
    pub fn loose(path: &Path, host: Host) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rollout = (host == Host::Codex).then(|| codex_place(&name, false)).flatten();
        rollout.unwrap_or_else(|| {
            let stem = name.strip_suffix(".zst").unwrap_or(&name);
            let key = stem.strip_suffix(".jsonl").unwrap_or(stem).to_owned();
            Self { host, key, agent: None, rollout: None }
        })
    }
}

/// One directory below which a host writes transcripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Absolute path; it need not exist.
    pub path: PathBuf,
    /// The program that writes there.
    pub host: Host,
    is_archive: bool,
}

/// All directories in which transcripts are looked for.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    trees: Vec<Tree>,
}

impl Roots {
    /// Roots from Claude Code's configuration folders (which hold `projects`) and Codex homes
    /// (which hold `sessions` and `archived_sessions`). Such an inner folder can be named itself.
    #[must_use]
    pub fn new(
        claude: impl IntoIterator<Item = PathBuf>,
        codex: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let mut roots = Self::default();
        for root in claude {
            roots.add(&root, Host::Claude, &[("projects", false)]);
        }
        for home in codex {
            let folders = [("sessions", false), ("archived_sessions", true)];
            roots.add(&home, Host::Codex, &folders);
        }
        roots
    }

    fn add(&mut self, root: &Path, host: Host, folders: &[(&str, bool)]) {
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_path_buf());
        let is_named = |folder: &str| root.file_name().is_some_and(|name| name == folder);
        let inner = folders.iter().find(|(folder, _)| is_named(folder));
        let trees: Vec<Tree> = match inner {
            Some((_, is_archive)) => vec![Tree { path: root, host, is_archive: *is_archive }],
            None => folders
                .iter()
                .map(|(folder, is_archive)| Tree {
                    path: root.join(folder),
                    host,
                    is_archive: *is_archive,
                })
                .collect(),
        };
        for tree in trees {
            if self.trees.iter().all(|known| known.path != tree.path) {
                self.trees.push(tree);
            }
        }
    }

    /// The directories below which transcripts lie, existing or not.
    #[must_use]
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// What the path of a file inside the roots says; `None` for any other file.
    #[must_use]
    pub fn place(&self, path: &Path) -> Option<Place> {
        let (tree, parts) = self.locate(path)?;
        tree.place(&parts)
    }

    /// The tree that a directory lies in, and its names below it.
    pub(crate) fn locate<'a>(&self, dir: &'a Path) -> Option<(&Tree, Vec<&'a str>)> {
        self.trees
            .iter()
            .find_map(|tree| Some((tree, normal_parts(dir.strip_prefix(&tree.path).ok()?)?)))
    }

    /// As [`Self::place`] for a path from outside (a hook's `transcript_path`): it may reach the
    /// roots by another name, but must end inside them.
    #[must_use]
    pub fn admit(&self, path: &Path) -> Option<Place> {
        if let Some(place) = self.place(path) {
            return Some(place);
        }
        let real = path.canonicalize().ok()?;
        self.trees.iter().find_map(|tree| {
            let parts = normal_parts(real.strip_prefix(tree.path.canonicalize().ok()?).ok()?)?;
            tree.place(&parts)
        })
    }

    /// Whether transcripts can lie in this directory or below it, trees themselves included.
    #[must_use]
    pub fn enters(&self, dir: &Path) -> bool {
        self.locate(dir).is_some_and(|(tree, parts)| tree.enters(&parts))
    }
}

impl Tree {
    pub(crate) fn place(&self, parts: &[&str]) -> Option<Place> {
        match self.host {
            Host::Claude => claude_place(parts),
            Host::Codex if parts.len() > MAX_DEPTH => None,
            Host::Codex => codex_place(parts.last()?, self.is_archive),
        }
    }

    pub(crate) fn enters(&self, parts: &[&str]) -> bool {
        parts.len() < MAX_DEPTH
            && match self.host {
                // A session's folder also holds large tool results: only one branch matters.
                Host::Claude => parts.get(2).is_none_or(|part| *part == "subagents"),
                Host::Codex => true,
            }
    }
}

/// Whether a file name can be a transcript's at all.
#[must_use]
pub fn has_transcript_name(path: &Path) -> bool {
    path.file_name()
        .map(OsStr::as_encoded_bytes)
        .is_some_and(|name| name.ends_with(b".jsonl") || name.ends_with(b".jsonl.zst"))
}

/// The names in a path, if all are UTF-8 and none is `..`.
fn normal_parts(path: &Path) -> Option<Vec<&str>> {
    let mut parts = Vec::with_capacity(8);
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => return None,
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(parts)
}

/// `parts` stand below `projects`.
fn claude_place(parts: &[&str]) -> Option<Place> {
    let stem = valid_id(parts.last()?.strip_suffix(".jsonl")?)?;
    let (key, agent) = match parts {
        [_, _] => (stem, None),
        [_, session, "subagents", .., _] if parts.len() <= MAX_DEPTH => {
            (valid_id(session)?, Some(valid_id(stem.strip_prefix("agent-")?)?.to_owned()))
        }
        _ => return None,
    };
    Some(Place { host: Host::Claude, key: key.to_owned(), agent, rollout: None })
}

fn codex_place(name: &str, is_archived: bool) -> Option<Place> {
    let is_packed = name.ends_with(".zst");
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    let rest = stem.strip_prefix("rollout-")?;
    let (stamp, rest) = rest.split_at_checked(STAMP_CHARS)?;
    let ids = rest.strip_prefix('-')?;
    let (thread, segment) = match ids.split_once('_') {
        Some((thread, segment)) => (thread, Some(segment)),
        None => (ids, None),
    };
    if !is_stamp(stamp) || !is_uuid(thread) || !segment.is_none_or(is_uuid) {
        return None;
    }
    let rollout = Rollout {
        stamp: stamp.to_owned(),
        segment: segment.map(str::to_owned),
        is_archived,
        is_packed,
    };
    let key = thread.to_owned();
    Some(Place { host: Host::Codex, key, agent: None, rollout: Some(rollout) })
}

fn is_stamp(stamp: &str) -> bool {
    stamp.bytes().zip(b"0000-00-00T00-00-00").all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == *shape,
    })
}

fn is_uuid(id: &str) -> bool {
    id.len() == UUID_CHARS
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// An id that is safe to print and to build names from.
fn valid_id(id: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_valid = (1..=128).contains(&id.len()) && id.bytes().all(is_plain);
    (is_valid && id != "." && id != "..").then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "01a22bab-7fc4-7621-9bf6-c6757fc8279e";
    const SEGMENT: &str = "01a22bab-8bd6-73f3-844f-e549b275bb4c";

    fn check(path: &str, expected: Option<(Host, &str, Option<&str>)>) {
        let roots = Roots::new(["/h/.claude".into()], ["/h/.codex".into()]);
        let place = roots.place(Path::new(path));
        let seen = place.as_ref().map(|p| (p.host, p.key.as_str(), p.agent.as_deref()));
        assert_eq!(seen, expected, "{path}");
        if expected.is_some() {
            assert_eq!(Place::of(Path::new(path)), place, "{path}");
        }
    }

    #[test]
    fn reads_claude_paths() {
        check("/h/.claude/projects/-w/s-1.jsonl", Some((Host::Claude, "s-1", None)));
        let agent = "/h/.claude/projects/-w/s-1/subagents/agent-a07.jsonl";
        check(agent, Some((Host::Claude, "s-1", Some("a07"))));
        let nested = "/h/.claude/projects/-w/s-1/subagents/x/agent-a07.jsonl";
        check(nested, Some((Host::Claude, "s-1", Some("a07"))));
        check("/h/.claude/projects/-w/s-1/tool-results/x.jsonl", None);
        check("/h/.claude/projects/s-1.jsonl", None);
        check("/h/.claude/projects/-w/s 1.jsonl", None);
        check("/h/.claude/projects/-w/../s.jsonl", None);
        check("/h/.claude/projects/-w/s-1.meta.json", None);
        check("/h/.claude/history.jsonl", None);
    }

    #[test]
    fn reads_codex_paths() {
        let day = "/h/.codex/sessions/2026/11/30/rollout-2026-11-30T08-56-12";
        check(&format!("{day}-{THREAD}.jsonl"), Some((Host::Codex, THREAD, None)));
        check(&format!("{day}-{THREAD}_{SEGMENT}.jsonl.zst"), Some((Host::Codex, THREAD, None)));
        check(&format!("{day}-{THREAD}_x.jsonl"), None);
        check(&format!("{day}{THREAD}.jsonl"), None);
        check("/h/.codex/sessions/2026/rollout-2026-11-30T08-56-é.jsonl", None);
        let archived = format!(
            "/h/.codex/archived_sessions/rollout-2026-11-30T08-56-12-{THREAD}_{SEGMENT}.jsonl"
        );
        check(&archived, Some((Host::Codex, THREAD, None)));
        let rollout = Place::of(Path::new(&archived)).unwrap().rollout.unwrap();
        assert_eq!(rollout.segment.as_deref(), Some(SEGMENT));
        assert!(rollout.is_archived && !rollout.is_packed);
    }

    #[test]
    fn a_loose_file_has_its_name_as_key() {
        let key = |path: &str, host| Place::loose(Path::new(path), host).key;
        assert_eq!(key("/tmp/copy of it.jsonl", Host::Claude), "copy of it");
        assert_eq!(key("/tmp/x.jsonl.zst", Host::Codex), "x");
        let rollout = format!("rollout-2026-11-30T08-56-12-{THREAD}.jsonl");
        assert_eq!(key(&rollout, Host::Codex), THREAD);
    }

    #[test]
    fn enters_only_what_can_hold_transcripts() {
        let roots = Roots::new(["/h/.claude".into(), "/p/projects".into()], ["/h/.codex".into()]);
        let enters = |path: &str| roots.enters(Path::new(path));
        assert!(enters("/h/.claude/projects") && enters("/p/projects/-w"));
        assert!(enters("/h/.claude/projects/-w/s/subagents"));
        assert!(enters("/h/.codex/sessions/2026/11/30"));
        assert!(!enters("/h/.claude/projects/-w/s/tool-results"));
        assert!(!enters("/h/.claude/todos") && !enters("/h"));
        assert!(!enters("/h/.codex/sessions/1/2/3/4/5/6/7/8"));
    }

    #[test]
    fn admits_other_names_of_the_same_file_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("real");
        std::fs::create_dir_all(root.join("projects/-w")).unwrap();
        std::fs::write(root.join("projects/-w/s.jsonl"), "").unwrap();
        std::fs::write(dir.path().join("s.jsonl"), "").unwrap();
        std::os::unix::fs::symlink(&root, dir.path().join("link")).unwrap();
        let roots = Roots::new([dir.path().join("link")], []);
        assert!(roots.admit(&root.join("projects/-w/s.jsonl")).is_some());
        assert!(roots.admit(&root.join("projects/../projects/-w/s.jsonl")).is_some());
        assert!(roots.admit(&dir.path().join("s.jsonl")).is_none());
        assert!(roots.admit(&root.join("projects/-w/../../../s.jsonl")).is_none());
    }
}
