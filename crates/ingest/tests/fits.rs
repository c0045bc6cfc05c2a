//! Every fit is a valid scenario, whatever the capture.

use diagnose::capture_point::CapturePoint;
use fit::{
    Conversation, LossEstimate, LossPattern, Message, OpeningFit, PathFit, PeerSystem, PolicerFit,
    ReorderingFit, WayBackFit, WritePattern,
};
use packet::Dir;
use proptest::prelude::*;
use proptest::{collection, option};
use scenario::{Overrides, load};

fn system() -> impl Strategy<Value = PeerSystem> {
    prop_oneof![Just(PeerSystem::Linux), Just(PeerSystem::FreeBsd), Just(PeerSystem::Unknown)]
}

fn span(most: u64) -> impl Strategy<Value = (u64, u64)> {
    (0..=most, 0..=most).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

prop_compose! {
    fn losses()(
        numbers in collection::btree_set(1..=1_000_000_000_u64, 0..20),
        sent in 0..=1_000_000_000_u64,
        outages in collection::vec(span(10_000_000_000_000), 0..3),
        starts in collection::vec(0..=1_u64 << 50, 20),
    ) -> LossEstimate {
        let mut starts: Vec<_> = starts.into_iter().zip(numbers.iter().copied()).collect();
        starts.sort_unstable();
        let packets = numbers.into_iter().map(|number| (number, 0)).collect();
        LossEstimate { packets, sent, outages, times: Vec::new(), starts }
    }
}

prop_compose! {
    fn ends()(
        (mss, headers) in (1..=65_535_u64, prop_oneof![Just(40_u64), Just(52), Just(60), Just(72)]),
        (flight, bursts) in (0..=1_u64 << 32, any::<bool>()),
        (window, per_ack) in (option::of(0..=1_u64 << 30), option::of(3..=100_000_u64)),
        reads in option::of(0..=1_000_000_000_000_u64),
        (sender, receiver) in (system(), system()),
    ) -> PathFit {
        PathFit {
            dir: Dir::Forward,
            point: CapturePoint::Sender,
            mss,
            headers,
            bytes: 1,
            opened: true,
            to_sender: 0,
            first_data: 0,
            time: 0,
            delivered: Vec::new(),
            rtt: 0,
            rtt_packet: 60,
            rate: None,
            is_rate_seen: true,
            rate_at_most: None,
            rate_at_least: None,
            is_rate_of_receiver: false,
            is_rate_spaced: false,
            buffer: None,
            dropping_queue: None,
            queue_at_least: None,
            window_field: None,
            queueing: 0,
            losses: LossEstimate::default(),
            requests_lost: Vec::new(),
            loses_data: false,
            policer: None,
            shown_policer: None,
            marks: None,
            is_marked: false,
            way_back: None,
            opening: OpeningFit::default(),
            overflows: 0,
            overflowed: Vec::new(),
            held: None,
            late: None,
            per_ack,
            window,
            receive_buffer: None,
            bursts,
            flight,
            is_flight_level: false,
            send_buffer: None,
            reads,
            writes: WritePattern::Bulk,
            ends_of_writes: None,
            conversation: None,
            beside: Vec::new(),
            sender,
            receiver,
            bases: Vec::new(),
        }
    }
}

prop_compose! {
    fn opening()(
        lost in 0..=1_000_u64,
        answers_lost_until in option::of(0..=5_000_000_000_000_000_u64),
        (only_ecn, ecn) in any::<(bool, bool)>(),
        (no_scaling, no_sack) in any::<(bool, bool)>(),
    ) -> OpeningFit {
        OpeningFit { lost, answers_lost_until, only_ecn, ecn, no_scaling, no_sack }
    }
}

prop_compose! {
    fn conversation()(
        messages in collection::vec(
            (any::<bool>(), 1..=1_u64 << 40, 0..=5_000_000_000_000_000_u64), 1..20,
        ),
        held in 0..=2_u64,
        window in option::of(1..=1_u64 << 40),
    ) -> Conversation {
        let message = |(by_client, bytes, after)| Message { by_client, bytes, after };
        Conversation {
            messages: messages.into_iter().map(message).collect(),
            held,
            window,
            longest_wait: None,
        }
    }
}

/// Rate and buffer of a box.
fn bucket() -> impl Strategy<Value = Option<(u64, u64)>> {
    option::of((0..=1_u64 << 60, 0..=1_u64 << 62))
}

prop_compose! {
    /// Parts of the path beside link and losses, and what the hosts write.
    fn boxes()(
        (policer, way_back) in (bucket(), bucket()),
        marks in option::of((0..=1_u64 << 50, 0..=1_u64 << 50)),
        (opening, conversation) in (opening(), option::of(conversation())),
        receive_buffer in option::of(0..=1_u64 << 40),
        (opened, upload) in any::<(bool, bool)>(),
        (to_sender, first_data) in (0..=1_u64 << 50, 0..=1_u64 << 50),
        ends in ends(),
    ) -> PathFit {
        PathFit {
            dir: if upload { Dir::Forward } else { Dir::Reverse },
            opened,
            to_sender,
            first_data,
            policer: policer.map(|(rate, burst)| PolicerFit { rate, burst }),
            way_back: way_back.map(|(rate, buffer)| WayBackFit { rate, buffer, wait: 0 }),
            marks,
            opening,
            conversation,
            receive_buffer,
            ..ends
        }
    }
}

prop_compose! {
    /// Fits of captures of up to two months with any contents: the largest values are those of
    /// damaged timestamps and sequence numbers.
    fn fitted()(
        ends in boxes(),
        (bytes, time) in (1..=1_u64 << 50, 0..=5_000_000_000_000_000_u64),
        rtt in prop_oneof![0..=1_000_u64, 0..=1_000_000_000_u64, 0..=5_000_000_000_000_000_u64],
        rate in option::of(prop_oneof![0..=1_000_u64, 0..=1_u64 << 60]),
        buffer in option::of(0..=1_u64 << 62),
        (losses, loses_data) in (losses(), any::<bool>()),
        held in option::of(span(10_000_000)),
        late in option::of(prop_oneof![
            (2..=16_u64).prop_map(ReorderingFit::Reversed),
            (0.0..=3.0, 1_000..=5_000_000_000_000_000_u64).prop_map(|(a, b)| ReorderingFit::Share(a, b)),
        ]),
        writes in prop_oneof![
            Just(WritePattern::Bulk),
            (1..=1_u64 << 40, 0..=5_000_000_000_000_000_u64).prop_map(|(a, b)| WritePattern::Paced(a, b)),
        ],
    ) -> PathFit {
        PathFit { bytes, time, rtt, rate, buffer, losses, loses_data, held, late, writes, ..ends }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn every_fit_is_a_scenario(fitted in fitted()) {
        for (profile, cc) in
            [("linux-6.18", Some("bbr")), ("freebsd-13.2", Some("newreno")), ("freebsd-rack-main", None)]
        {
            for chance in [LossPattern::Same, LossPattern::Random] {
                let text = fitted.scenario(profile, cc, chance, 1);
                let errors = load(&text, "fit", &Overrides::default()).err().unwrap_or_default();
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                prop_assert!(errors.is_empty(), "{:#?}\n{}", errors, text);
            }
        }
    }
}
