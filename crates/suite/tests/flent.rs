//! Tests under flent's names and their data files.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use ackclock_suite::{FlentRequest, FlentTest, SuiteError, SuiteSender};
use serde_json::Value;

static NEVER: AtomicBool = AtomicBool::new(false);

fn request(test: FlentTest) -> FlentRequest {
    FlentRequest {
        test,
        sender: SuiteSender::read("cubic").unwrap(),
        up: "5Mbit/s".to_owned(),
        down: "10Mbit/s".to_owned(),
        rtt_ms: 20,
        buffer: "100p".to_owned(),
        queue: "drop-tail".to_owned(),
        length_s: 5,
        streams: 3,
        seed: 1,
    }
}

fn data(request: &FlentRequest) -> Value {
    serde_json::from_str(&request.run(&NEVER).unwrap().to_json()).unwrap()
}

fn mean(data: &Value, series: &str) -> f64 {
    let values = data["results"][series].as_array().unwrap();
    // The load without its first and last second.
    let values: Vec<f64> = values[30..values.len() - 30].iter().filter_map(Value::as_f64).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The shape that flent reads: `ResultSet.load_file` and `deserialise` of flent 2.3.
fn check_shape(data: &Value, name: &str) {
    assert_eq!(data["version"], 4);
    let metadata = &data["metadata"];
    assert_eq!(metadata["NAME"], name);
    for key in ["TITLE", "NOTE", "HOST", "LOCAL_HOST", "TIME", "T0"] {
        assert!(metadata[key].is_string(), "{key}");
    }
    for key in ["LENGTH", "TOTAL_LENGTH", "STEP_SIZE"] {
        assert!(metadata[key].is_number(), "{key}");
    }
    assert!(metadata["HOSTS"].is_array() && metadata["TEST_PARAMETERS"].is_object());
    let x = data["x_values"].as_array().unwrap();
    assert!(x.windows(2).all(|pair| pair[0].as_f64() < pair[1].as_f64()));
    for (series, values) in data["results"].as_object().unwrap() {
        let values = values.as_array().unwrap();
        assert_eq!(values.len(), x.len(), "{series}");
        assert!(values.iter().all(|value| value.is_null() || value.is_number()), "{series}");
        let unit = &metadata["SERIES_META"][series]["UNITS"];
        assert!(["Mbits/s", "ms", "Idx"].iter().any(|known| unit == known), "{series}");
    }
    for (series, values) in data["raw_values"].as_object().unwrap() {
        assert!(data["results"][series].is_array(), "{series}");
        for value in values.as_array().unwrap() {
            assert!(value["t"].is_number() && value["val"].is_number(), "{series}: {value}");
        }
    }
}

#[test]
fn rrul_fills_both_directions_and_its_pings_wait_in_the_queues() {
    let mut request = request(FlentTest::Rrul);
    let data_of_fifo = data(&request);
    check_shape(&data_of_fifo, "rrul");
    let (up, down) =
        (mean(&data_of_fifo, "TCP upload sum"), mean(&data_of_fifo, "TCP download sum"));
    assert!((3.5..5.0).contains(&up) && (7.0..10.0).contains(&down), "{up} {down}");
    let totals = mean(&data_of_fifo, "TCP totals");
    assert!((totals - up - down).abs() < 1e-6);
    request.queue = "fq_codel".to_owned();
    let (fifo, fq) = (mean(&data_of_fifo, "Ping (ms) avg"), mean(&data(&request), "Ping (ms) avg"));
    // A queue of 100 packets is 240 ms at 5 Mbit/s.
    assert!(fifo > 100.0 && (20.0..60.0).contains(&fq), "{fifo} {fq}");
}

#[test]
fn a_nearer_host_gets_more_in_rtt_fair() {
    let mut request = request(FlentTest::RttFair);
    request.sender = SuiteSender::read("reno").unwrap();
    request.length_s = 40;
    let data = data(&request);
    check_shape(&data, "rtt_fair");
    let share = |host: &str| mean(&data, &format!("TCP download {host}"));
    assert!(share("BE1 server-20ms") > share("BK2 server-160ms"));
    assert!((0.25..1.0).contains(&mean(&data, "TCP download fairness")));
    assert!(mean(&data, "Ping (ms) ICMP4 server-160ms") > 160.0);
}

#[test]
fn tcp_nup_has_as_many_uploads_as_the_user_wants() {
    let request = request(FlentTest::TcpNup);
    let data = data(&request);
    check_shape(&data, "tcp_nup");
    let names: Vec<&String> = data["results"].as_object().unwrap().keys().collect();
    let expected: BTreeMap<&str, ()> = [
        "Ping (ms) ICMP",
        "TCP upload avg",
        "TCP upload fairness",
        "TCP upload sum",
        "TCP upload::1",
        "TCP upload::2",
        "TCP upload::3",
    ]
    .map(|name| (name, ()))
    .into();
    assert_eq!(names, expected.keys().collect::<Vec<_>>());
    assert_eq!(data["metadata"]["TEST_PARAMETERS"]["upload_streams"], "3");
    // The load begins after 5 s and ends 5 s later.
    let sum = data["results"]["TCP upload sum"].as_array().unwrap();
    assert!(sum[24].is_null() && sum[25].is_number() && sum[50].is_null());
    // The same request gives the same bytes.
    let again: Value = serde_json::from_str(&request.run(&NEVER).unwrap().to_json()).unwrap();
    assert_eq!(again, data);
}

#[test]
fn a_wrong_path_is_an_error() {
    let mut request = request(FlentTest::Rrul);
    request.up = "fast".to_owned();
    let SuiteError::World(error) = request.run(&NEVER).unwrap_err() else { panic!() };
    assert!(error.contains("fast"), "{error}");
}
