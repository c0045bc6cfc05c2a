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

impl SegmentPlan {
    /// The offset after the segment.
    pub(crate) fn end(&self) -> Offset {
        self.at + self.len + u64::from(self.fin)
    }

    /// Packets of `mss` bytes at most.
    pub(crate) const fn packets(&self, mss: u64) -> u64 {
        if self.len <= mss { 1 } else { self.len.div_ceil(mss) }
    }
}
