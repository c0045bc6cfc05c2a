//! Congestion controllers of the stacks that are something else than the controller with this name here. Sources are
//! those of [`super::stacks`].

use crate::congestion_control::CongestionControl;

/// Profile, congestion control, and what the stack has in its place.
const NOTES: [(&str, CongestionControl, &str); 11] = [
    (
        "quinn-0.11",
        CongestionControl::Bbr,
        "quinn's BBR follows Chromium's version 1, of which it uses the window only",
    ),
    (
        "quiche-0.29",
        CongestionControl::Bbr,
        "quiche's `bbr` is BBR version 2 with gains of version 3 (recovery/gcongestion/bbr2.rs): `bbr-quiche` here",
    ),
    (
        "quiche-0.30",
        CongestionControl::Bbr,
        "quiche's `bbr2_gcongestion` is BBR version 2 with gains of version 3 (recovery/gcongestion/bbr2.rs): `bbr-quiche` here",
    ),
    ("quic-go-0.61", CongestionControl::Bbr, "quic-go has no BBR"),
    ("neqo-0.30", CongestionControl::Bbr, "neqo has no BBR"),
    (
        "s2n-quic-1.88",
        CongestionControl::Bbr,
        "s2n-quic's BBR is version 2 (quic/s2n-quic-core/src/recovery/bbr.rs): `bbr-s2n` here",
    ),
    ("s2n-quic-1.88", CongestionControl::NewReno, "s2n-quic has CUBIC and BBR only"),
    (
        "msquic-2.6",
        CongestionControl::Bbr,
        "msquic's BBR follows Chromium's version 1 (src/core/bbr.c)",
    ),
    ("msquic-2.6", CongestionControl::NewReno, "msquic has CUBIC and BBR only"),
    (
        "picoquic-1.1",
        CongestionControl::Bbr,
        "picoquic's `bbr` is version 3 (picoquic/bbr.c), `bbr-picoquic` here, its `bbr1` version 1",
    ),
    (
        "picoquic-1.1",
        CongestionControl::Cubic(cc::cubic::CubicVariant::Rfc),
        "picoquic's CUBIC keeps 7/8 of the window, sets the cubic function at once, and ignores single losses \
         (picoquic/cubic.c)",
    ),
];

/// What the stack of a profile has in place of this congestion control; `None` if the profile describes it.
pub fn controller_note(profile: &str, cc: CongestionControl) -> Option<&'static str> {
    let of = |note: &&(&str, CongestionControl, &str)| note.0 == profile && note.1 == cc;
    NOTES.iter().find(of).map(|note| note.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::QuicProfile;

    #[test]
    fn notes_are_of_profiles_and_not_of_their_defaults() {
        for (profile, cc, _) in NOTES {
            let found = QuicProfile::named(profile);
            assert!(found.is_some_and(|found| found.controller() != cc), "{profile}");
        }
        assert_eq!(controller_note("quic-rfc9002", CongestionControl::Bbr), None);
    }
}
