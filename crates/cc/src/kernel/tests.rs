use std::sync::Mutex;

use units::{Bytes, Duration, Instant, Offset, RandomStream};

use super::*;
use crate::contract::{
    AckEvent, AckSample, CongestionEvent, CongestionSignal, ConnectionStart, Controller,
    RecoveryEnd, SmoothedRtt, WindowChange, WindowController,
};

/// Records the operations, with their first argument; its window is one packet more per acknowledgment.
#[derive(Debug)]
struct Recording {
    ops: u32,
    calls: Mutex<Vec<(KernelOp, u32)>>,
}

const ALL: u32 = 0b1111_1111 | 1 << UndoCwnd as u32;

impl Recording {
    fn with(ops: u32) -> &'static Self {
        Box::leak(Box::new(Self { ops, calls: Mutex::new(Vec::new()) }))
    }

    /// The operations since the last call.
    fn take(&self) -> Vec<(KernelOp, u32)> {
        core::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl KernelLibrary for &'static Recording {
    fn name(&self) -> &'static str {
        "./recording.so"
    }

    fn own_name(&self) -> &'static str {
        "recording"
    }

    fn traits(&self) -> KernelTraits {
        KernelTraits { ops: self.ops, needs_rates: false, hz: 250 }
    }

    fn call(&self, op: KernelOp, sock: &mut KernelSock) -> Result<u32, ControllerError> {
        self.calls.lock().unwrap().push((op, sock.arg[0]));
        match op {
            CongAvoid => sock.snd_cwnd += 1,
            Ssthresh => return Ok(sock.snd_cwnd / 2),
            UndoCwnd => return Ok(sock.prior_cwnd),
            _ => {}
        }
        Ok(0)
    }
}

fn open(library: &'static Recording) -> KernelController {
    let library: &'static dyn KernelLibrary = Box::leak(Box::new(library));
    let mut cc = KernelController::new(library, 250, RandomStream::named(1, "a", "b"));
    let _ = cc.on_established(&ConnectionStart {
        now: Instant::ZERO,
        ticks: 0,
        created_ticks: 0,
        una: Offset(1),
        mss: 1_000,
        maxseg: 1_012,
        snd_scale: 7,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: None,
    });
    cc
}

fn acked(una: u64, packets: u32) -> AckEvent {
    AckEvent {
        now: Instant::ZERO,
        ticks: 0,
        rtt: None,
        srtt: SmoothedRtt::default(),
        snd_nxt: Offset(una),
        una: Offset(una),
        bytes: 0,
        packets,
        nsegs: 1,
        ends_recovery: false,
        retransmitting: false,
        snd_wnd: 1 << 20,
        window_limited: true,
        max_packets_out: 0,
    }
}

fn congested(signal: CongestionSignal, th_ack: u64) -> CongestionEvent {
    CongestionEvent {
        now: Instant::ZERO,
        ticks: 0,
        signal,
        th_ack: Offset(th_ack),
        snd_max: Offset(20_001),
        pipe: 0,
        snd_wnd: 1 << 20,
        lost: 0,
    }
}

const fn applied(packets: u32) -> AckApplied {
    AckApplied {
        acked: packets,
        delivered: packets,
        prior_delivered: None,
        updates_window: true,
        slow_path: false,
        ece: false,
        timestamps: None,
    }
}

use KernelOp::{
    CongAvoid, CwndEvent as Event, InAckEvent, Init, PktsAcked, SetState, Ssthresh, UndoCwnd,
};

#[test]
fn an_acknowledgment_is_reported_in_the_order_of_the_kernel() {
    let library = Recording::with(ALL);
    let mut cc = open(library);
    assert_eq!(library.take(), [(Init, 0)]);
    let rtt = Duration::from_millis(10);
    let sample = AckSample {
        now: Instant::ZERO,
        ticks: 0,
        rtt,
        una: Offset(1),
        snd_nxt: Offset(1),
        pacing_rate: 0,
    };
    let _ = cc.on_ack_sample(&sample);
    let _ = cc.on_ack_applied(&applied(3));
    assert_eq!((cc.sock().ack_sample.pkts_acked, cc.sock().ack_sample.rtt_us), (3, 10_000));
    let _ = cc.on_acked(&acked(3_001, 3));
    assert_eq!(library.take(), [(PktsAcked, 0), (InAckEvent, ACK_WIN_UPDATE), (CongAvoid, 3_001)]);
    // Without a sample of its own the RTT is -1.
    let _ = cc.on_ack_applied(&applied(1));
    assert_eq!((cc.sock().ack_sample.rtt_us, cc.sock().delivered), (-1, 5));
}

#[test]
fn a_recovery_is_open_before_its_reduction_ends_and_cwr_after_it() {
    let library = Recording::with(ALL);
    let mut cc = open(library);
    library.take();
    let end = RecoveryEnd { th_ack: Offset(20_001), pipe: 0 };
    assert_eq!(cc.on_congested(&congested(CongestionSignal::Loss, 1)), WindowChange::RecoveryBegan);
    assert_eq!(cc.on_acked(&acked(1_001, 1)), WindowChange::None);
    let _ = cc.on_recovered(&end);
    let open = CaState::Open as u32;
    let complete = (Event, CwndEvent::CompleteCwr as u32);
    let recovery = (SetState, CaState::Recovery as u32);
    assert_eq!(library.take(), [(Ssthresh, 0), recovery, (SetState, open), complete]);
    assert_eq!(cc.control().window, Bytes(5_000));
    assert_eq!(cc.on_congested(&congested(CongestionSignal::Ecn, 1)), WindowChange::RecoveryBegan);
    let _ = cc.on_recovered(&end);
    let cwr = (SetState, CaState::Cwr as u32);
    assert_eq!(library.take(), [(Ssthresh, 0), cwr, complete, (SetState, open)]);
}

#[test]
fn a_timeout_reduces_once_per_flight_and_can_be_undone() {
    let library = Recording::with(ALL);
    let mut cc = open(library);
    library.take();
    let timeout = |shift| congested(CongestionSignal::Timeout { shift }, 1);
    let lost = (SetState, CaState::Loss as u32);
    assert_eq!(cc.on_congested(&timeout(1)), WindowChange::Collapsed);
    let event = (Event, CwndEvent::Loss as u32);
    assert_eq!(library.take(), [(Ssthresh, 0), event, lost]);
    let _ = cc.on_congested(&timeout(2));
    assert_eq!(library.take(), [lost]);
    let _ = cc.on_congested(&congested(CongestionSignal::SpuriousTimeout, 1));
    assert_eq!(library.take(), [(UndoCwnd, 0), (SetState, CaState::Open as u32)]);
    assert_eq!(cc.control().window, Bytes(10_000));
}

#[test]
fn a_copy_has_memory_of_its_own() {
    let library = Recording::with(ALL);
    let mut cc = open(library);
    cc.point_into_arena(3);
    let copy = cc.clone();
    assert_eq!(cc.arena_word_pointed_to(), Some(3));
    assert_eq!(copy.arena_word_pointed_to(), Some(3));
    assert_ne!(cc.sock().icsk_ca_priv[0], copy.sock().icsk_ca_priv[0]);
}

#[test]
fn a_window_of_zero_ends_its_calls() {
    let library = Recording::with(ALL);
    let mut cc = open(library);
    cc.set_window(Bytes(1_000));
    // Half of one packet is no threshold.
    let _ = cc.on_congested(&congested(CongestionSignal::Loss, 1));
    let error = &cc.failure().unwrap().0;
    assert_eq!(error, "./recording.so: ssthresh returned 0 packets at 0.000000 s");
    library.take();
    let _ = cc.on_acked(&acked(1_001, 1));
    assert_eq!(library.take(), []);
    assert_eq!(cc.control().window, Bytes(1_000));
}
