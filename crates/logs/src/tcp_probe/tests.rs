//! Tests of each format and each problem of a line.

use super::*;

fn read(text: &str) -> (Vec<TcpProbeRow>, Vec<String>, TcpProbeStats) {
    let mut reader = TcpProbeReader::new(text.as_bytes());
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for item in reader.by_ref() {
        match item.unwrap() {
            TcpProbeItem::Row(row) => rows.push(row),
            TcpProbeItem::Problem(problem) => problems.push(problem.to_string()),
        }
    }
    (rows, problems, *reader.tally())
}

fn row() -> TcpProbeRow {
    TcpProbeRow {
        line: 1,
        clock: TcpProbeClock::Boot,
        at: Duration::from_micros(4_311_000_250),
        ends: Some(Endpoints {
            src: "10.0.0.1:40001".parse().unwrap(),
            dst: "10.0.0.2:5001".parse().unwrap(),
        }),
        flow: None,
        data_len: 0,
        snd_nxt: 0xffff_ff2a,
        snd_una: 1,
        snd_cwnd: 10,
        ssthresh: None,
        snd_wnd: 65_160,
        srtt: Duration::from_micros(45_206),
        rcv_wnd: Some(64_512),
    }
}

const FIELDS: &str = "mark=0x0 data_len=0 snd_nxt=0xffffff2a snd_una=0x1 snd_cwnd=10 \
     ssthresh=2147483647 snd_wnd=65160 srtt=45206 rcv_wnd=64512 sock_cookie=7";

#[test]
fn trace_events_of_every_printer_and_age() {
    let v4 = "src=10.0.0.1:40001 dest=10.0.0.2:5001";
    for line in [
        format!(
            "iperf3-912     [001] ..s1.  4311.000250: tcp_probe: family=AF_INET {v4} {FIELDS} skbaddr=00000000a skaddr=b"
        ),
        format!("a b-9 [001] 4311.000250: tcp_probe: {v4} {FIELDS}"),
        format!("swapper     0 [003]  4311.000250: tcp:tcp_probe: family=AF_INET {v4} {FIELDS}"),
    ] {
        assert_eq!(
            read(&format!("{line}\n")),
            (vec![row()], vec![], TcpProbeStats { rows: 1, ..TcpProbeStats::default() })
        );
        assert!(is_row(&line));
    }
    let v6 = format!(
        "x-1 [0] .... 1.5: tcp_probe: family=AF_INET6 src=[2001:db8::1]:1 dest=[::ffff:10.0.0.2]:2 {FIELDS}\n"
    );
    let (rows, ..) = read(&v6);
    let ends = rows[0].ends.unwrap();
    assert_eq!(
        (ends.src.to_string(), ends.dst.to_string()),
        ("[2001:db8::1]:1".into(), "10.0.0.2:2".into())
    );
    // Other events and comments are skipped.
    let (rows, problems, tally) = read("# tracer: nop\n#\nx-1 [0] 1.5: sched_switch: a=b\n\n");
    assert_eq!((rows.len(), problems.len(), tally.other_lines), (0, 0, 4));
}

#[test]
fn the_former_module_with_or_without_the_receive_window() {
    let begin =
        "4311.000250000 10.0.0.1:40001 10.0.0.2:5001 0 0xffffff2a 0x1 10 2147483647 65160 45206";
    let expected = TcpProbeRow { clock: TcpProbeClock::Own, ..row() };
    let (rows, problems, _) = read(&format!("{begin} 64512\n{begin}\n"));
    assert_eq!(rows, [expected, TcpProbeRow { line: 2, rcv_wnd: None, ..expected }]);
    assert!(problems.is_empty());
}

#[test]
fn columns_with_names_in_any_order() {
    let text = "\
t_us,flow,data_len,snd_nxt,snd_una,snd_cwnd,ssthresh,snd_wnd,srtt_us,rcv_wnd
90781.9,40001,0,14480,7,10,2147483647,65160,45206,64512
90876.9,40001,0,15928,7,10,9,68608,45239,64512
";
    let (rows, problems, _) = read(text);
    assert!(problems.is_empty());
    let first = TcpProbeRow {
        line: 2,
        clock: TcpProbeClock::Own,
        at: Duration::from_nanos(90_781_900),
        ends: None,
        flow: Some(40_001),
        snd_nxt: 14_480,
        snd_una: 7,
        ..row()
    };
    assert_eq!(rows[0], first);
    assert_eq!((rows[1].ssthresh, rows[1].line), (Some(9), 3));
}

#[test]
fn problems_are_reported_with_their_position() {
    let wrong = |line: &str| {
        let (rows, problems, _) = read(line);
        assert!(rows.is_empty(), "{rows:?}");
        problems.join("; ")
    };
    let event = |fields: &str| format!("x-1 [0] 1.5: tcp_probe: {fields}\n");
    assert_eq!(
        wrong(&event("src=10.0.0.1 dest=10.0.0.2:5001")),
        "line 1, column 29: src: expected an address and a port, found \"10.0.0.1\""
    );
    let all = format!("src=10.0.0.1:40001 dest=10.0.0.2:5001 {FIELDS}");
    let line = event(&all.replace("snd_cwnd=10 ", "snd_cwnd=ten "));
    let column = line.find("ten").unwrap() + 1;
    let expected = format!("line 1, column {column}: snd_cwnd: expected a number, found \"ten\"");
    assert_eq!(wrong(&line), expected);
    let line = event(&all.replace("snd_una=0x1 ", ""));
    assert_eq!(wrong(&line), format!("line 1, column {}: `snd_una` is missing", line.len()));
    assert_eq!(
        wrong("x-1 [0] never: tcp_probe: a=b\n"),
        "line 1, column 9: time: expected seconds since the machine started, found \"never\""
    );
    assert_eq!(
        wrong("1.5 10.0.0.1:1 10.0.0.2:2 0 0x1\n"),
        "line 1, column 32: `snd_una` is missing"
    );
    let (rows, problems, _) = read(event(&all).trim_end());
    assert_eq!(rows.len(), 1);
    assert!(problems[0].ends_with("the last line has no newline"), "{problems:?}");
}
