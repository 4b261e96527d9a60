//! At how many tokens Codex compacts by itself, where the person set it.

use std::path::Path;

/// `model_auto_compact_token_limit` of `config.toml` in a Codex home; `None` where it is not set or
/// the file cannot be read.
#[must_use]
pub fn auto_compact_limit(home: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(home.join("config.toml")).ok()?;
    let config: toml::Table = text.parse().ok()?;
    let limit = config.get("model_auto_compact_token_limit")?.as_integer()?;
    u64::try_from(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(auto_compact_limit(home.path()), None);
        for (text, limit) in [
            ("model_auto_compact_token_limit = 25_000 # small", Some(25_000)),
            ("model_auto_compact_token_limit = -1", None),
            ("[x]\nmodel_auto_compact_token_limit = 5", None),
            ("broken =", None),
        ] {
            std::fs::write(home.path().join("config.toml"), text).unwrap();
            assert_eq!(auto_compact_limit(home.path()), limit, "{text}");
        }
    }
}
