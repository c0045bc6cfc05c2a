//! Snapshots of sample charts, checked by eye.

use super::*;

/// Points `every` apart, each value times 1,000.
fn rounds(values: &[i64], first: i64, every: i64) -> Vec<ChartPoint> {
    let at = |number: usize| first + number as i64 * every;
    values.iter().enumerate().map(|(n, &y)| ChartPoint { x: at(n), y: y * 1_000 }).collect()
}

fn svg(chart: &Chart<'_>) -> String {
    let mut svg = Vec::new();
    chart.write(&mut svg).unwrap();
    String::from_utf8(svg).unwrap()
}

#[test]
fn slow_start_in_two_panels() {
    // The window grows by 2 segments every 100.6 ms; without a limit it doubles.
    let limited: Vec<i64> = (0..18).map(|n| 10 + 2 * n).collect();
    let flights = rounds(&limited, 100_600_000, 100_600_000);
    let doubling = rounds(&[10, 20, 40, 80], 100_600_000, 100_600_000);
    let cwnd = rounds(&limited, 0, 100_600_000);
    let free = rounds(&[10, 20, 40, 80, 80, 80], 0, 100_600_000);
    let limit = rounds(&[64, 64], 0, 1_810_800_000);
    let chart = Chart {
        title: "Slow start behind a receiver with LRO",
        subtitle: "100 ms, 1 MB, one ACK for each burst; abc_l_var = 2 against no limit",
        x: ChartAxis { title: "time since the SYN", unit: "s", decimals: 9 },
        panels: vec![
            ChartPanel {
                y: ChartAxis { title: "flight", unit: "MSS", decimals: 3 },
                series: vec![
                    ChartSeries {
                        name: "FreeBSD 13.2, L = 2",
                        look: 0,
                        draw: Draw::Line,
                        points: &flights,
                    },
                    ChartSeries {
                        name: "no limit (RFC 5681)",
                        look: 1,
                        draw: Draw::Line,
                        points: &doubling,
                    },
                ],
                height: 200,
            },
            ChartPanel {
                y: ChartAxis { title: "congestion window", unit: "MSS", decimals: 3 },
                series: vec![
                    ChartSeries {
                        name: "FreeBSD 13.2, L = 2",
                        look: 0,
                        draw: Draw::Step,
                        points: &cwnd,
                    },
                    ChartSeries {
                        name: "no limit (RFC 5681)",
                        look: 1,
                        draw: Draw::Step,
                        points: &free,
                    },
                    ChartSeries {
                        name: "peer's window",
                        look: 6,
                        draw: Draw::Line,
                        points: &limit,
                    },
                ],
                height: 200,
            },
        ],
        marks: vec![
            ChartMark { at: 100_600_000, label: "first data" },
            ChartMark { at: 402_400_000, label: "80 MSS without the limit" },
            ChartMark { at: 1_810_800_000, label: "44 MSS with it" },
        ],
        ..Chart::default()
    };
    insta::assert_snapshot!(svg(&chart));
}

const SENDERS: [&str; 7] = [
    "FreeBSD 13.2 NewReno",
    "FreeBSD 14.3 CUBIC",
    "FreeBSD RACK",
    "Linux 6.18 CUBIC",
    "Linux 6.18 Reno",
    "QUIC (RFC 9002)",
    "path limit",
];

fn seven_senders(all: &[Vec<ChartPoint>]) -> String {
    let senders = all.iter().zip(SENDERS).zip(0..);
    svg(&Chart {
        title: "Windows of seven senders",
        x: ChartAxis { title: "time", unit: "s", decimals: 6 },
        panels: vec![ChartPanel {
            y: ChartAxis { title: "congestion window", unit: "bytes", decimals: 0 },
            series: senders
                .map(|((points, name), look)| ChartSeries { name, look, draw: Draw::Step, points })
                .collect(),
            height: 320,
        }],
        ..Chart::default()
    })
}

#[test]
fn seven_looks() {
    // Sawtooth windows, each sender slightly above the previous one.
    let window = |sender: i64, n: i64| 100_000 * (sender + 1) + 20_000 * ((n + sender) % 4);
    let all: Vec<Vec<ChartPoint>> = (0..7)
        .map(|sender| {
            (0..14).map(|n| ChartPoint { x: n * 950_000, y: window(sender, n) }).collect()
        })
        .collect();
    insta::assert_snapshot!(seven_senders(&all));
}

#[test]
fn many_points_make_no_large_picture() {
    let window = |sender: i64, n: i64| 100_000 * (sender + 1) + n * 7_919 % 90_001;
    let all: Vec<Vec<ChartPoint>> = (0..7)
        .map(|sender| {
            (0..40_000).map(|n| ChartPoint { x: n * 1_000, y: window(sender, n) }).collect()
        })
        .collect();
    let svg = seven_senders(&all);
    // At most 4 points for each of 840 columns and 7 senders, of at most 15 bytes each, plus the
    // frame.
    assert!(svg.len() < 4 * 840 * 7 * 15 + 10_000, "{} bytes", svg.len());
}

#[test]
fn long_labels_stay_within_the_picture() {
    let points = [ChartPoint { x: 0, y: 0 }, ChartPoint { x: 5_000_000, y: 7_000_000 }];
    let svg = svg(&Chart {
        x: ChartAxis { title: "bytes", ..ChartAxis::default() },
        panels: vec![ChartPanel {
            series: vec![ChartSeries { name: "", look: 0, draw: Draw::Line, points: &points }],
            ..ChartPanel::default()
        }],
        width: 320,
        ..Chart::default()
    });
    let label = svg.lines().find(|line| line.contains(">5,000,000<")).unwrap();
    let x: u32 = label.split('"').nth(1).unwrap().parse().unwrap();
    // Nine characters of at most 0.64 * 11 pixels, half of them right of the centre.
    assert!(x + 32 <= 320, "{x}");
}

#[test]
fn single_events_with_values_below_zero() {
    let early: Vec<ChartPoint> =
        (0..60).map(|n| ChartPoint { x: n * 5, y: (n * 37 % 23) - 9 }).collect();
    let late: Vec<ChartPoint> =
        (0..30).map(|n| ChartPoint { x: n * 9 + 40, y: 10 - (n * 11 % 17) }).collect();
    let chart = Chart {
        title: "Lateness <of> \"packets\" & ACKs",
        x: ChartAxis { title: "packet", unit: "", decimals: 0 },
        panels: vec![ChartPanel {
            y: ChartAxis { title: "lateness", unit: "ms", decimals: 1 },
            series: vec![
                ChartSeries { name: "in order", look: 2, draw: Draw::Points, points: &early },
                ChartSeries { name: "reordered", look: 5, draw: Draw::Points, points: &late },
            ],
            height: 180,
        }],
        marks: vec![
            ChartMark { at: 60, label: "first loss found by duplicate ACKs" },
            ChartMark { at: 75, label: "fast retransmit" },
            ChartMark { at: 80, label: "RTO" },
            ChartMark { at: 280, label: "end of recovery" },
        ],
        width: 560,
        ..Chart::default()
    };
    insta::assert_snapshot!(svg(&chart));
}

#[test]
fn whiskers_join_their_two_values() {
    let ends = [
        ChartPoint { x: 0, y: 5 },
        ChartPoint { x: 0, y: 7 },
        ChartPoint { x: 10, y: 0 },
        ChartPoint { x: 10, y: 10 },
    ];
    let series = ChartSeries { name: "", look: 0, draw: Draw::Whiskers, points: &ends };
    let panel = ChartPanel { series: vec![series], height: 100, ..ChartPanel::default() };
    let drawn = svg(&Chart { panels: vec![panel], ..Chart::default() });
    let bars = drawn.lines().find(|line| line.contains("stroke-width=\"1.2\"")).unwrap();
    // 0 to 10 is 100 pixels: the first bar is a fifth of the second.
    let tall: Vec<f64> = bars
        .split('V')
        .skip(1)
        .zip(bars.match_indices("h8M").skip(1).step_by(2))
        .map(|(end, (at, _))| {
            let end: f64 = end.split(['M', '"']).next().unwrap().parse().unwrap();
            let begin: f64 = bars[at + 3..].split([' ', 'V']).nth(1).unwrap().parse().unwrap();
            begin - end
        })
        .collect();
    assert_eq!(tall, [20.0, 100.0], "{bars}");
}

#[test]
fn a_chart_without_a_value_is_still_a_chart() {
    let chart = Chart {
        title: "Nothing yet",
        x: ChartAxis { title: "time", unit: "s", decimals: 9 },
        panels: vec![ChartPanel::default()],
        ..Chart::default()
    };
    let empty = svg(&chart);
    assert!(empty.contains(">0.0</text>") && empty.contains(">1.0</text>"));
    assert!(empty.ends_with("</svg>\n"));
    // Not even a panel.
    assert!(svg(&Chart::default()).ends_with("</svg>\n"));
}
