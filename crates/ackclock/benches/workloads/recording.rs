//! What those who watch a run cost it: `cargo bench -- recording`.

use std::hint::black_box;
use std::io::{Sink, sink};

use logs::csv::CsvRecorder;
use logs::series::{Columns, Thinning};
use pages::run_page::RunStory;
use record::{Event, Off, Recorder, SenderState, Who};
use runner::series::SenderSeries;
use scenario::Loaded;
use scenario::Plan;
use sim::Observer;
use simtest::workloads::{OneFlow, one_flow};
use units::{Duration, Instant};

use crate::measure::{best, loaded};

/// Runs that each measurement is the best of.
const TRIES: u32 = 4;

/// Is told everything and keeps the number of events.
#[derive(Default)]
struct Told(u64);

impl Recorder for Told {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        black_box((at, who, event, state));
        self.0 += 1;
    }
}

impl Observer for Told {}

/// Writes rows to nowhere.
struct Rows(CsvRecorder<Sink>);

impl Recorder for Rows {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }
}

impl Observer for Rows {}

/// Seconds of the best run under what `watcher` makes, which `end` takes at its end.
fn watched<O: Observer>(loaded: &Loaded, watcher: impl Fn() -> O, end: impl Fn(O)) -> f64 {
    best(TRIES, || {
        let mut watcher = watcher();
        sim::run(&loaded.scenario, &mut watcher).expect("a good scenario");
        end(watcher);
    })
    .0
}

fn series(loaded: &Loaded, columns: &str, thinning: Thinning) -> f64 {
    let columns = Columns::parse(columns).expect("columns that there are");
    let plan = Plan { columns, thinning };
    let end = |series: SenderSeries| {
        let mut rows = 0_u64;
        let counted = series.into_collector().rows(|_, _, _| {
            rows += 1;
            Ok::<(), core::convert::Infallible>(())
        });
        black_box((rows, counted.is_ok()));
    };
    watched(loaded, || SenderSeries::new(&loaded.scenario, &plan), end)
}

fn story(loaded: &Loaded) -> f64 {
    let told = |scenario: &mut sim::scenario::Scenario| {
        let mut story = RunStory::of(scenario);
        let outcome = sim::run(scenario, &mut story).expect("a good scenario");
        let page = story.page(loaded, &outcome, "workload", None);
        page.write(&mut sink()).expect("nothing is written");
    };
    best(TRIES, || told(&mut loaded.scenario.clone())).0
}

/// W1 for ten seconds under each of them.
pub(crate) fn recording() {
    let loaded = loaded(&one_flow(&OneFlow { millis: 10_000, ..OneFlow::W1 }));
    let segments = sim::run(&loaded.scenario, &mut Off).expect("a good scenario").segments as f64;
    let mut told = Told::default();
    sim::run(&loaded.scenario, &mut told).expect("a good scenario");
    println!("W1 for 10 s: {segments} segments, {} events", told.0);
    println!("{:<44} {:>12} {:>10}", "watched by", "ns/segment", "of off");
    let off = watched(&loaded, || Off, |_| ());
    let line = |what: &str, seconds: f64| {
        let (ns, times) = (seconds * 1e9 / segments, seconds / off);
        println!("{what:<44} {ns:>12.1} {times:>10.2}");
    };
    line("nobody", off);
    let end = |told: Told| {
        black_box(told.0);
    };
    line("one who keeps nothing", watched(&loaded, Told::default, end));
    let ms = Thinning::Every(Duration::from_millis(10));
    line("columns cwnd, flight: every change", series(&loaded, "cwnd,flight", Thinning::None));
    line("columns cwnd, flight: extremes of 10 ms", series(&loaded, "cwnd,flight", ms));
    let six = "cwnd,ssthresh,flight,snd_wnd,srtt,rto";
    line("six columns: every change", series(&loaded, six, Thinning::None));
    line("six columns: extremes of 10 ms", series(&loaded, six, ms));
    let csv = |rows: Rows| {
        rows.0.finish().expect("nothing is written");
    };
    line("all events as CSV", watched(&loaded, || Rows(CsvRecorder::new(sink())), csv));
    #[cfg(feature = "parquet")]
    {
        use export::columns::EventColumns;
        let table = || EventColumns::new(&loaded.scenario, &loaded.sha256, sink());
        let begin = || table().expect("nothing is written");
        let end = |table: EventColumns<Sink>| {
            table.finish().expect("nothing is written");
        };
        line("all events as Parquet", watched(&loaded, begin, end));
    }
    line("the page of --report", story(&loaded));
}
