//! Whatever is lost, all bytes arrive, and flow control and congestion control hold.

use proptest::prelude::*;
use record::{Event, SentKind};
use units::{Bytes, Duration};

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::profile::{NAMES, QuicCubicParams, QuicCubicRule, QuicProfile, SendRule};

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_arrive_over_any_path(
        name in prop::sample::select(NAMES.to_vec()),
        pacing in any::<bool>(),
        every in 1_u32..5,
        bytes in 1_u64..400_000,
        delay in 0_u64..60,
        random_source in any::<u64>(),
        share in 0_u64..20,
    ) {
        let profile = QuicProfile::named(name).unwrap();
        let mut profile = QuicProfile { pacing, ..profile };
        profile.acks.every = every;
        profile.windows.stream = 50_000;
        let mut state = random_source;
        let mut pair = QuicPair::new(profile, profile, Duration::from_millis(delay))
            .rate(20_000_000)
            .losing(move |_, _| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                (state >> 33) % 100 < share
            });
        pair.keep = false;
        pair.open();
        pair.run_for(Duration::from_secs(60));
        let open = pair.ends[CLIENT].is_open() && pair.ends[SERVER].is_open();
        prop_assume!(open);
        pair.write(CLIENT, bytes);
        pair.act(CLIENT, |client, _| client.close());
        pair.run_for(Duration::from_secs(600));
        prop_assert_eq!(pair.ends[SERVER].recv.taken(), bytes);
        prop_assert!(pair.ends[SERVER].at_end());
        prop_assert!(pair.ends[CLIENT].send.is_done());
        prop_assert_eq!(pair.ends[CLIENT].bytes_in_flight, 0);
        let mut extra = 0;
        // Proportional rate reduction adds to the room in the window.
        let mut largest = Bytes(0);
        for (_, event, state) in &pair.traces[CLIENT].0 {
            let (Event::Sent { kind, .. }, Some(state)) = (event, state) else { continue };
            if !matches!(kind, SentKind::New | SentKind::Retransmission(_)) {
                continue;
            }
            // Probes and the one packet on entering recovery may exceed the window, and where the rule is that some
            // of it is left, each last packet.
            let over = if profile.send == SendRule::Overshoot { profile.mtu } else { 0 };
            let reduced = matches!(
                profile.cubic,
                QuicCubicRule::Packets(QuicCubicParams { rate_reduction: true, .. })
            );
            largest = largest.max(state.cwnd);
            let window = if reduced { largest } else { state.cwnd };
            extra += u64::from(state.in_flight > window + Bytes(over.into()));
        }
        let totals = pair.ends[CLIENT].totals();
        let allowed = 40 * (totals.recoveries + 2 * totals.timeouts);
        prop_assert!(extra <= allowed, "{} {}", extra, allowed);
    }
}
