//! The overhead of a sweep over its runs: `cargo bench -- sweeps`.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use cpu_time::ProcessTime;
use record::NullRecorder;
use runner::sweep::execute;
use scenario::{Study, StudyOverrides};

use crate::measure::best;

/// Tiny runs of two segments, so that the overhead dominates.
const TINY: &str = r#"
title = "tiny runs"

[host.sender]
profile = "linux-6.18"
cc = "reno"

[host.sink]
profile = "linux-6.18"

[[path]]
from = "sender"
to = "sink"
forward = [{ link = { rate = "100Mbit/s", buffer = "100p" } }, { delay = "10ms" }]
return = [{ delay = "10ms" }]

[[flow]]
name = "up"
from = "sender"
to = "sink"
bulk = "2kB"
"#;

/// The shapes: 20,000 points, or 20 points 1,000 times.
const SHAPES: [(&str, &str, u64); 2] = [
    ("20,000 points", "flow.up.start=0ms..19999ms step 1ms", 1),
    ("20 points 1,000 times", "flow.up.start=0ms..19ms step 1ms", 1_000),
];

/// Prints the cost of a run alone, and in a sweep over one thread and over all.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn sweeps() {
    let cores = std::thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get);
    println!(
        "{:<24} {:>8} {:>10} {:>14} {:>10} {:>8}",
        "us for a run", "threads", "processor", "over bare", "wall", "times"
    );
    for (title, axis, repeat) in SHAPES {
        let overrides = StudyOverrides {
            axes: vec![axis.to_owned()],
            repeat: Some(repeat),
            ..StudyOverrides::default()
        };
        let study = match Study::load(TINY, "tiny", &overrides) {
            Ok(study) => study,
            Err(errors) => panic!("{}", errors[0]),
        };
        let runs = study.runs();
        let us = |seconds: f64| seconds * 1e6 / runs as f64;
        let scenario = study.scenario(0).unwrap_or_else(|errors| panic!("{}", errors[0]));
        let (bare, _) = best(3, || {
            for _ in 0..runs {
                sim::run(&scenario, &mut NullRecorder).expect("a good scenario");
            }
        });
        println!("{title:<24} {:>8} {:>10.1}", "bare", us(bare));
        let mut single_packet = f64::INFINITY;
        for threads in 1..=cores {
            let (mut wall, mut processor) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..3 {
                let (clock, began) = (Instant::now(), ProcessTime::now());
                let lines = AtomicUsize::new(0);
                let stop = AtomicBool::new(false);
                let kept = execute(&study, 0..runs, &|_| false, threads, &stop, |row| {
                    lines.fetch_add(row.to_line().len(), Ordering::Relaxed);
                    Ok::<(), Infallible>(())
                });
                assert!(kept.is_ok() && lines.into_inner() > 0, "the runs are good");
                wall = wall.min(clock.elapsed().as_secs_f64());
                processor = processor.min(began.elapsed().as_secs_f64());
            }
            single_packet = if threads == 1 { wall } else { single_packet };
            println!(
                "{title:<24} {threads:>8} {:>10.1} {:>14.1} {:>10.1} {:>8.2}",
                us(processor),
                us(processor - bare),
                us(wall),
                single_packet / wall
            );
        }
    }
}
