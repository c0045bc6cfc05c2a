//! Tests of tables of a few runs.

use super::*;
use crate::run_report::FlowReport;

fn row(run: u64, delay: &str, cc: &str, goodput_bps: f64) -> SweepRow {
    let flow = FlowReport {
        name: "up".into(),
        profile: "linux-6.18".into(),
        cc: "reno".into(),
        bytes: 1,
        finished: true,
        duration_s: 1.0,
        goodput_bps,
        retransmitted_segments: 0,
        fast_recoveries: 0,
        rtos: 0,
        spurious_recoveries: 0,
        max_cwnd_bytes: 1,
        mss_bytes: 1,
        min_rtt_s: None,
        latency: None,
        one_way: None,
        video: None,
        datagrams: None,
        group: None,
    };
    let set = vec![("delay".into(), delay.into()), ("cc".into(), cc.into())];
    let sharing = crate::sharing::SharingReport::default();
    SweepRow {
        run,
        seed: run,
        set,
        ended_s: 1.0,
        segments_simulated: 1,
        flows: vec![flow],
        sharing,
    }
}

fn pivot(rows: &[&str], columns: &[&str], of: &[SweepRow]) -> Pivot {
    table(rows, columns, "goodput", FlowSelection::Each, of)
}

#[test]
fn cells_hold_means_and_intervals() {
    let rows = [
        row(0, "5ms", "reno", 8e6),
        row(1, "5ms", "reno", 10e6),
        row(2, "9ms", "reno", 5e6),
        row(3, "9ms", "cubic", 0.5e6),
    ];
    // Mean 9, deviation sqrt(2), interval 12.706 * sqrt(2) / sqrt(2).
    let expected = "\
delay  cc=reno        cc=cubic
5ms    9 ± 13 Mbit/s  –
9ms    5 Mbit/s       0.5 Mbit/s
";
    assert_eq!(pivot(&["delay"], &["cc"], &rows).text(), expected);
    let cells = pivot(&["delay"], &[], &rows).cells();
    assert_eq!(cells.len(), 2);
    assert_eq!((cells[1].count, cells[1].min, cells[1].max), (2, 0.5e6, 5e6));
}

/// A run of three flows, the first of which is large, with a delay.
fn shared(run: u64, delay: &str, goodputs: [f64; 3]) -> SweepRow {
    let mut row = row(run, delay, "reno", 0.0);
    let flow = row.flows.remove(0);
    let named = ["bulk", "paced", "chat"].into_iter().zip(goodputs);
    row.flows = named
        .map(|(name, goodput_bps)| FlowReport { name: name.into(), goodput_bps, ..flow.clone() })
        .collect();
    row
}

fn table(
    rows: &[&str],
    columns: &[&str],
    name: &str,
    flows: FlowSelection,
    of: &[SweepRow],
) -> Pivot {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let figure = SweepFigure::named(name).unwrap();
    let mut pivot =
        Pivot::new(PivotSpec { rows: names(rows), columns: names(columns), figure, flows });
    of.iter().for_each(|row| pivot.add(row));
    pivot
}

/// A mean over unlike flows describes none of them, and their spread is not random.
#[test]
fn unlike_flows_have_cells_of_their_own() {
    let rows =
        [shared(0, "5ms", [9.56e6, 0.06e6, 0.71e6]), shared(1, "5ms", [9.44e6, 0.06e6, 0.73e6])];
    // For two values, half their difference times 12.706: 0.06 and 0.01 Mbit/s.
    let single_packet = "\
delay  flow=bulk           flow=paced               flow=chat
5ms    9.50 ± 0.76 Mbit/s  0.06 Mbit/s (identical)  0.72 ± 0.13 Mbit/s
";
    assert_eq!(table(&["delay"], &[], "goodput", FlowSelection::Each, &rows).text(), single_packet);
    let beside = table(&["delay"], &["cc"], "goodput", FlowSelection::Each, &rows).text();
    assert!(beside.starts_with("delay  flow   cc=reno\n5ms    bulk   9.50 ±"), "{beside}");
    assert!(beside.contains("\n5ms    chat   0.72 ± 0.13 Mbit/s\n"), "{beside}");
    // Sums of 10.33 and 10.23.
    let sum = table(&["delay"], &[], "goodput", FlowSelection::Sum, &rows);
    assert!(sum.text().ends_with("\n5ms    10.28 ± 0.64 Mbit/s\n"), "{}", sum.text());
    let one = table(&["delay"], &[], "goodput", FlowSelection::One("chat".into()), &rows);
    assert!(one.text().ends_with("\n5ms    720 ± 127 kbit/s\n"), "{}", one.text());
    let keyed = table(&["flow"], &["delay"], "goodput", FlowSelection::Each, &rows).text();
    assert!(keyed.starts_with("flow   delay=5ms\nbulk   9.50 ±"), "{keyed}");
    let counts: Vec<u64> = sum.cells().iter().map(|cell| cell.count).collect();
    assert_eq!(counts, [2]);
}

#[test]
fn a_figure_of_a_run_counts_once_for_it() {
    let mut rows = [shared(0, "5ms", [3e6, 2e6, 1e6]), shared(1, "5ms", [3e6, 2e6, 1e6])];
    for (row, jain_index) in rows.iter_mut().zip([0.8, 0.9]) {
        row.sharing.fairness = Some(crate::sharing::FairnessReport {
            flows: Vec::new(),
            jain_index,
            mean_jain_index: None,
            min_jain_index: None,
            convergence_s: None,
            seconds_not_visible: false,
        });
    }
    let cells = table(&["delay"], &[], "jain_index", FlowSelection::Each, &rows).cells();
    assert_eq!((cells.len(), cells[0].count), (1, 2));
    // Two values 0.1 apart: 12.706 times a deviation of 0.0707 over the root of 2.
    assert!((cells[0].confidence_95.unwrap() - 12.706 * 0.05).abs() < 1e-9);
}

#[test]
fn runs_that_differ_in_more_than_their_seeds_have_no_interval() {
    let rows = [row(0, "5ms", "reno", 8e6), row(1, "9ms", "reno", 2e6)];
    let mixed = pivot(&["cc"], &[], &rows);
    assert_eq!(mixed.text(), "cc    goodput_bps\nreno  5 Mbit/s\n");
    let cells = mixed.cells();
    assert_eq!((cells[0].count, cells[0].confidence_95), (2, None));
}

#[test]
fn a_heat_map_has_every_cell_once() {
    let rows =
        [row(0, "5ms", "reno", 8e6), row(1, "9ms", "reno", 5e6), row(2, "9ms", "cubic", 1e6)];
    let svg = pivot(&["delay"], &["cc"], &rows).heat_map("t", "s");
    for text in [">8.000<", ">5.000<", ">1.000<", ">8 Mbit/s<", ">goodput Mbit/s, mean of each"] {
        assert_eq!(svg.matches(text).count(), 1, "{text}: {svg}");
    }
    // One cell is empty.
    assert_eq!(svg.matches("#eaeef2").count(), 1);
}

#[test]
fn lines_need_quantities_along_their_axis() {
    let rows = |values: &[&str]| -> Vec<SweepRow> {
        values.iter().flat_map(|value| [8e6, 10e6].map(|bps| row(0, value, "reno", bps))).collect()
    };
    let lines = |values: &[&str]| pivot(&["delay"], &["cc"], &rows(values)).lines("t", "s");
    let svg = lines(&["5ms", "10ms", "20ms"]).unwrap();
    assert!(svg.contains(">delay (ms)<") && svg.contains(">goodput (Mbit/s)<"), "{svg}");
    assert!(svg.contains(">mean, by cc, with its 95 % confidence interval; s<"), "{svg}");
    // More than a decade: logarithms.
    let svg = lines(&["0.1%", "1%", "10%"]).unwrap();
    assert!(svg.contains(">log10 of delay in %<"), "{svg}");
    for wrong in [&["reno", "cubic"][..], &["5ms", "5MB"], &["5ms"]] {
        assert_eq!(lines(wrong), Err(LineChartError::Side), "{wrong:?}");
    }
    let many: Vec<SweepRow> = (0..9)
        .flat_map(|n| ["1ms", "2ms"].map(|delay| row(0, delay, &format!("cc{n}"), 1e6)))
        .collect();
    assert_eq!(pivot(&["delay"], &["cc"], &many).lines("t", "s"), Err(LineChartError::Columns(9)));
}

#[test]
fn digits_follow_the_interval() {
    let rows: Vec<SweepRow> =
        [1.0e6, 1.001e6, 1.002e6].iter().map(|&bps| row(0, "", "", bps)).collect();
    // Deviation 1000, interval 4.303 * 1000 / sqrt(3) = 2484 bit/s.
    assert!(pivot(&[], &[], &rows).text().ends_with("1.001 ± 0.002 Mbit/s\n"));
    let alike = |bps: f64| {
        let rows: Vec<SweepRow> = [bps; 3].iter().map(|&bps| row(0, "", "", bps)).collect();
        pivot(&[], &[], &rows).text()
    };
    assert!(
        alike(1.2345e6).ends_with("1.234 Mbit/s (identical)\n")
            || alike(1.2345e6).ends_with("1.235 Mbit/s (identical)\n")
    );
    assert!(alike(0.0).ends_with("\n0 bit/s (identical)\n"), "{}", alike(0.0));
    assert!(pivot(&[], &[], &[row(0, "", "", 0.0)]).heat_map("t", "s").contains(">0<"));
}
