//! Written tables are read back by the reader of the Arrow project.

use std::sync::Mutex;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use record::{Event, EventSource, Recorder, SenderState};
use units::{Bytes, Duration, Instant, Rate};

use super::*;
use runner::sweep::SweepRow;
use runner::sweep::csv::FIGURES;
use scenario::{Overrides, Study, StudyOverrides, load};

const SCENARIO: &str = r#"
title = "two hosts"
seed = 7
host.a = { profile = "freebsd-13.2" }
host.b = { profile = "linux-6.18", cc = "reno" }
path = [ { from = "a", to = "b", forward = [ { link = { rate = "10Mbit/s", buffer = "9p" } }, { delay = "5ms" } ], return = [] } ]
flow = [ { name = "bulk", from = "a", to = "b", bulk = "100kB" }, { name = "more", from = "a", to = "b", bulk = "50kB" } ]
sweep.axes."path.forward.delay" = ["5ms", "50ms"]
"#;

fn read(bytes: Vec<u8>) -> (Arc<Schema>, Vec<RecordBatch>) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
    let schema = Arc::clone(reader.schema());
    (schema, reader.build().unwrap().map(Result::unwrap).collect())
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn the_runs_of_a_sweep_round_trip() {
    let overrides = StudyOverrides::default();
    let study = Study::load(SCENARIO, "two.toml", &overrides).unwrap();
    let rows: Mutex<Vec<SweepRow>> = Mutex::default();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let keep = |row| {
        rows.lock().unwrap().push(row);
        Ok::<(), ()>(())
    };
    runner::sweep::execute(&study, 0..study.runs(), &|_| false, 1, &stop, keep).unwrap();
    let rows = rows.into_inner().unwrap();
    let keys: Vec<String> = study.axes().concat();
    let mut out = SweepParquet::new(&keys, &study.sha256(), Vec::new()).unwrap();
    rows.iter().try_for_each(|row| out.add(row)).unwrap();
    let (schema, batches) = read(out.finish().unwrap());
    assert_eq!(schema.metadata()["sweep_sha256"], study.sha256());
    let goodput = schema.field_with_name("goodput_bps").unwrap();
    assert_eq!(goodput.metadata()["unit"], "bit/s");
    assert_eq!(goodput.metadata()["description"], "payload read per second, in bit/s");
    // Two points, two flows each.
    let batch = &batches[0];
    assert_eq!((batches.len(), batch.num_rows()), (1, 4));
    assert_eq!(column(batch, "run").as_primitive::<UInt64Type>().values(), &[0, 0, 1, 1]);
    let flows: Vec<_> = column(batch, "flow").as_string::<i32>().iter().flatten().collect();
    assert_eq!(flows, ["bulk", "more", "bulk", "more"]);
    let delays: Vec<_> =
        column(batch, "path.forward.delay").as_string::<i32>().iter().flatten().collect();
    assert_eq!(delays, ["5ms", "5ms", "50ms", "50ms"]);
    for figure in FIGURES {
        let found = column(batch, figure.name).as_primitive::<Float64Type>();
        let flows = rows.iter().flat_map(|row| row.flows.iter().map(move |flow| (row, flow)));
        for (at, (row, flow)) in flows.enumerate() {
            let value = found.is_valid(at).then(|| found.value(at).to_bits());
            assert_eq!(value, (figure.of)(row, flow).map(f64::to_bits), "{}", figure.name);
        }
    }
}

#[test]
fn the_events_of_a_run_round_trip() {
    let loaded = load(SCENARIO, "two.toml", &Overrides::default()).unwrap();
    let mut out = EventColumns::new(&loaded.scenario, &loaded.sha256, Vec::new()).unwrap();
    let outcome = sim::run(&loaded.scenario, &mut out).unwrap();
    let (schema, batches) = read(out.finish().unwrap());
    assert_eq!(schema.metadata()["scenario_sha256"], loaded.sha256);
    assert_eq!(schema.metadata()["title"], "two hosts");
    assert_eq!(schema.field_with_name("srtt_s").unwrap().metadata()["unit"], "s");
    let (mut read, mut last, mut most) = ([0; 2], 0, 0);
    for batch in &batches {
        let flows = column(batch, "flow").as_string::<i32>();
        let bytes = column(batch, "read_bytes").as_primitive::<UInt64Type>();
        let times = column(batch, "time_ns").as_primitive::<UInt64Type>();
        let cwnd = column(batch, "cwnd_bytes").as_primitive::<UInt64Type>();
        for at in 0..batch.num_rows() {
            let flow = usize::from(flows.value(at) == "more");
            read[flow] += if bytes.is_valid(at) { bytes.value(at) } else { 0 };
            assert!(times.value(at) >= last);
            last = times.value(at);
            most = most.max(if cwnd.is_valid(at) { cwnd.value(at) } else { 0 });
        }
    }
    assert_eq!(read, [100_000, 50_000]);
    // FreeBSD briefly raises the window for limited transmit.
    assert!(most >= outcome.flows.iter().map(|flow| flow.max_cwnd.get()).max().unwrap());
}

/// Records the expected rows of an event table.
#[derive(Default)]
struct ExpectedRows(Vec<(Instant, Option<u64>, Option<SenderState>)>);

impl Recorder for ExpectedRows {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, state: Option<&SenderState>) {
        let read = match event {
            Event::AppRead { bytes, .. } => Some(u64::from(bytes)),
            _ => None,
        };
        if read.is_some() || state.is_some() {
            self.0.push((at, read, state.copied()));
        }
    }
}

impl sim::Observer for ExpectedRows {}

#[test]
fn every_value_of_every_event_round_trips() {
    let longer = SCENARIO.replace("100kB", "600kB");
    let loaded = load(&longer, "two.toml", &Overrides::default()).unwrap();
    let mut expected = ExpectedRows::default();
    sim::run(&loaded.scenario, &mut expected).unwrap();
    let mut out = EventColumns::new(&loaded.scenario, &loaded.sha256, Vec::new()).unwrap();
    sim::run(&loaded.scenario, &mut out).unwrap();
    let (_, batches) = read(out.finish().unwrap());
    let whole = |name: &str| -> Vec<Option<u64>> {
        let of =
            |batch| column(batch, name).as_primitive::<UInt64Type>().iter().collect::<Vec<_>>();
        batches.iter().flat_map(of).collect()
    };
    let number = |name: &str| -> Vec<Option<f64>> {
        let of =
            |batch| column(batch, name).as_primitive::<Float64Type>().iter().collect::<Vec<_>>();
        batches.iter().flat_map(of).collect()
    };
    // More than one batch of the reader.
    assert!(batches.len() > 1, "{}", expected.0.len());
    let times: Vec<_> = expected.0.iter().map(|(at, ..)| Some(at.as_nanos())).collect();
    assert_eq!(whole("time_ns"), times);
    let seconds: Vec<_> = expected.0.iter().map(|(at, ..)| Some(at.as_secs_f64())).collect();
    assert_eq!(number("time_s"), seconds);
    assert_eq!(
        whole("read_bytes"),
        expected.0.iter().map(|expected| expected.1).collect::<Vec<_>>()
    );
    let states = |of: fn(&SenderState) -> Option<u64>| -> Vec<Option<u64>> {
        expected.0.iter().map(|expected| expected.2.as_ref().and_then(of)).collect()
    };
    assert_eq!(whole("snd_una_bytes"), states(|state| Some(state.snd_una.0)));
    assert_eq!(whole("snd_nxt_bytes"), states(|state| Some(state.snd_nxt.0)));
    assert_eq!(whole("snd_max_bytes"), states(|state| Some(state.snd_max.0)));
    assert_eq!(whole("in_flight_bytes"), states(|state| Some(state.in_flight.get())));
    assert_eq!(whole("pipe_bytes"), states(|state| Some(state.pipe.get())));
    assert_eq!(whole("cwnd_bytes"), states(|state| Some(state.cwnd.get())));
    assert_eq!(whole("ssthresh_bytes"), states(|state| state.ssthresh.map(Bytes::get)));
    assert_eq!(whole("snd_wnd_bytes"), states(|state| Some(state.snd_wnd.get())));
    assert_eq!(whole("mss_bytes"), states(|state| Some(state.mss.get())));
    assert_eq!(whole("buffered_bytes"), states(|state| Some(state.buffered.get())));
    assert_eq!(whole("pacing_bps"), states(|state| state.pacing.map(Rate::bits_per_second)));
    let spans = |of: fn(&SenderState) -> Option<Duration>| -> Vec<Option<f64>> {
        let of = |state: &SenderState| of(state).map(Duration::as_secs_f64);
        expected.0.iter().map(|expected| expected.2.as_ref().and_then(of)).collect()
    };
    assert_eq!(number("srtt_s"), spans(|state| state.srtt));
    assert_eq!(number("rto_s"), spans(|state| Some(state.rto)));
}

#[test]
fn selected_columns_round_trip() {
    use logs::series::{Downsampling, SeriesColumns};
    let loaded = load(SCENARIO, "two.toml", &Overrides::default()).unwrap();
    let plan = scenario::SeriesPlan {
        columns: SeriesColumns::parse("cwnd,srtt,pacing").unwrap(),
        thinning: Downsampling::None,
        queues: false,
    };
    let mut series = runner::series::SenderSeries::new(&loaded.scenario, &plan);
    let outcome = sim::run(&loaded.scenario, &mut series).unwrap();
    let mut collector = series.into_collector();
    let out = write_series(&mut collector, &loaded.scenario, "abc", Vec::new()).unwrap();
    let (schema, batches) = read(out);
    assert_eq!(schema.metadata()["table"], "series");
    let about =
        |name: &str, key: &str| schema.field_with_name(name).unwrap().metadata()[key].clone();
    assert_eq!(about("cwnd_bytes", "unit"), "B");
    assert_eq!(about("srtt_us", "unit"), "us");
    assert_eq!(
        about("srtt_us", "description"),
        "smoothed round-trip time; none before the first sample"
    );
    let cwnd = column(&batches[0], "cwnd_bytes").as_primitive::<UInt64Type>();
    let most = outcome.flows.iter().map(|flow| flow.max_cwnd.get()).max();
    assert_eq!(cwnd.values().iter().max().copied(), most);
    // The path takes at least 5 ms; the column is in microseconds.
    let srtt = column(&batches[0], "srtt_us").as_primitive::<Float64Type>();
    let known = (0..srtt.len()).filter(|&at| srtt.is_valid(at)).map(|at| srtt.value(at));
    assert!(known.clone().count() > 0 && known.fold(f64::INFINITY, f64::min) >= 5_000.0);
    let mut lines = Vec::new();
    collector.write(logs::series::SeriesFormat::Csv, &mut lines).unwrap();
    assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count(), 1 + srtt.len());
}

#[test]
fn tables_longer_than_a_row_group_are_complete() {
    let columns = [ParquetColumn::new("n", ColumnKind::Whole, "", "a number")];
    let mut table = ParquetTable::new(&columns, &[], Vec::new()).unwrap();
    let rows = ROW_GROUP as u64 + 5;
    (0..rows).try_for_each(|n| table.push([ParquetCell::Whole(n)])).unwrap();
    let (_, batches) = read(table.finish().unwrap());
    let all = batches
        .iter()
        .flat_map(|batch| column(batch, "n").as_primitive::<UInt64Type>().values().to_vec());
    assert!(all.eq(0..rows));
}
