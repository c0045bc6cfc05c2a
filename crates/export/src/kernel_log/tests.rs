use logs::siftr::{self, SiftrGeneration};
use trace::bblog::{self, BblogEvent, BblogItem, TcpLogBuffer, flags, t_flags};
use trace::pcapng::PacketDirection;

use super::*;
use scenario::{Overrides, load};

/// 300 kB over 10 Mbit/s and 20 ms, with a queue of 20 packets that overflows.
const LOSSY: &str = r#"
duration = "60s"
host.a = { profile = "freebsd-13.2", isn = 1000 }
host.b = { profile = "linux-6.18", cc = "reno", isn = 77 }
path = [ { from = "a", to = "b", forward = [
    { link = { rate = "10Mbit/s", buffer = "20p" } }, { delay = "10ms" },
], return = [ { delay = "10ms" } ] } ]
flow = [ { name = "up", from = "a", to = "b", bulk = "300kB" } ]
"#;

fn scenario(text: &str) -> Scenario {
    load(text, "test.toml", &Overrides::default()).unwrap().scenario
}

fn logged(
    text: &str,
) -> (sim::RunOutcome, Vec<bblog::BblogRecord>, bblog::BblogStats, Option<bblog::Hz>) {
    let mut scenario = scenario(text);
    let side = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
    let mut log = BlackBox::new(&scenario, side, "", Vec::new()).unwrap();
    let outcome = sim::run(&scenario, &mut log).unwrap();
    let file = log.finish().unwrap();
    let mut reader = bblog::BblogReader::new(&file[..]);
    let records = reader
        .by_ref()
        .filter_map(|item| match item.unwrap() {
            BblogItem::Record(record) => Some(record),
            BblogItem::Section(_) => None,
            BblogItem::Problem(problem) => panic!("{problem}"),
        })
        .collect();
    (outcome, records, *reader.loss(), reader.hz())
}

fn count(records: &[bblog::BblogRecord], event: BblogEvent) -> u64 {
    records.iter().filter(|record| record.info.event() == event).count() as u64
}

#[test]
fn a_run_is_logged_from_syn_to_end() {
    let (outcome, records, loss, hz) = logged(LOSSY);
    let flow = &outcome.flows[0];
    assert_eq!((loss.missing, loss.problems, loss.unknown_events), (0, 0, 0));
    assert_eq!(hz.unwrap().value, Some(1_000));
    let infos: Vec<&TcpLogBuffer> = records.iter().map(|record| &record.info).collect();
    let syn = infos[0];
    assert_eq!((syn.event(), syn.state_name()), (BblogEvent::OUT, Some("SYN_SENT")));
    assert_eq!((syn.iss, syn.snd_una, syn.snd_nxt), (1_000, 1_000, 1_000));
    let answer = infos[1];
    assert_eq!((answer.event(), answer.state_name()), (BblogEvent::IN, Some("SYN_SENT")));
    assert_eq!(infos[2].state_name(), Some("ESTABLISHED"));
    // The peer's initial sequence number plus one.
    assert_eq!(infos[2].rcv_nxt, 78);
    assert_eq!(infos.last().unwrap().event(), BblogEvent::CONNEND);
    assert_eq!(count(&records, BblogEvent::ENTREC), flow.fast_recoveries);
    assert_eq!(count(&records, BblogEvent::RTO), flow.rtos);
    assert!(flow.fast_recoveries > 0);
    // SYN, bytes and FIN: 1,000 + 1 + 300,000 + 1.
    assert_eq!(infos.last().unwrap().snd_una, 301_002);
}

#[test]
fn records_of_packets_agree_with_their_packets() {
    let (_, records, ..) = logged(LOSSY);
    let mut flight = 0;
    for record in &records {
        let info = &record.info;
        assert_eq!(record.packet.is_some(), info.has(flags::HDR));
        let Some(packet) = record.packet else { continue };
        let segment = packet.segment;
        assert_eq!(info.len, segment.payload);
        assert_eq!(packet.way == PacketDirection::In, info.event() == BblogEvent::IN);
        if packet.way == PacketDirection::Out {
            assert_eq!(info.snd_nxt, segment.seq.0);
            // Sent data is within the peer's window, and new data within our congestion window.
            let end = segment.seq.0 + segment.payload;
            assert!(end - info.snd_una <= info.snd_wnd.max(1), "{info:?}");
            flight = flight.max(info.snd_max - info.snd_una);
            assert_eq!(info.rcv_nxt, segment.ack.0.max(info.rcv_nxt));
        } else if info.state_name() == Some("ESTABLISHED") {
            assert!(segment.ack.0 <= info.snd_max);
        }
        let granted = t_flags::SACK_PERMIT | t_flags::RCVD_SCALE | t_flags::RCVD_TSTMP;
        if info.state > 3 {
            assert_eq!(info.t_flags & granted, granted);
        }
    }
    assert!(flight > 20 * 1_448);
}

#[test]
fn a_smoothed_round_trip_is_in_ticks_of_its_host() {
    let (_, records, ..) =
        logged(&LOSSY.replace("isn = 1000", "isn = 1000, knobs = { \"kern.hz\" = 100 }"));
    let last = records.iter().rev().map(|record| &record.info).find(|info| info.srtt > 0).unwrap();
    // 20 ms of path and up to 24 ms of queue are two to five ticks of 10 ms.
    assert!((2 * 32..=5 * 32).contains(&last.srtt), "{}", last.srtt);
}

#[test]
fn the_server_of_requests_is_logged() {
    let text = LOSSY.replace(
        r#"bulk = "300kB""#,
        r#"requests = { request = "1kB", response = "50kB", count = 3 }"#,
    );
    let mut scenario = scenario(&text);
    let side = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
    assert_eq!((side.host, side.out), (HostId(1), Dir::Reverse));
    let (_, records, ..) = logged(&text);
    let info = &records[0].info;
    assert_eq!((info.event(), info.state_name()), (BblogEvent::IN, Some("LISTEN")));
    assert_eq!(records[1].info.state_name(), Some("SYN_RECEIVED"));
    let sent: u32 = records
        .iter()
        .filter(|record| record.info.event() == BblogEvent::OUT)
        .map(|record| record.info.len)
        .sum();
    assert!(sent >= 150_000);
    // The requests wait in the receive buffer until they are read, within the same instant.
    assert!(records.iter().all(|record| record.info.rxbuf_acc <= 1_000));
}

#[test]
fn siftr_has_a_row_for_every_packet_from_the_handshake_on() {
    for generation in [SiftrGeneration::V1_2, SiftrGeneration::V1_3, SiftrGeneration::V2] {
        let mut scenario = scenario(LOSSY);
        let side = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
        let black_box = BlackBox::new(&scenario, side, "", Vec::new()).unwrap();
        let siftr = Siftr::new(&scenario, side, generation, Vec::new()).unwrap();
        let mut both = sim::ObserverPair(black_box, siftr);
        sim::run(&scenario, &mut both).unwrap();
        let file = both.0.finish().unwrap();
        let packets: Vec<TcpLogBuffer> = bblog::BblogReader::new(&file[..])
            .filter_map(|item| match item.unwrap() {
                BblogItem::Record(record) if record.packet.is_some() => Some(record.info),
                _ => None,
            })
            .filter(|info| info.state >= 4)
            .collect();
        let log = both.1.finish().unwrap();
        let mut reader = siftr::SiftrReader::new(&log[..]);
        let rows: Vec<siftr::SiftrRow> = reader
            .by_ref()
            .filter_map(|item| match item.unwrap() {
                siftr::SiftrItem::Row(row) => Some(row),
                siftr::SiftrItem::Problem(problem) => panic!("{problem}"),
                _ => None,
            })
            .collect();
        let loss = *reader.loss();
        assert!(loss.ended);
        // SYN and SYN-ACK have none; siftr2 does not say so.
        assert_eq!(loss.lost_packets, if generation == SiftrGeneration::V2 { 0 } else { 2 });
        assert_eq!(rows.len(), packets.len());
        for (row, info) in rows.iter().zip(&packets) {
            assert_eq!((row.cwnd, row.ssthresh), (info.snd_cwnd, info.snd_ssthresh));
            assert_eq!(row.in_flight, info.snd_max - info.snd_una);
            assert_eq!((row.snd_cc, row.t_flags), (info.txbuf_ccc, info.t_flags));
            assert_eq!(row.way == PacketDirection::In, info.event() == BblogEvent::IN);
            assert_eq!(row.mss, (generation != SiftrGeneration::V2).then_some(1_460));
        }
    }
}
