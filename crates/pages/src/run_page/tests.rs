//! Pages of small runs.

use report::page::{Page, PagePart};
use report::plots::{PlotSeries, Plots};
use report::table::ReportTable;

use sim::ObserverPair;

use super::RunPageRecorder;
use runner::sharing::Sharing;
use scenario::{Overrides, load};

/// A queue of one bandwidth-delay product overflows repeatedly.
const LOSSY: &str = r#"
title = "two hosts"
seed = 7
host.a = { profile = "freebsd-14.3", cc = "newreno" }
host.b = { profile = "linux-6.18" }
path = [ { from = "a", to = "b", forward = [
    { link = { rate = "20Mbit/s", buffer = "1bdp" } }, { delay = "10ms" },
], return = [ { delay = "10ms" } ] } ]
flow = [ { name = "bulk", from = "a", to = "b", bulk = "3MB" } ]
"#;

fn page_of(text: &str, set: &[&str], points: usize) -> (Page, sim::RunOutcome) {
    let set = set.iter().map(|s| (*s).to_owned()).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    let loaded = load(text, "two.toml", &overrides).unwrap();
    let mut scenario = loaded.scenario.clone();
    let story = RunPageRecorder::new(&mut scenario, points);
    let mut both = ObserverPair(story, Sharing::new(&scenario));
    let outcome = sim::run(&scenario, &mut both).unwrap();
    (both.0.page(&loaded, &outcome, "two.toml", Some(&both.1)), outcome)
}

fn plots(page: &Page) -> &Plots {
    let found = page.parts.iter().find_map(|part| match part {
        PagePart::Plots(plots) => Some(plots),
        _ => None,
    });
    found.unwrap()
}

fn table<'p>(page: &'p Page, caption: &str) -> &'p ReportTable {
    let found = page.parts.iter().find_map(|part| match part {
        PagePart::Table(table) if table.caption == caption => Some(table),
        _ => None,
    });
    found.unwrap()
}

fn series<'p>(page: &'p Page, name: &str) -> &'p PlotSeries {
    let all = plots(page).panels.iter().flat_map(|panel| &panel.series);
    all.into_iter().find(|series| series.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn all_bytes_and_all_losses_are_on_the_page() {
    let (page, outcome) = page_of(LOSSY, &[], 1_000_000);
    let flow = &outcome.flows[0];
    let data = series(&page, "data");
    assert_eq!(data.top.iter().zip(&data.y).map(|(to, from)| to - from).sum::<i64>(), 3_000_000);
    assert!(flow.retransmitted_segments > 0);
    let retransmitted = series(&page, "retransmission");
    let bytes: i64 =
        retransmitted.top.iter().zip(&retransmitted.y).map(|(to, from)| to - from).sum();
    assert!(bytes > 0 && bytes as u64 <= flow.retransmitted_segments * flow.mss.get());
    // A full queue drops arrivals, and nothing is reordered: a spurious retransmission was
    // retransmitted twice.
    let all = plots(&page).panels.iter().flat_map(|panel| &panel.series);
    let spurious = all.into_iter().find(|series| series.name == "spurious");
    let spurious = spurious.map(|series| &series.y[..]).unwrap_or_default();
    for from in spurious {
        assert_eq!(retransmitted.y.iter().filter(|other| *other == from).count(), 2);
    }
    assert!(spurious.len() * 10 < retransmitted.y.len());
    assert_eq!(*series(&page, "acknowledged").y.last().unwrap(), 3_000_001);
    assert_eq!(*series(&page, "cwnd").y.iter().max().unwrap() as u64, flow.max_cwnd.get());
    let events = table(&page, "Events");
    let count = |what: &str| events.rows.iter().filter(|row| row[1].text.contains(what)).count();
    assert_eq!(count("fast recovery begins") as u64, flow.fast_recoveries);
    assert_eq!(count("timer fired") as u64, flow.rtos);
}

#[test]
fn rounds_share_out_all_bytes() {
    let (page, _) = page_of(LOSSY, &[], 1_000_000);
    let rounds = table(&page, "Round by round");
    let sum = |column: usize| {
        rounds.rows.iter().map(|row| row[column].text.parse::<u64>().unwrap()).sum::<u64>()
    };
    // The FIN is acknowledged as one byte.
    assert!((2_990_000..=3_000_001).contains(&sum(8)), "{}", sum(8));
    let first: Vec<&str> = rounds.rows[0].iter().map(|cell| cell.text.as_str()).collect();
    // An initial window of ten segments; during its ACKs, slow start at most doubles the data in
    // flight.
    assert_eq!(first[3..5], ["14480", "10.0"]);
    let flight: u64 = first[5].parse().unwrap();
    assert!((14_480..=2 * 14_480).contains(&flight), "{flight}");
    // During slow start, a flight is acknowledged after the path delay and its serialization.
    let took = |row: &Vec<report::table::TableCell>| row[2].text.parse::<f64>().unwrap();
    assert!(rounds.rows[..4].iter().all(|row| took(row) > 20.0), "{rounds:?}");
    // In ticks of a millisecond, at least the 20 ms of the path.
    assert!(rounds.rows.iter().all(|row| row[10].text.starts_with(['2', '3', '4'])), "{rounds:?}");
}

#[test]
fn reordered_packets_are_retransmitted_spuriously() {
    // Groups of four reversed, 5 ms between neighbours; no queue is ever full.
    let text = include_str!("../../../../scenarios/reordering.toml");
    let set = ["duration=1s", "path.0.forward.2.reorder.gap=5ms"];
    let (page, outcome) = page_of(text, &set, 1_000_000);
    assert!(outcome.flows[0].retransmitted_segments > 0);
    let bytes = |name: &str| {
        let series = series(&page, name);
        series.top.iter().zip(&series.y).map(|(to, from)| to - from).sum::<i64>()
    };
    assert!(bytes("spurious") > 0);
    assert_eq!(bytes("spurious"), bytes("retransmission"));
}

#[test]
fn a_long_run_fits_into_the_limit_and_loses_no_peak() {
    let (page, outcome) = page_of(LOSSY, &["flow.0.bulk=30MB"], 4_000);
    let kept: usize =
        plots(&page).panels.iter().flat_map(|p| &p.series).map(|series| series.x.len()).sum();
    assert!(kept < 4_500, "{kept}");
    let cwnd = series(&page, "cwnd");
    assert!(cwnd.thinned.contains("ms the first, lowest, highest and last"));
    assert_eq!(*cwnd.y.iter().max().unwrap() as u64, outcome.flows[0].max_cwnd.get());
}

/// The plots of a page with this id.
fn plots_named<'p>(page: &'p Page, id: &str) -> &'p Plots {
    let found = page.parts.iter().find_map(|part| match part {
        PagePart::Plots(plots) if plots.id == id => Some(plots),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn shares_are_plotted_second_by_second() {
    let text = include_str!("../../../../scenarios/fairness-late-comer.toml");
    let (page, outcome) = page_of(text, &["duration=30s"], 100_000);
    let shares = table(&page, "Shares");
    let sum: f64 = shares.rows.iter().map(|row| row[4].text.parse::<f64>().unwrap()).sum();
    assert!((sum - 100.0).abs() < 0.2, "{sum}");
    assert!(shares.rows.iter().all(|row| row[5].text == "50.0"));
    let [rates, parts, jain] = &plots_named(&page, "shares").panels[..] else { panic!() };
    // The plotted seconds add up to the bytes read (the last is drawn twice).
    for (flow, series) in outcome.flows.iter().zip(&rates.series) {
        let bits: i64 = series.y[..30].iter().sum();
        assert_eq!(bits as u64 / 8, flow.bytes.get());
        assert_eq!((series.y.len(), series.y[29]), (31, series.y[30]));
    }
    for second in 0..30 {
        let parts = [&parts.series[0], &parts.series[1]].map(|series| series.y[second]);
        assert!((999..=1_000).contains(&(parts[0] + parts[1])) || parts == [0, 0], "{parts:?}");
    }
    assert!(jain.series[0].y.iter().all(|index| (500..=1_000).contains(index)));
    // Half of the packets wait at most the median of the table.
    let links = table(&page, "Links");
    let waits = plots_named(&page, "waits");
    assert_eq!(waits.panels[0].series[0].name, links.rows[0][0].text);
    let series = &waits.panels[0].series[0];
    assert_eq!(series.y.last(), Some(&1_000));
    let half = series.x[series.y.iter().position(|part| *part >= 500).unwrap()] as f64 / 1e6;
    let reported: f64 = links.rows[0][5].text.strip_suffix(" ms").unwrap().parse().unwrap();
    assert!((half / reported - 1.0).abs() < 0.01, "{half} {reported}");
}

#[test]
fn the_rate_is_zero_between_responses() {
    let text = include_str!("../../../../scenarios/shared-bottleneck.toml");
    let (page, outcome) = page_of(text, &["duration=20s"], 100_000);
    let number = outcome.flows.iter().position(|flow| flow.name == "browsing").unwrap();
    let rates = &plots_named(&page, &format!("flow-{number}")).panels[3].series[0];
    // The area below the curve is the number of bytes acknowledged.
    let area: f64 = rates
        .x
        .windows(2)
        .zip(&rates.y)
        .map(|(at, rate)| (at[1] - at[0]) as f64 / 1e9 * *rate as f64 / 8.0)
        .sum();
    let bytes = outcome.flows[number].bytes.get() as f64;
    assert!((0.9..=1.1).contains(&(area / bytes)), "{area} {bytes}");
    assert!(rates.y.iter().filter(|rate| **rate == 0).count() > 3);
}

/// A window is sent as one burst here, and its ACKs arrive as one: data after a hole is
/// acknowledged within microseconds of it, and is not a round of its own.
#[test]
fn data_sent_in_a_round_is_acknowledged_in_it() {
    let quic = include_str!("../../../../scenarios/mathis.toml");
    let burst = "path.0.forward=[{ loss = \"2%\" }, { link = { rate = \"100Gbit/s\", buffer = \"20000p\" } }, \
                 { delay = \"1ms\" }]";
    let back = "path.0.return=[{ delay = \"1ms\" }]";
    let linux = ["host.a.profile=linux-6.18", "host.a.cc=reno", burst, back];
    // Scenarios with the round trip of the empty path, in milliseconds.
    for (text, set, rtt) in [
        (quic, &["duration=4s"][..], 2.0),
        (LOSSY, &[burst, back], 2.0),
        (LOSSY, &linux, 2.0),
        (LOSSY, &[], 20.0),
    ] {
        let (page, _) = page_of(text, set, 100_000);
        let rounds = &table(&page, "Round by round").rows;
        assert!(rounds.len() > 20, "{}", rounds.len());
        for (number, round) in rounds.iter().enumerate() {
            let took: f64 = round[2].text.parse().unwrap();
            assert!(took >= rtt, "{set:?}, round {number}: {took} ms");
        }
        // Complete: all bytes sent, and the FIN.
        if text == LOSSY {
            let acked = rounds.iter().map(|round| round[8].text.parse::<u64>().unwrap());
            assert_eq!(acked.sum::<u64>(), 3_000_001, "{set:?}");
        }
    }
}

#[test]
fn quic_ack_ranges_are_drawn_like_sack_blocks() {
    let text = include_str!("../../../../scenarios/mathis.toml");
    let (page, outcome) = page_of(text, &["duration=3s"], 1_000_000);
    assert!(outcome.flows[0].retransmitted_segments > 0);
    let ranges = series(&page, "ACK ranges");
    let ack = series(&page, "acknowledged");
    for (at, low) in ranges.x.iter().zip(&ranges.y) {
        // Each is beyond the cumulative acknowledgment at that time.
        let known = ack.x.partition_point(|x| x <= at);
        assert!(known == 0 || ack.y[known - 1] < *low, "{at}");
    }
    assert!(ranges.x.len() as u64 >= outcome.flows[0].retransmitted_segments);
    // ACKs arrive in a burst here, yet no rate exceeds a window per round trip.
    let most = *series(&page, "acknowledged per round").y.iter().max().unwrap();
    let window = outcome.flows[0].max_cwnd.get() as i64 * 8 * 500;
    assert!(most <= 2 * window, "{most} {window}");
}

#[test]
fn a_page_of_a_run_has_the_same_bytes_each_time() {
    let html = || {
        let mut html = Vec::new();
        page_of(LOSSY, &[], 1_000_000).0.write(&mut html).unwrap();
        html
    };
    assert!(html() == html());
}
