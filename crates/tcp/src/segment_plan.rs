//! The segment that a stack has decided to send.

use record::SentKind;
use units::Offset;

/// The segment that a pass decided to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentPlan {
    pub(crate) at: Offset,
    pub(crate) len: u64,
    pub(crate) fin: bool,
    pub(crate) push: bool,
    pub(crate) kind: SentKind,
    /// Another pass follows.
    pub(crate) more: bool,
}
