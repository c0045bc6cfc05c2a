//! A published sweep over a netem that reorders, with the hosts of its authors.

use scenario::{Overrides, load};

const SCENARIO: &str = include_str!("../../../scenarios/netem-jitter.toml");

/// Returns the payload in KiB/s of the file at this controller and jitter: mean of five seeds.
fn mean(cc: &str, jitter: u32) -> f64 {
    let text = SCENARIO.replace("\"8ms\"", &format!("\"{jitter}ms\""));
    let text = text.replace("cc = \"cubic\"", &format!("cc = \"{cc}\""));
    let mut scenario = load(&text, "netem-jitter.toml", &Overrides::default()).unwrap().scenario;
    let payload = (1..=5).map(|seed| {
        scenario.seed = seed;
        sim::run(&scenario, &mut record::NullRecorder).unwrap().flows[0].bytes.get()
    });
    payload.sum::<u64>() as f64 / 5.0 / 10.0 / 1_024.0
}

/// Both controllers collapse between the jitters of the published figures, each row within the
/// largest spread of its authors: coefficients of variation of 66 % (CUBIC) and 31 % (BBR).
#[test]
fn jitter_collapses_throughput_at_the_published_step() {
    let rows = [
        ("cubic", 0.66, [(4, 4863.0), (8, 3655.0), (12, 303.0), (16, 118.0), (24, 89.0)]),
        ("bbr", 0.31, [(4, 4934.0), (8, 1799.0), (12, 584.0), (16, 416.0), (24, 351.0)]),
    ];
    for (cc, spread, rows) in rows {
        let here = rows.map(|(jitter, _)| mean(cc, jitter));
        for (here, (jitter, published)) in here.iter().zip(rows) {
            assert!((here / published - 1.0).abs() < spread, "{cc} {jitter} ms: {here}");
        }
        assert!(here[1] > 2.0 * here[2], "{cc}: {here:?}");
    }
}

/// tcp_update_rtt_min of Linux counts a round trip of less than a microsecond as a jiffy, 4 ms: RACK's
/// reordering window is a part of the least round trip and would be nothing.
#[test]
fn a_round_trip_of_no_time_counts_as_a_jiffy() {
    let text = "title = \"none\"\nduration = \"1s\"\n[host]\na = { profile = \"linux-6.18\" }\n\
                b = { profile = \"linux-6.18\" }\n[[path]]\nfrom = \"a\"\nto = \"b\"\nforward = []\nreturn = []\n\
                [[flow]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"20kB\"\n";
    let scenario = load(text, "none.toml", &Overrides::default()).unwrap().scenario;
    let flow = sim::run(&scenario, &mut record::NullRecorder).unwrap().flows.remove(0);
    assert!(flow.finished);
    assert_eq!(flow.min_rtt, Some(units::Duration::from_millis(4)));
}
