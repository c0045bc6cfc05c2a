//! Senders that send too much during loss recovery.

mod common;

use ackclock_check as check;
use check::violation::StateField;
use check::world::RecoveryLimit;
use check::{ElementInvariants, Loss, ViolationKind};
use common::*;
use record::{Cause, Event, PacketEvent, PacketNumber, Purpose, SenderState, SentKind};
use units::Bytes;

const RETRANSMISSION: SentKind = SentKind::Retransmission(Cause::FastRetransmit);

/// A recovery as the sender reports it: a window, and `pipe` after each packet.
struct ReportedRecovery {
    brake: RecoveryLimit,
    cwnd: u64,
    ssthresh: u64,
    pipes: [u64; 3],
    probe: bool,
}

/// The fourth of four segments is lost and retransmitted, followed by two segments of new bytes;
/// all three are dropped at the line.
fn found(reported: &ReportedRecovery) -> Option<ViolationKind> {
    let mut items = good();
    items.truncate(common::reported(&items, CLIENT, acked_upto(2_000)));
    let mut story = RecordBuilder::new();
    let state = |max, pipe| {
        let state = state(0, max, reported.cwnd);
        let ssthresh = Some(Bytes(reported.ssthresh));
        let state = SenderState { buffered: Bytes(8_000), ssthresh, ..state };
        Some(SenderState { in_recovery: true, pipe: Bytes(pipe), ..state })
    };
    story.at(42_180).event(CLIENT, Event::AppWrote { bytes: 4_000 });
    story.event(CLIENT, Event::DupAck { count: 3 });
    let window = |cause| Event::Window {
        cwnd: reported.cwnd as u32,
        ssthresh: reported.ssthresh as u32,
        cause,
    };
    story.report(CLIENT, window(Cause::FastRetransmit), state(4_000, 0));
    let sent = [(3_000, RETRANSMISSION), (4_000, SentKind::New), (5_000, SentKind::New)];
    for (number, ((at, kind), pipe)) in (8..).zip(sent.into_iter().zip(reported.pipes)) {
        if reported.probe && at == 5_000 {
            story.event(CLIENT, Event::Timer(Purpose::LossProbe));
        }
        story.send((number, CLIENT), (at, 1_000, kind), state(4_000.max(at + 1_000), pipe));
        let packet = PacketNumber(number);
        story.moved(PacketEvent::Dropped { hop_index: LINE, packet });
        story.event(SERVER, Event::Dropped { element: 0, bytes: 1_040 });
    }
    items.extend(story.items);
    let mut world = world();
    world.flows[0].recovery_limits = [reported.brake; 2];
    world.hops[0] = ElementInvariants { loss: Loss::Any, ..world.hops[0] };
    first_breach(&world, &items)
}

const PIPES: [u64; 3] = [1_000, 2_000, 3_000];

#[test]
fn the_window_limits_what_its_system_counts() {
    // In flight; unacknowledged; sent since the recovery started.
    for (brake, held) in [
        (RecoveryLimit::Pipe, 3_000),
        (RecoveryLimit::Flight, 6_000),
        (RecoveryLimit::Since, 3_000),
    ] {
        let with = |cwnd| {
            found(&ReportedRecovery { brake, cwnd, ssthresh: 2_000, pipes: PIPES, probe: false })
        };
        assert_eq!(with(held), None, "{brake:?}");
        let (held, cwnd) = (Bytes(held), Bytes(held - 1));
        assert_eq!(
            with(cwnd.get()),
            Some(ViolationKind::BeyondRecoveryLimit { held, cwnd }),
            "{brake:?}"
        );
    }
    assert_eq!(
        found(&ReportedRecovery {
            brake: RecoveryLimit::Unseen,
            cwnd: 1,
            ssthresh: 2_000,
            pipes: PIPES,
            probe: false
        }),
        None
    );
}

#[test]
fn the_first_retransmission_and_a_probe_are_exempt_from_the_window() {
    let pipes = [5_000, 6_000, 7_000];
    let with = |cwnd, probe| {
        found(&ReportedRecovery { brake: RecoveryLimit::Pipe, cwnd, ssthresh: 2_000, pipes, probe })
    };
    assert_eq!(with(6_000, true), None);
    let held = Bytes(7_000);
    assert_eq!(
        with(6_000, false),
        Some(ViolationKind::BeyondRecoveryLimit { held, cwnd: Bytes(6_000) })
    );
    let held = Bytes(6_000);
    assert_eq!(
        with(5_999, true),
        Some(ViolationKind::BeyondRecoveryLimit { held, cwnd: Bytes(5_999) })
    );
}

#[test]
fn sent_bytes_count_as_in_flight() {
    let pipes = [1_000, 2_000, 2_000];
    let breach = found(&ReportedRecovery {
        brake: RecoveryLimit::Pipe,
        cwnd: 2_000,
        ssthresh: 2_000,
        pipes,
        probe: false,
    });
    let (field, said, known) = (StateField::Pipe, 2_000, 3_000);
    assert_eq!(breach, Some(ViolationKind::StateDiffers { field, said, known }));
}

#[test]
fn new_bytes_match_the_delivered_data_or_fill_the_threshold() {
    // Three of four segments have arrived: half of that, plus a byte, may be sent while the
    // threshold is half of the flight, and one segment was. Otherwise the three in flight must fit.
    let with = |ssthresh| {
        found(&ReportedRecovery {
            brake: RecoveryLimit::Credit,
            cwnd: 9_000,
            ssthresh,
            pipes: PIPES,
            probe: false,
        })
    };
    assert_eq!(with(3_000), None);
    let (held, cwnd) = (Bytes(3_000), Bytes(2_000));
    assert_eq!(with(2_000), Some(ViolationKind::BeyondRecoveryLimit { held, cwnd }));
}
