//! Every field of the logs of pinned releases of QUIC stacks, in both roles, is read: `golden/quic/releases`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ackclock_ingest as ingest;
use ingest::inputs::quic_log_fields;
use trace::unpack::Unpacked;

type Fields = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/quic/releases")
}

fn expected() -> Fields {
    serde_json::from_slice(&fs::read(folder().join("fields.json")).unwrap()).unwrap()
}

/// The text of a log.
fn log(stack: &str, role: &str) -> String {
    let file = fs::File::open(folder().join(format!("{stack}.{role}.sqlog.xz"))).unwrap();
    let mut text = String::new();
    Unpacked::new(file).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn all_fields_of_pinned_releases_are_read() {
    let expected = expected();
    assert!(expected.len() >= 4);
    for (stack, roles) in &expected {
        assert_eq!(roles.len(), 2, "{stack}");
        for (role, fields) in roles {
            let found = quic_log_fields(log(stack, role).as_bytes()).unwrap();
            assert_eq!(&found, fields, "{stack} {role}");
        }
    }
}

/// As if a release had renamed them.
#[test]
fn a_renamed_field_is_missing() {
    for (stack, raw, name) in [
        ("quic-go-0.65", "congestion_window", "metrics.congestion_window"),
        ("quic-go-0.65", "acked_ranges", "received.acked_ranges"),
        ("quinn-0.11", "packets_in_flight", "metrics.packets_in_flight"),
        ("aioquic-1.7", "cwnd", "metrics.congestion_window"),
        ("ngtcp2-0.12", "initial_max_data", "parameters.remote.max_data"),
        ("ngtcp2-0.12", "packet_lost", "lost.number"),
    ] {
        let renamed = log(stack, "server").replace(raw, "renamed");
        let found = quic_log_fields(renamed.as_bytes()).unwrap();
        assert!(expected()[stack]["server"].contains(name), "{stack} {name}");
        assert!(!found.contains(name), "{stack} {name}");
    }
}
