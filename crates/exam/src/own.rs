//! What a transfer costs by itself, whatever was drawn: its buffers, round trips, rests, queue and slow start.
//!
//! Each is measured as a fault is: by the same transfer without it.

use units::Duration;

use crate::capture::{Engine, TransferTime};
use crate::case::{LARGE_BUFFER, cost, matters};
use crate::draft::{Draft, bytes};
use crate::faults;
use crate::world::{Transport, Workload, World};

/// A part of the time of a transfer that is no fault.
pub(crate) struct OwnCost {
    /// The codes of findings that name it.
    pub(crate) codes: &'static [&'static str],
    /// Time of the transfer less that without it.
    pub(crate) cost: Duration,
}

/// The parts that cost enough to count. `with`: the time of the transfer, and whether no fault costs it anything.
pub(crate) fn costs(
    draft: &Draft,
    world: &World,
    (with, is_healthy): (TransferTime, bool),
    engine: &Engine,
) -> Result<Vec<OwnCost>, String> {
    let is_quic = world.transport == Transport::Quic;
    let mut own = Vec::new();
    let mut add = |codes: &'static [&'static str], without: TransferTime| {
        if let Some(cost) = cost(with, without).filter(|&cost| matters(cost, without)) {
            own.push(OwnCost { codes, cost });
        }
    };
    let without = |change: &dyn Fn(&mut Draft)| {
        let mut changed = draft.clone();
        change(&mut changed);
        engine.time(&changed.text())
    };
    add(
        if is_quic { &["CC821", "CC822"] } else { &["CC401"] },
        without(&|draft| faults::receive_buffer(is_quic, &mut draft.receiver, LARGE_BUFFER))?,
    );
    // QUIC has no send buffer of the system.
    if !is_quic {
        let change = |draft: &mut Draft| faults::send_buffer(&mut draft.sender, LARGE_BUFFER);
        add(&["CC503"], without(&change)?);
    }
    if draft.exchange.count > 1 {
        add(
            if is_quic { &["CC831"] } else { &["CC501"] },
            without(&|draft| draft.exchange.merge())?,
        );
    }
    // What a rest costs beyond itself: the window that was forgotten. Linux can keep it; elsewhere only a transfer
    // without rests shows it.
    let mut restless = draft.clone();
    let rests = restless.exchange.take_rests();
    if !is_quic && rests > Duration::ZERO {
        let without = if world.sender.0.starts_with("linux") {
            let knob = "net.ipv4.tcp_slow_start_after_idle";
            without(&|draft| Draft::set_knob(&mut draft.sender, knob, 0.into()))?
        } else {
            let without = engine.time(&restless.text())?;
            TransferTime { duration: without.duration + rests, ..without }
        };
        add(&["CC502"], without);
    }
    let never_full = |draft: &mut Draft| {
        if let Some(link) = draft.link() {
            link.insert("buffer".into(), bytes(LARGE_BUFFER));
        }
    };
    // It may lose the end of a flight, or all of one.
    let of_queue: &[&str] =
        if is_quic { &["CC811"] } else { &["CC103", "CC202", "CC203", "CC204"] };
    add(of_queue, without(&never_full)?);
    let World { rate, size, count, workload, .. } = *world;
    let has_no_waits = matches!(workload, Workload::Bulk | Workload::Requests | Workload::Dialogue);
    // Of a video the rests are drawn, and each chunk begins with a small window or one that was forgotten.
    let has_known_rests = is_quic && workload == Workload::Video;
    if (has_no_waits || has_known_rests) && is_healthy {
        // Handshake, opening, and a round trip for each message.
        let round_trips = world.round_trip() * (count + 2);
        let waits = if has_known_rests { rests } else { Duration::ZERO };
        let ideal = Duration::from_micros(round_trips + size * count * 8_000 / rate) + waits;
        let ideal = TransferTime { duration: ideal, finished: true };
        // Slow start may run over the queue at its end.
        add(if is_quic { &["CC834"] } else { &["CC102", "CC103"] }, ideal);
    }
    Ok(own)
}
