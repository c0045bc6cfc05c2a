//! What most segments carry, in less than half of their room.

use packet::{Dir, Flags, IpVersion, Options, Segment, Timestamps};
use units::{FlowId, SeqNum};

/// A segment on its way: all that most of them have, and of the others what stations ask for. In the
/// order of [`Segment`], so that neighbours are copied together.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Carried {
    pub(super) flow: FlowId,
    pub(super) seq: SeqNum,
    pub(super) ack: SeqNum,
    pub(super) payload: u32,
    pub(super) dir: Dir,
    ip: IpVersion,
    pub(super) ecn: u8,
    pub(super) flags: Flags,
    window: u16,
    /// It has more than this: the whole segment stands apart.
    pub(super) apart: bool,
    stamped: bool,
    /// The timestamps of one that is stamped; of one that stands apart, TSval is its number there.
    pub(super) stamps: Timestamps,
}

/// Half a cache line: a flight is tens of thousands of them.
const _: () = assert!(size_of::<Carried>() <= 32);

impl Carried {
    /// Writes what a segment carries, unless it has to stand apart.
    #[inline(always)]
    pub(super) fn write(&mut self, segment: &Segment) -> bool {
        let more = segment.gso_size | segment.nsegs != 0;
        if more || !matches!(segment.options, Options::None) {
            return false;
        }
        let stamps = segment.timestamps.unwrap_or_default();
        *self = Self::seen(segment, [false, segment.timestamps.is_some()], stamps);
        true
    }

    /// The same of one that stands apart, under that number.
    pub(super) fn apart(segment: &Segment, number: u32) -> Self {
        Self::seen(segment, [true, false], Timestamps { val: number, ecr: 0 })
    }

    #[inline(always)]
    fn seen(segment: &Segment, [apart, stamped]: [bool; 2], stamps: Timestamps) -> Self {
        Self {
            flow: segment.flow,
            seq: segment.seq,
            ack: segment.ack,
            payload: segment.payload,
            dir: segment.dir,
            ip: segment.ip,
            ecn: segment.ecn,
            flags: segment.flags,
            window: segment.window,
            apart,
            stamped,
            stamps,
        }
    }

    /// The segment, if it does not stand apart.
    #[inline(always)]
    pub(super) fn segment(&self) -> Segment {
        Segment {
            flow: self.flow,
            seq: self.seq,
            ack: self.ack,
            payload: self.payload,
            dir: self.dir,
            ip: self.ip,
            ecn: self.ecn,
            flags: self.flags,
            window: self.window,
            gso_size: 0,
            nsegs: 0,
            timestamps: self.stamped.then_some(self.stamps),
            options: Options::None,
        }
    }
}
