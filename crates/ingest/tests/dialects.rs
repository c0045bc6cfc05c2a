//! BBR of QUIC stacks, identified by the windows of simulated senders' logs.

use ackclock_ingest as ingest;
use diagnose::AnalysisSettings;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use fit::{DialectGuess, dialects};
use ingest::inputs::{self, InputFile, ReadMode};
use logs::qlog::QlogFormat;
use scenario::{Overrides, load};

fn guessed(cc: &str, path: &str) -> Vec<DialectGuess> {
    let text = format!(
        r#"
title = "a sender to be identified"
seed = 1
duration = "60s"
host.client = {{ profile = "quic-rfc9002", cc = "{cc}" }}
host.server = {{ profile = "quic-rfc9002" }}
[[path]]
from = "client"
to = "server"
forward = [{path}, {{ delay = "20ms" }}]
return = [{{ delay = "20ms" }}]
[[flow]]
name = "upload"
from = "client"
to = "server"
bulk = "30MB"
"#
    );
    let loaded = load(&text, "run", &Overrides::default()).unwrap();
    let mut scenario = loaded.scenario.clone();
    let side = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
    let mut log =
        Qlog::new(&scenario, side, &loaded.sha256, QlogFormat::Current, Vec::new()).unwrap();
    sim::run(&scenario, &mut log).unwrap();
    let bytes = log.finish().unwrap();
    let source = InputFile { name: "upload.sqlog".into(), bytes: Box::new(&*bytes) };
    let mode = ReadMode { keeps_quic: true, ..ReadMode::default() };
    let reading = inputs::read_with(vec![source], AnalysisSettings::default(), mode).unwrap();
    dialects(reading.quic[0].analysis.transfer.as_deref().unwrap())
}

/// Each dialect is the best or equals it; quiche's, whose parameters differ most, is none of the others.
#[test]
fn the_dialect_of_a_sender_is_among_the_best() {
    for path in [
        r#"{ link = { rate = "20Mbit/s", buffer = "200kB" } }"#,
        r#"{ loss = "0.5%" }, { link = { rate = "20Mbit/s", buffer = "100kB" } }"#,
    ] {
        for dialect in ["bbr-draft", "bbr-picoquic", "bbr-quiche", "bbr-s2n"] {
            let found = guessed(dialect, path);
            let best = found.first().unwrap();
            let own = found.iter().find(|guess| guess.cc == dialect).unwrap();
            assert!(best.fits() && own.equals(best), "{dialect}: {found:?}");
            let quiche = found.iter().find(|guess| guess.cc == "bbr-quiche").unwrap();
            assert_eq!(quiche.equals(best), dialect == "bbr-quiche", "{found:?}");
        }
    }
}

#[test]
fn windows_of_other_controllers_are_of_no_dialect() {
    for cc in ["cubic", "newreno"] {
        let found = guessed(cc, r#"{ link = { rate = "20Mbit/s", buffer = "200kB" } }"#);
        assert!(found.first().is_none_or(|best| !best.fits()), "{cc}: {found:?}");
    }
}
