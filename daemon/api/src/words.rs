//! The closed sets of words on the wire. A value that this version does not know reads as `Other`.

use serde::{Deserialize, Serialize};

/// Makes an enum of words: written as its name, read from it, anything else is `Other`.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
            /// A value of a newer version.
            #[serde(rename = "other", other)]
            Other,
        }

        impl $name {
            /// All known values, without `Other`.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The value as written on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other => "other",
                }
            }

            /// Reads a known value as [`Self::name`] writes it.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// A program whose sessions are compacted.
    Host {
        /// Claude Code.
        Claude = "claude",
        /// Codex.
        Codex = "codex",
    }
}

words! {
    /// What started a compaction.
    Trigger {
        /// The person.
        Manual = "manual",
        /// A full context.
        Auto = "auto",
        /// Another plugin.
        Plugin = "plugin",
        /// The host, on the chance that it will be needed.
        Precompute = "precompute",
    }
}

words! {
    /// Whose row it is.
    Role {
        /// The person, or the host for them: tool results ride here.
        User = "user",
        /// The model: tool calls ride here.
        Assistant = "assistant",
    }
}

words! {
    /// Which set of rules decides.
    Profile {
        /// The five published rules as they are: call and result go together.
        Reference = "reference",
        /// The same rules; calls stay, long inputs are shortened.
        Standard = "standard",
    }
}

words! {
    /// Which part of a session is looked at.
    History {
        /// What the host would send now.
        Context = "context",
        /// The whole file as one history; only to grade.
        Whole = "whole",
    }
}

words! {
    /// What becomes of a result.
    DecisionKind {
        /// It stays as it is.
        Keep = "keep",
        /// Its beginning and a note stay.
        Truncate = "truncate",
        /// A note stays, or nothing where the call goes too.
        Drop = "drop",
    }
}

words! {
    /// What becomes of the call of a result.
    CallFate {
        /// It stays as it is.
        Kept = "kept",
        /// It stays; long parts of its input are cut.
        Shortened = "shortened",
        /// It goes with its result.
        Removed = "removed",
    }
}

words! {
    /// How far a pass had to go to fit the budget.
    Level {
        /// The rules alone.
        Rules = "rules",
        /// Further results that are easy to have again.
        Cuts = "cuts",
        /// Old assistant texts too.
        Texts = "texts",
        /// All that, and the host's own summary.
        Summary = "summary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_other() {
        assert_eq!(serde_json::from_str::<Trigger>("\"auto\"").unwrap(), Trigger::Auto);
        assert_eq!(serde_json::from_str::<Trigger>("\"lunar\"").unwrap(), Trigger::Other);
        assert_eq!(serde_json::to_string(&Trigger::Other).unwrap(), "\"other\"");
        assert_eq!(Host::from_name("codex"), Some(Host::Codex));
        assert_eq!(Host::from_name("other"), None);
        for host in Host::ALL {
            assert_eq!(serde_json::to_string(host).unwrap(), format!("\"{host}\""));
        }
    }
}
