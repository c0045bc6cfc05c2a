//! Senders that send too much while they repair a loss.

mod common;

use ackclock_check as check;
use check::violation::Field;
use check::world::Brake;
use check::{Breach, Law, Loss};
use common::*;
use record::{Cause, Event, Movement, PacketNumber, Purpose, SenderState, SentKind};
use units::Bytes;

const AGAIN: SentKind = SentKind::Again(Cause::FastRetransmit);

/// What a sender says of a recovery: a window, and `pipe` after each packet.
struct Told {
    brake: Brake,
    cwnd: u64,
    ssthresh: u64,
    pipes: [u64; 3],
    probe: bool,
}

/// The fourth of four segments is lost and goes again, and behind it two segments of new bytes; all three
/// are lost on the line.
fn found(told: &Told) -> Option<Breach> {
    let mut items = good();
    items.truncate(common::told(&items, CLIENT, acked_upto(2_000)));
    let mut story = Story::new();
    let state = |max, pipe| {
        let state = state(0, max, told.cwnd);
        let ssthresh = Some(Bytes(told.ssthresh));
        let state = SenderState { buffered: Bytes(8_000), ssthresh, ..state };
        Some(SenderState { in_recovery: true, pipe: Bytes(pipe), ..state })
    };
    story.at(42_180).event(CLIENT, Event::Wrote { bytes: 4_000 });
    story.event(CLIENT, Event::DupAck { count: 3 });
    let window =
        |cause| Event::Window { cwnd: told.cwnd as u32, ssthresh: told.ssthresh as u32, cause };
    story.tell(CLIENT, window(Cause::FastRetransmit), state(4_000, 0));
    let sent = [(3_000, AGAIN), (4_000, SentKind::New), (5_000, SentKind::New)];
    for (number, ((at, kind), pipe)) in (8..).zip(sent.into_iter().zip(told.pipes)) {
        if told.probe && at == 5_000 {
            story.event(CLIENT, Event::Timer(Purpose::LossProbe));
        }
        story.send((number, CLIENT), (at, 1_000, kind), state(4_000.max(at + 1_000), pipe));
        let packet = PacketNumber(number);
        story.moved(Movement::Dropped { station: LINE, packet });
        story.event(SERVER, Event::Dropped { element: 0, bytes: 1_040 });
    }
    items.extend(story.items);
    let mut world = world();
    world.flows[0].brakes = [told.brake; 2];
    world.stations[0] = Law { loss: Loss::Any, ..world.stations[0] };
    first_breach(&world, &items)
}

const PIPES: [u64; 3] = [1_000, 2_000, 3_000];

#[test]
fn the_window_holds_what_its_system_has_it_hold() {
    // Under way; not acknowledged; sent since the recovery began.
    for (brake, held) in [(Brake::Pipe, 3_000), (Brake::Flight, 6_000), (Brake::Since, 3_000)] {
        let with = |cwnd| found(&Told { brake, cwnd, ssthresh: 2_000, pipes: PIPES, probe: false });
        assert_eq!(with(held), None, "{brake:?}");
        let (held, cwnd) = (Bytes(held), Bytes(held - 1));
        assert_eq!(with(cwnd.get()), Some(Breach::BeyondInRecovery { held, cwnd }), "{brake:?}");
    }
    assert_eq!(
        found(&Told { brake: Brake::Unseen, cwnd: 1, ssthresh: 2_000, pipes: PIPES, probe: false }),
        None
    );
}

#[test]
fn the_first_packet_and_a_probe_go_whatever_the_window() {
    let pipes = [5_000, 6_000, 7_000];
    let with =
        |cwnd, probe| found(&Told { brake: Brake::Pipe, cwnd, ssthresh: 2_000, pipes, probe });
    assert_eq!(with(6_000, true), None);
    let held = Bytes(7_000);
    assert_eq!(with(6_000, false), Some(Breach::BeyondInRecovery { held, cwnd: Bytes(6_000) }));
    let held = Bytes(6_000);
    assert_eq!(with(5_999, true), Some(Breach::BeyondInRecovery { held, cwnd: Bytes(5_999) }));
}

#[test]
fn what_is_sent_is_under_way() {
    let pipes = [1_000, 2_000, 2_000];
    let breach =
        found(&Told { brake: Brake::Pipe, cwnd: 2_000, ssthresh: 2_000, pipes, probe: false });
    let (field, said, known) = (Field::Pipe, 2_000, 3_000);
    assert_eq!(breach, Some(Breach::StateDiffers { field, said, known }));
}

#[test]
fn new_bytes_follow_what_was_delivered_or_fill_the_threshold_up() {
    // Three of four segments have arrived: half of that, and a byte, may leave while the threshold is
    // half of the flight, and one segment has. Else the three that are under way have to fit.
    let with = |ssthresh| {
        found(&Told { brake: Brake::Credit, cwnd: 9_000, ssthresh, pipes: PIPES, probe: false })
    };
    assert_eq!(with(3_000), None);
    let (held, cwnd) = (Bytes(3_000), Bytes(2_000));
    assert_eq!(with(2_000), Some(Breach::BeyondInRecovery { held, cwnd }));
}
