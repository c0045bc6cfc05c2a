//! Columns asked of senders one by one are those of their whole states.

use ackclock_simtest as simtest;
use logs::series::{Columns, Form, Thinning};
use record::{Event, Recorder, SenderState, Who};
use runner::series::SenderSeries;
use scenario::{Overrides, Plan, load};
use sim::Observer;
use units::{Duration, Instant};

/// Has every sender's whole state made, and hands it on.
struct Whole(SenderSeries);

impl Recorder for Whole {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }
}

impl Observer for Whole {}

/// TCP of both repairs and QUIC, requests too.
#[test]
fn what_is_asked_of_a_sender_is_what_its_whole_state_says() {
    let example = include_str!("../../../scenarios/example.toml");
    let quic = include_str!("../../../scenarios/mathis.toml");
    let worlds = (0..40).map(|number| simtest::worlds::draw(3, number));
    let all = "snd_una,snd_nxt,snd_max,flight,bytes_in_flight,partial_bytes_acked,pipe,\
        cwnd_bytes,cwnd_mss,flight_mss,ssthresh,snd_wnd,buffered,send_buffer,srtt,rto,pacing,\
        in_recovery";
    let all = all.replace("flight,b", "flight_bytes,b");
    let columns = Columns::parse(&all).unwrap();
    for text in [example, quic].map(str::to_owned).into_iter().chain(worlds) {
        let mut scenario = load(&text, "", &Overrides::default()).unwrap().scenario;
        scenario.duration = scenario.duration.min(Duration::from_millis(500));
        for thinning in [Thinning::None, Thinning::Every(Duration::from_millis(1))] {
            let plan = Plan { columns: columns.clone(), thinning };
            let mut parts = SenderSeries::new(&scenario, &plan);
            let mut whole = Whole(SenderSeries::new(&scenario, &plan));
            sim::run(&scenario, &mut parts).unwrap();
            sim::run(&scenario, &mut whole).unwrap();
            let text = |series: SenderSeries| {
                let mut csv = Vec::new();
                series.into_collector().write(Form::Csv, &mut csv).unwrap();
                String::from_utf8(csv).unwrap()
            };
            assert_eq!(text(parts), text(whole.0), "{}", scenario.title);
        }
    }
}
