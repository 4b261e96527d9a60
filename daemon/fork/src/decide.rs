//! The core's decisions about the history of a thread, applied to it.

use compactd_core::escalate::{self, Held, Level, Occasion, Sizes, Verdict};
use compactd_core::index::{History as Which, Index};
use compactd_core::rules::{Pins, Profile};
use compactd_core::tokens::Ratio;

use crate::history::Item;
use crate::rewrite::{Gone, rewrite};

/// What may be left, and what is known of the size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Tokens that a person named, counted as [`Decided::tokens_before`] is.
    pub(crate) budget: Option<u64>,
    /// Tokens at which the host compacts by itself, where it was set.
    pub(crate) threshold: Option<u64>,
    /// The model's window.
    pub(crate) window: Option<u64>,
    /// What the host counted last.
    pub(crate) host_tokens: Option<u64>,
    /// Characters of the items that came since.
    pub(crate) since: u64,
    /// Characters beside the texts: base instructions, sealed items.
    pub(crate) beside: u64,
}

/// What was decided and done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decided {
    /// Characters per token: the session's own, but no more tokens than the host counted.
    pub(crate) ratio: Ratio,
    /// Estimated size before.
    pub(crate) tokens_before: u64,
    /// Characters of the texts that are left.
    pub(crate) chars_after: u64,
    /// What was to be reached, if anything was.
    pub(crate) target: Option<u64>,
    /// How far it went for it.
    pub(crate) level: Level,
    /// More is left than was to be.
    pub(crate) is_over: bool,
    /// Tool results in the history.
    pub(crate) results: u64,
    /// What went.
    pub(crate) gone: Gone,
}

/// Decides, with both levels of escalation, and changes the items accordingly. `items` must be those
/// of the context of the index, which must be settled.
pub(crate) fn decide(
    items: &mut Vec<Item>,
    index: &Index,
    profile: Profile,
    pins: &Pins,
    wish: Wish,
) -> Decided {
    let pass = index.pass(Which::Context, profile, pins);
    let ratio = index.ratio();
    let most = wish.host_tokens.map(|tokens| tokens + ratio.tokens(wish.since));
    let ratio = most.map_or(ratio, |most| ratio.fitted(pass.chars() + wish.beside, most));
    let tokens_before = ratio.tokens(pass.chars() + wish.beside);
    let (tokens, budget) = match wish.budget {
        Some(budget) => (tokens_before, Some(budget)),
        // The host counts its tools too.
        None => {
            let counted = wish.host_tokens.unwrap_or_default().max(tokens_before);
            (counted, escalate::budget(wish.window, wish.threshold))
        }
    };
    // An unknown window bounds nothing: then all of what stands beside the texts is believed.
    let window = wish.window.or(Some(u64::MAX));
    let sizes = Sizes { ratio, chars: pass.chars(), tokens: Some(tokens), window, budget };
    let held = Held::whole(&pass);
    let escalation = escalate::escalate(&pass, &held, &sizes, Occasion::default());
    let is_skipped = escalation.verdict == Verdict::Skip;
    let freed = if is_skipped { 0 } else { escalation.freed };
    let gone = if is_skipped { Gone::default() } else { rewrite(items, &pass, &escalation) };
    Decided {
        ratio,
        tokens_before,
        chars_after: pass.chars().saturating_add_signed(freed.saturating_neg()),
        target: escalation.target,
        level: escalation.level,
        is_over: escalation.target.is_some_and(|target| escalation.left > target),
        results: pass.len() as u64,
        gone,
    }
}

/// Characters that an item takes up beside its texts: what is sealed, and images.
pub(crate) fn beside(item: &Item) -> u64 {
    let Some(value) = item.value() else { return 0 };
    let sealed = value.member("encrypted_content").and_then(|text| text.text());
    // Sealed bytes are written in base64, with a head of their own.
    let sealed = sealed.map_or(0, |text| (text.len() as u64 * 3 / 4).saturating_sub(SEAL_BYTES));
    // Told to the model as they stand.
    let tools =
        if value.kind().as_deref() == Some("additional_tools") { item.raw.len() } else { 0 };
    let parts = ["content", "output"].iter().filter_map(|key| value.member(key));
    let images = parts
        .flat_map(|parts| parts.elements())
        .filter(|part| part.kind().as_deref() == Some("input_image"))
        .count() as u64;
    sealed + tools as u64 + images * IMAGE_CHARS
}

/// Bytes of a seal itself.
const SEAL_BYTES: u64 = 650;
/// An image of usual size is about a thousand tokens.
const IMAGE_CHARS: u64 = 3_700;

#[cfg(test)]
mod tests {
    use super::*;
    use compactd_core::record::json;

    #[test]
    fn sealed_items_and_images_have_a_size() {
        let size = |raw: &str| beside(&Item::new(json::value(raw).unwrap(), 0));
        let sealed = format!(
            r#"{{"type":"reasoning","summary":[],"encrypted_content":"{}"}}"#,
            "A".repeat(4_000)
        );
        assert_eq!(size(&sealed), 3_000 - 650);
        assert_eq!(size(r#"{"type":"reasoning","summary":[],"encrypted_content":"AAAA"}"#), 0);
        let images = r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"x"},{"type":"input_text","text":"y"},{"type":"input_image","image_url":"x"}]}"#;
        assert_eq!(size(images), 2 * IMAGE_CHARS);
    }
}
