//! Columns computed from live senders equal those from their full states.

use ackclock_simtest as simtest;
use logs::series::{Downsampling, SeriesColumns, SeriesFormat};
use record::{Event, EventSource, Recorder, SenderState};
use runner::series::SenderSeries;
use scenario::{Overrides, SeriesPlan, load};
use sim::Observer;
use units::{Duration, Instant};

/// Requests the full state of every sender, and forwards it.
struct FullStateRecorder(SenderSeries);

impl Recorder for FullStateRecorder {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }
}

impl Observer for FullStateRecorder {}

/// TCP with both kinds of loss recovery and QUIC, requests too.
#[test]
fn sender_columns_equal_those_of_its_full_state() {
    let example = include_str!("../../../scenarios/example.toml");
    let quic = include_str!("../../../scenarios/mathis.toml");
    let worlds = (0..40).map(|number| simtest::worlds::draw(3, number));
    let all = "snd_una,snd_nxt,snd_max,flight,bytes_in_flight,partial_bytes_acked,pipe,\
        cwnd_bytes,cwnd_mss,flight_mss,ssthresh,snd_wnd,buffered,send_buffer,srtt,rto,pacing,\
        in_recovery,bbr_mode,bbr_phase,bbr_bw_hi,bbr_bw_lo,bbr_inflight_hi,bbr_inflight_lo,\
        bbr_pacing_gain,bbr_cwnd_gain";
    let all = all.replace("flight,b", "flight_bytes,b");
    let columns = SeriesColumns::parse(&all).unwrap();
    let bbr = "title = \"bbr3\"\nduration = \"2s\"\n[host]\n\
        a = { profile = \"linux-6.18\", cc = \"bbr3\" }\nb = { profile = \"linux-6.18\" }\n\
        [[path]]\nfrom = \"a\"\nto = \"b\"\nreturn = [{ delay = \"5ms\" }]\n\
        forward = [{ link = { rate = \"20Mbit/s\", buffer = \"1bdp\" } }, { delay = \"5ms\" }]\n\
        [[flow]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"5MB\"\n";
    for text in [example, quic, bbr].map(str::to_owned).into_iter().chain(worlds) {
        let mut scenario = load(&text, "", &Overrides::default()).unwrap().scenario;
        scenario.duration = scenario.duration.min(Duration::from_millis(500));
        for thinning in [Downsampling::None, Downsampling::Every(Duration::from_millis(1))] {
            let plan = SeriesPlan { columns: columns.clone(), thinning, queues: false };
            let mut parts = SenderSeries::new(&scenario, &plan);
            let mut whole = FullStateRecorder(SenderSeries::new(&scenario, &plan));
            sim::run(&scenario, &mut parts).unwrap();
            sim::run(&scenario, &mut whole).unwrap();
            let text = |series: SenderSeries| {
                let mut csv = Vec::new();
                series.into_collector().write(SeriesFormat::Csv, &mut csv).unwrap();
                String::from_utf8(csv).unwrap()
            };
            let (parts, whole) = (text(parts), text(whole.0));
            assert_eq!(parts, whole, "{}", scenario.title);
            // Other worlds may have a sender with such phases.
            assert!(parts.contains(",startup,") || scenario.title != "bbr3");
        }
    }
}
