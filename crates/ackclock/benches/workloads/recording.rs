//! The cost of the observers of a run: `cargo bench -- recording`.

use std::hint::black_box;
use std::io::{Sink, sink};

use logs::csv::CsvRecorder;
use logs::series::{Downsampling, SeriesColumns};
use pages::run_page::RunPageRecorder;
use record::{Event, EventSource, NullRecorder, Recorder, SenderState};
use runner::series::SenderSeries;
use scenario::Loaded;
use scenario::SeriesPlan;
use sim::Observer;
use simtest::workloads::{OneFlow, one_flow};
use units::{Duration, Instant};

use crate::measure::{best, loaded};

/// Runs per measurement, of which the best counts.
const TRIES: u32 = 4;

/// Receives every event and counts them.
#[derive(Default)]
struct EventCounter(u64);

impl Recorder for EventCounter {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        black_box((at, who, event, state));
        self.0 += 1;
    }
}

impl Observer for EventCounter {}

/// Writes rows to a sink.
struct CsvRows(CsvRecorder<Sink>);

impl Recorder for CsvRows {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }
}

impl Observer for CsvRows {}

/// Seconds of the best run with the observer that `watcher` creates; `end` consumes it.
fn watched<O: Observer>(loaded: &Loaded, watcher: impl Fn() -> O, end: impl Fn(O)) -> f64 {
    best(TRIES, || {
        let mut watcher = watcher();
        sim::run(&loaded.scenario, &mut watcher).expect("a good scenario");
        end(watcher);
    })
    .0
}

fn series(loaded: &Loaded, columns: &str, thinning: Downsampling) -> f64 {
    let columns = SeriesColumns::parse(columns).expect("columns that there are");
    let plan = SeriesPlan { columns, thinning, queues: false };
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
    let counter = |scenario: &mut sim::scenario::Scenario| {
        let mut story = RunPageRecorder::of(scenario);
        let outcome = sim::run(scenario, &mut story).expect("a good scenario");
        let page = story.page(loaded, &outcome, "workload", None);
        page.write(&mut sink()).expect("nothing is written");
    };
    best(TRIES, || counter(&mut loaded.scenario.clone())).0
}

/// W1 for ten seconds with each observer.
pub(crate) fn recording() {
    let loaded = loaded(&one_flow(&OneFlow { millis: 10_000, ..OneFlow::W1 }));
    let segments =
        sim::run(&loaded.scenario, &mut NullRecorder).expect("a good scenario").segments as f64;
    let mut counter = EventCounter::default();
    sim::run(&loaded.scenario, &mut counter).expect("a good scenario");
    println!("W1 for 10 s: {segments} segments, {} events", counter.0);
    println!("{:<44} {:>12} {:>10}", "observer", "ns/segment", "of off");
    let off = watched(&loaded, || NullRecorder, |_| ());
    let line = |what: &str, seconds: f64| {
        let (ns, times) = (seconds * 1e9 / segments, seconds / off);
        println!("{what:<44} {ns:>12.1} {times:>10.2}");
    };
    line("no observer", off);
    let end = |counter: EventCounter| {
        black_box(counter.0);
    };
    line("event counter", watched(&loaded, EventCounter::default, end));
    let ms = Downsampling::Every(Duration::from_millis(10));
    line("columns cwnd, flight: every change", series(&loaded, "cwnd,flight", Downsampling::None));
    line("columns cwnd, flight: extremes of 10 ms", series(&loaded, "cwnd,flight", ms));
    let six = "cwnd,ssthresh,flight,snd_wnd,srtt,rto";
    line("six columns: every change", series(&loaded, six, Downsampling::None));
    line("six columns: extremes of 10 ms", series(&loaded, six, ms));
    let csv = |rows: CsvRows| {
        rows.0.finish().expect("nothing is written");
    };
    line("all events as CSV", watched(&loaded, || CsvRows(CsvRecorder::new(sink())), csv));
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
