//! What the SYNs of a connection ask for, and what both agree on.

use packet::{Dir, Flags, SynExtras};

use crate::{Analysis, ObservedSyn};

/// Support of explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnSupport {
    /// None.
    None,
    /// One echo a round trip (RFC 3168).
    Classic,
    /// A count of marks (`AccECN`, RFC 9768).
    Accurate,
}

impl EcnSupport {
    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Classic => "classic",
            Self::Accurate => "accurate",
        }
    }

    /// What the flags of a client's SYN ask for (RFC 9768 section 3.1.1).
    fn asked(syn: &ObservedSyn) -> Self {
        let both = Flags::ECE | Flags::CWR;
        match (syn.flags.has(both), syn.options.extras.accurate_ecn) {
            (true, true) => Self::Accurate,
            (true, false) => Self::Classic,
            (false, _) => Self::None,
        }
    }

    /// What the flags of a SYN-ACK grant to what was asked for (RFC 9768 section 3.1.2, table 2).
    fn granted(answer: &ObservedSyn, asked: Self) -> Self {
        let has = |flag: Flags| answer.flags.has(flag);
        match (asked, answer.options.extras.accurate_ecn, has(Flags::CWR), has(Flags::ECE)) {
            (Self::None, ..) | (_, false, false, false) | (_, true, true, true) => Self::None,
            (Self::Accurate, _, true, _) | (Self::Accurate, true, false, false) => Self::Accurate,
            (_, _, false, true) => Self::Classic,
            (Self::Classic, ..) => Self::None,
        }
    }
}

/// What the SYNs of a connection negotiated. Values are `None` where a SYN, or a part of its options, is not in
/// the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// The last SYN of each host, by [`Dir`].
    pub syns: [Option<ObservedSyn>; 2],
}

impl Negotiated {
    /// What the SYNs of a connection negotiated.
    pub const fn of(analysis: &Analysis) -> Self {
        Self { syns: analysis.observed_syns }
    }

    /// The SYN of the host that sends in direction `dir`, if it was captured with all its options.
    pub fn complete(&self, dir: Dir) -> Option<&ObservedSyn> {
        self.syns[dir as usize].as_ref().filter(|syn| syn.is_complete)
    }

    /// Whether both SYNs have an option; one that lacks it decides.
    fn both(&self, has: fn(&ObservedSyn) -> bool) -> Option<bool> {
        match [Dir::Forward, Dir::Reverse].map(|dir| self.complete(dir).map(has)) {
            [Some(false), _] | [_, Some(false)] => Some(false),
            [Some(true), Some(true)] => Some(true),
            _ => None,
        }
    }

    /// Window scaling (RFC 7323).
    pub fn window_scaling(&self) -> Option<bool> {
        self.both(|syn| syn.options.window_scale.is_some())
    }

    /// Selective acknowledgments (RFC 2018).
    pub fn sack(&self) -> Option<bool> {
        self.both(|syn| syn.options.sack_permitted)
    }

    /// Timestamps (RFC 7323).
    pub fn timestamps(&self) -> Option<bool> {
        self.both(|syn| syn.timestamps)
    }

    /// Multipath TCP (RFC 8684).
    pub fn multipath(&self) -> Option<bool> {
        self.both(|syn| syn.options.extras.multipath)
    }

    /// What the client's SYN asks for; flags are in every captured header.
    pub fn asked_ecn(&self) -> Option<EcnSupport> {
        self.syns[Dir::Forward as usize].as_ref().map(EcnSupport::asked)
    }

    /// Explicit congestion notification.
    pub fn ecn(&self) -> Option<EcnSupport> {
        let answer = self.syns[Dir::Reverse as usize].as_ref()?;
        Some(EcnSupport::granted(answer, self.asked_ecn()?))
    }

    /// Bytes of the Fast Open cookie in the SYN of a host, 0 in the client's request for one; `None` without
    /// the option.
    pub fn fast_open(&self, dir: Dir) -> Option<u8> {
        let options = self.complete(dir)?.options;
        let SynExtras { fast_open, .. } = options.extras;
        fast_open.or_else(|| options.fast_open.map(|option| option.cookie().len() as u8))
    }
}

#[cfg(test)]
mod tests {
    use packet::SynOptions;

    use super::*;

    fn syn(accurate_ecn: bool, flags: Flags) -> ObservedSyn {
        let extras = SynExtras { accurate_ecn, ..SynExtras::NONE };
        ObservedSyn {
            options: SynOptions { extras, sack_permitted: true, ..SynOptions::default() },
            flags,
            window: 65_535,
            timestamps: false,
            data: 0,
            is_complete: true,
        }
    }

    /// RFC 9768, table 2: AE, CWR and ECE of the SYN and of the SYN-ACK.
    #[test]
    fn the_flags_of_both_syns_negotiate_ecn() {
        use EcnSupport::{Accurate, Classic, None};
        let bits = |bits: u8| {
            let flag = |bit: u8, flag| if bits & bit != 0 { flag } else { Flags::NONE };
            syn(bits & 4 != 0, Flags::SYN | flag(2, Flags::CWR) | flag(1, Flags::ECE))
        };
        for (asks, answers, granted) in [
            (0b111, 0b010, Accurate),
            (0b111, 0b011, Accurate),
            (0b111, 0b100, Accurate),
            (0b111, 0b110, Accurate),
            (0b111, 0b101, Classic),
            (0b111, 0b001, Classic),
            (0b111, 0b000, None),
            (0b111, 0b111, None),
            (0b011, 0b001, Classic),
            (0b011, 0b000, None),
            (0b011, 0b011, None),
            (0b000, 0b001, None),
        ] {
            let both = Negotiated { syns: [Some(bits(asks)), Some(bits(answers))] };
            assert_eq!(both.ecn(), Some(granted), "{asks:03b} {answers:03b}");
        }
    }

    #[test]
    fn what_is_agreed_on_is_unknown_without_both_syns_and_all_their_options() {
        let [one, cut] = [true, false].map(|is_complete| {
            Some(ObservedSyn { is_complete, ..syn(false, Flags::SYN | Flags::ECE | Flags::CWR) })
        });
        let all = |syns| {
            let negotiated = Negotiated { syns };
            (negotiated.sack(), negotiated.timestamps(), negotiated.ecn())
        };
        assert_eq!(all([one, one]), (Some(true), Some(false), Some(EcnSupport::None)));
        // A SYN that lacks an option decides.
        assert_eq!(all([one, cut]), (None, Some(false), Some(EcnSupport::None)));
        assert_eq!(all([cut, one]), (None, Some(false), Some(EcnSupport::None)));
        assert_eq!(all([one, None]), (None, Some(false), None));
        assert_eq!(all([None, cut]), (None, None, None));
    }
}
