//! Rows of FreeBSD's controllers with the stack's wrappers and its round-trip timer
//! ([`recovery::RttFreeBsd`]): common part. The controllers are in `newreno` and `cubic`.
//!
//! `snd_nxt` and `snd_max` are inputs, set by the driver that recorded the rows and sends between
//! them. `snd_nxt` must follow the events: `snd_una` after a timeout, `snd_max` without
//! retransmissions.

use cc::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, IdleEvent, RecoveryEnd,
    RttSample, SmoothedRtt, WindowChange, WindowController,
};
use cc::hystart::{HyStartFreeBsd, HyStartMode};
use cc::newreno::NewRenoParams;
use recovery::RttFreeBsd;
use units::{Bytes, Duration, Instant, Offset};

use super::rows::{GoldenColumn, GoldenError, GoldenRow, GoldenRows, GoldenTally};

/// Versions whose sample counter has more than eight bits.
const WIDE_COUNTERS: [&str; 2] = ["13.0", "main202207_ticks"];
/// `ssthresh` without a cached value of an earlier connection.
const SSTHRESH_UNSET: u64 = 65_535 << 14;

/// A controller whose rows are replayed.
pub(super) trait GoldenController: WindowController {
    /// Returns the controller of a version, on a host of `hz` ticks per second, with
    /// HyStart++ as the scenario allows it; `None` if the version is unknown.
    fn of_version(version: &str, hz: u32, hystart: HyStartMode) -> Option<Self>;

    /// `snd_cwnd`, `snd_ssthresh`, `t_bytes_acked`.
    fn windows(&self) -> [u32; 3];

    /// Flags: in fast recovery, in congestion recovery, `CCF_ABC_SENTAWND`.
    fn flags(&self) -> [bool; 3];

    /// State of HyStart++.
    fn hystart(&self) -> &HyStartFreeBsd;
}

/// Input columns.
struct InputColumns {
    version: GoldenColumn,
    scenario: GoldenColumn,
    event: GoldenColumn,
    ticks: GoldenColumn,
    acked_bytes: GoldenColumn,
    nsegs: GoldenColumn,
    rtt_ticks: GoldenColumn,
    pipe: GoldenColumn,
    snd_wnd: GoldenColumn,
    arg: [GoldenColumn; 3],
}

/// Columns of the resulting state.
struct StateColumns {
    rxtshift: GoldenColumn,
    snd_una: GoldenColumn,
    snd_nxt: GoldenColumn,
    snd_max: GoldenColumn,
    snd_recover: GoldenColumn,
    flags: [GoldenColumn; 3],
    cwnd: GoldenColumn,
    ssthresh: GoldenColumn,
    bytes_acked: GoldenColumn,
    timer: [GoldenColumn; 3],
    css: [GoldenColumn; 7],
}

/// A replayed connection.
struct GoldenConnection<C> {
    cc: C,
    rtt: RttFreeBsd,
    rxtshift: u32,
    snd_una: u64,
    /// Old data is being retransmitted (`snd_nxt != snd_max` before the event).
    retransmitting: bool,
    /// Maximum of the version's sample counter.
    most_samples: u32,
}

/// Replays all connections; each starts with an INIT row. `more` compares the columns specific to
/// this controller.
pub(super) fn replay<C: GoldenController>(
    rows: &mut GoldenRows,
    tally: &mut GoldenTally,
    more: impl Fn(&C, &GoldenRow<'_>, &mut GoldenTally),
) -> Result<(), GoldenError> {
    let inputs = inputs(rows)?;
    let states = states(rows)?;
    let mut running: Option<GoldenConnection<C>> = None;
    while let Some(row) = rows.next()? {
        tally.row();
        if row.text(inputs.event) == "INIT" {
            running = Some(begin(&row, &inputs, &states)?);
        } else {
            let connection = running
                .as_mut()
                .ok_or_else(|| row.garbled(inputs.event, "a connection begins with INIT"))?;
            step(connection, &row, &inputs, &states, tally)?;
        }
        if let Some(connection) = &running {
            compare(connection, &row, &states, tally);
            more(&connection.cc, &row, tally);
        }
    }
    Ok(())
}

fn begin<C: GoldenController>(
    row: &GoldenRow<'_>,
    inputs: &InputColumns,
    states: &StateColumns,
) -> Result<GoldenConnection<C>, GoldenError> {
    let scenario = row.text(inputs.scenario);
    let [maxseg, timestamps, hz] = inputs.arg;
    let maxseg: u32 = row.number(maxseg)?;
    let option_bytes = row.number::<u32>(timestamps)?.saturating_mul(12);
    let mss = maxseg
        .checked_sub(option_bytes)
        .filter(|&mss| mss > 0)
        .ok_or_else(|| row.garbled(inputs.arg[0], "no room for payload"))?;
    let hz = row.number::<u32>(hz)?;
    let remembered: u64 = row.number(states.ssthresh)?;
    let snd_una = u64::from(row.number::<u32>(states.snd_una)?);
    let version = row.text(inputs.version);
    let mut cc = C::of_version(version, hz, hystart_mode(scenario))
        .ok_or_else(|| row.garbled(inputs.version, &format!("{version:?} is not known")))?;
    let _: WindowChange = cc.on_established(&ConnectionStart {
        now: Instant::ZERO,
        ticks: row.number(inputs.ticks)?,
        created_ticks: row.number(inputs.ticks)?,
        una: Offset(snd_una),
        mss,
        maxseg,
        snd_scale: match scenario {
            name if name.contains("jumbo_nots") => 8,
            name if name.contains("smallwnd") => 0,
            _ => 7,
        },
        syn_retransmitted: false,
        rtt: None,
        ssthresh: (remembered != SSTHRESH_UNSET).then_some(Bytes(remembered)),
    });
    let most_samples = if WIDE_COUNTERS.contains(&version) { u32::MAX } else { 255 };
    Ok(GoldenConnection {
        cc,
        rtt: RttFreeBsd::new(hz),
        rxtshift: 0,
        snd_una,
        retransmitting: false,
        most_samples,
    })
}

/// Returns the HyStart++ mode of a scenario.
fn hystart_mode(scenario: &str) -> HyStartMode {
    match scenario {
        name if name.contains("hyst1") => HyStartMode::Plain,
        name if name.contains("hyst2") => HyStartMode::ShrinkWindow,
        name if name.contains("hyst3") => HyStartMode::ShrinkWindowMean,
        _ => HyStartMode::NotAllowed,
    }
}

/// Returns the NewReno parameters of a version with the HyStart++ mode of a scenario.
pub(super) fn allowed(params: NewRenoParams, mode: HyStartMode) -> NewRenoParams {
    NewRenoParams { hystart: params.hystart.map(|_| mode), ..params }
}

fn step<C: GoldenController>(
    connection: &mut GoldenConnection<C>,
    row: &GoldenRow<'_>,
    inputs: &InputColumns,
    states: &StateColumns,
    tally: &mut GoldenTally,
) -> Result<(), GoldenError> {
    let [arg1, arg2, arg3] = inputs.arg;
    let pipe = row.number(inputs.pipe)?;
    let snd_wnd = row.number(inputs.snd_wnd)?;
    let place = |column| row.number::<u32>(column).map(|place| Offset(place.into()));
    let snd_max = place(states.snd_max)?;
    let ticks = row.number(inputs.ticks)?;
    let now = Instant::ZERO;
    let congested = |signal, th_ack| CongestionEvent {
        now,
        ticks,
        signal,
        th_ack,
        snd_max,
        pipe,
        snd_wnd,
        lost: 0,
    };
    let snd_una = Offset(connection.snd_una);
    // The columns have the changes; the events have the causes.
    let _: WindowChange = match row.text(inputs.event) {
        "ACK" => {
            let rtt_ticks = row.number(inputs.rtt_ticks)?;
            if rtt_ticks > 0 {
                connection.rtt.on_ticks(rtt_ticks, connection.rxtshift);
                connection.rxtshift = 0;
            }
            let bytes = u64::from(row.number::<u32>(inputs.acked_bytes)?);
            connection.snd_una += bytes;
            row.compare(tally, arg2, connection.snd_una);
            connection.retransmitting = row.number::<u8>(arg1)? == 0;
            connection.cc.on_acked(&AckEvent {
                now: Instant::ZERO,
                ticks,
                rtt: None,
                srtt: smoothed(&connection.rtt),
                snd_nxt: snd_max,
                una: Offset(connection.snd_una),
                bytes,
                packets: 0,
                nsegs: row.number(inputs.nsegs)?,
                ends_recovery: false,
                retransmitting: connection.retransmitting,
                snd_wnd,
                window_limited: true,
                max_packets_out: 0,
            })
        }
        "NDUPACK" => connection.cc.on_congested(&congested(CongestionSignal::Loss, snd_una)),
        "ECN" => connection.cc.on_congested(&congested(CongestionSignal::Ecn, place(arg1)?)),
        "RTO" => {
            connection.rxtshift += 1;
            connection.retransmitting = true;
            row.compare(tally, states.snd_nxt, snd_una);
            let signal = CongestionSignal::Timeout { shift: connection.rxtshift };
            connection.cc.on_congested(&congested(signal, snd_una))
        }
        "RTO_ERR" => {
            connection.rxtshift = 0;
            connection.retransmitting = false;
            connection.cc.on_congested(&congested(CongestionSignal::SpuriousTimeout, snd_una))
        }
        "POST" => connection.cc.on_recovered(&RecoveryEnd { th_ack: place(arg1)?, pipe }),
        "IDLE" => {
            let rto = connection.rtt.rto();
            connection.cc.on_idle(&IdleEvent { ticks, idle: Duration::MAX, rto })
        }
        "NEWROUND" => connection.cc.on_round(row.number(arg1)?),
        "RTTSAMPLE" => connection.cc.on_rtt_sample(&RttSample {
            rtt: Duration::from_micros(row.number::<u32>(arg1)?.into()),
            transmissions: row.number(arg2)?,
            flight: row.number(arg3)?,
        }),
        other => return Err(row.garbled(inputs.event, &format!("{other:?} is not known"))),
    };
    Ok(())
}

/// Returns the smoothed round-trip times that the stack passes to a controller.
fn smoothed(rtt: &RttFreeBsd) -> SmoothedRtt {
    SmoothedRtt {
        ticks: rtt.srtt_ticks(),
        micros: u32::try_from(rtt.srtt_micros()).unwrap_or(u32::MAX),
        samples: rtt.t_rttupdated(),
    }
}

fn compare<C: GoldenController>(
    connection: &GoldenConnection<C>,
    row: &GoldenRow<'_>,
    states: &StateColumns,
    tally: &mut GoldenTally,
) {
    let GoldenConnection { cc, rtt, rxtshift, snd_una, .. } = connection;
    row.compare(tally, states.rxtshift, rxtshift);
    row.compare(tally, states.snd_una, snd_una);
    if !connection.retransmitting {
        row.compare(tally, states.snd_nxt, row.text(states.snd_max));
    }
    row.compare(tally, states.snd_recover, cc.recovery_point());
    for (column, flag) in states.flags.into_iter().zip(cc.flags()) {
        row.compare(tally, column, u8::from(flag));
    }
    let [cwnd, ssthresh, bytes_acked] = cc.windows();
    row.compare(tally, states.cwnd, cwnd);
    row.compare(tally, states.ssthresh, ssthresh);
    row.compare(tally, states.bytes_acked, bytes_acked);
    let samples = rtt.t_rttupdated().min(connection.most_samples);
    let timer = [rtt.t_srtt(), i64::from(samples), rtt.t_rxtcur()];
    for (column, value) in states.timer.into_iter().zip(timer) {
        row.compare(tally, column, value);
    }
    let hystart = cc.hystart();
    let css = [
        hystart.css_baseline_minrtt,
        hystart.css_current_round_minrtt,
        hystart.css_lastround_minrtt,
        hystart.css_rttsample_count,
        hystart.css_entered_at_round,
        hystart.css_fas_at_css_entry,
        hystart.css_lowrtt_fas,
    ];
    for (column, value) in states.css.into_iter().zip(css) {
        // Infinity is written as -1.
        row.compare(tally, column, value as i32);
    }
}

fn inputs(rows: &GoldenRows) -> Result<InputColumns, GoldenError> {
    let [version, scenario, event, ticks] =
        rows.columns(["version", "scenario", "event", "ticks"])?;
    let [acked_bytes, nsegs, rtt_ticks, pipe, snd_wnd] =
        rows.columns(["acked_bytes", "nsegs", "rtt_ticks", "pipe", "snd_wnd"])?;
    let arg = rows.columns(["arg1", "arg2", "arg3"])?;
    Ok(InputColumns {
        version,
        scenario,
        event,
        ticks,
        acked_bytes,
        nsegs,
        rtt_ticks,
        pipe,
        snd_wnd,
        arg,
    })
}

fn states(rows: &GoldenRows) -> Result<StateColumns, GoldenError> {
    let [rxtshift, snd_una, snd_nxt, snd_max, snd_recover] =
        rows.columns(["rxtshift", "snd_una", "snd_nxt", "snd_max", "snd_recover"])?;
    let [cwnd, ssthresh, bytes_acked] = rows.columns(["cwnd", "ssthresh", "t_bytes_acked"])?;
    Ok(StateColumns {
        rxtshift,
        snd_una,
        snd_nxt,
        snd_max,
        snd_recover,
        flags: rows.columns(["in_fastrec", "in_congrec", "abc_sent_a_wnd"])?,
        cwnd,
        ssthresh,
        bytes_acked,
        timer: rows.columns(["t_srtt_fp", "rttupdated", "rxtcur_ticks"])?,
        css: rows.columns([
            "css_baseline_minrtt",
            "css_current_minrtt",
            "css_last_minrtt",
            "css_samples",
            "css_entered_round",
            "css_fas_at_entry",
            "css_lowrtt_fas",
        ])?,
    })
}
