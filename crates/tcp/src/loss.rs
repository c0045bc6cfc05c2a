//! Loss detection and recovery by duplicate acknowledgments alone (`newreno`, RFC 6582) and by
//! RACK-TLP (`rack_tlp`). The stacks of FreeBSD have theirs in `stacks`.

pub(crate) mod newreno;
pub(crate) mod rack_tlp;

/// Duplicate acknowledgments that signal a loss (RFC 5681 section 3.2).
pub(crate) const DUP_THRESHOLD: u32 = 3;
