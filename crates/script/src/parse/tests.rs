//! Valid scripts and the errors of invalid ones.

use proptest::prelude::*;

use super::*;
use crate::ast::{Body, EcnMark, ExprKind, OptionList, TcpOption};

fn events(text: &str) -> Vec<ScriptEvent> {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{}", error.source_line)).events
}

fn error(text: &str) -> String {
    parse(text).expect_err("an error").to_string()
}

#[test]
fn every_form_of_time_is_parsed() {
    let events = events(
        "0 close(3) = 0\n+.1 close(3) = 0\n+0...0.2 close(3) = 0\n.3~.4 > . 1:1(0) ack 1\n\
         + 0.00 close(3) = 0\n+1~+2 > . 1:1(0) ack 1\n* > . 1:1(0) ack 1\n0.5...0.6 close(3) = 0",
    );
    let ms = Duration::from_millis;
    let times: Vec<_> = events.iter().map(|event| event.when.value).collect();
    assert_eq!(
        times,
        [
            When::Absolute(ms(0)),
            When::Relative(ms(100)),
            When::Blocking { relative: true, from: ms(0), to: ms(200) },
            When::Between { relative: false, from: ms(300), to: ms(400) },
            When::Relative(ms(0)),
            When::Between { relative: true, from: ms(1_000), to: ms(2_000) },
            When::Any,
            When::Blocking { relative: false, from: ms(500), to: ms(600) },
        ]
    );
}

#[test]
fn a_packet_is_parsed_with_all_its_parts() {
    let text = "0 < [ce] FPEW. 4294967295:99(100) ack 7 win 257 urg 3 \
                <mss 1000,nop,TS val 1 ecr 2,sack 1:2 3:4,wscale 7,sackOK,eol>";
    let events = events(text);
    let Action::Packet(packet) = &events[0].action else { panic!("a packet") };
    assert!(!packet.outbound);
    assert_eq!(packet.ecn.unwrap().value, EcnMark::Met);
    let Body::Tcp(tcp) = &packet.body else { panic!("a segment") };
    assert_eq!(tcp.flags.value.to_string(), "FP.EW");
    assert_eq!((tcp.seq.value, tcp.len.value), (u32::MAX, 100));
    let read = (tcp.ack.unwrap().value, tcp.window.unwrap().value, tcp.urgent.unwrap().value);
    assert_eq!(read, (7, 257, 3));
    let OptionList::ExactList(options) = &tcp.options.value else { panic!("a list") };
    assert_eq!(options.len(), 7);
    assert_eq!(options[2].value, TcpOption::Timestamps { val: 1, ecr: 2 });
}

#[test]
fn calls_are_parsed_with_nested_values() {
    let text = "0 poll([{fd=4, events=POLLIN|POLLOUT, revents=0}], 1, -1) = -1 EINTR (Stopped)\n\
                0 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"1.2.3.4\")}, ...) = ...";
    let events = events(text);
    let Action::Call(call) = &events[0].action else { panic!("a call") };
    assert_eq!(call.args.len(), 3);
    assert_eq!(call.args[2].kind, ExprKind::Int(-1));
    assert_eq!(call.errno.as_ref().unwrap().value, "EINTR");
    let Action::Call(call) = &events[1].action else { panic!("a call") };
    assert_eq!(call.result.kind, ExprKind::Any);
}

#[test]
fn options_and_commands_can_precede_the_events() {
    let script = parse(
        "// comment\n--tolerance_usecs=6000\n--ip_version=ipv4 --strict_segments\n\
         `./defaults.sh\nsysctl -q a=b`\n 0 `true`\n+0 %{ assert 1 }%",
    )
    .unwrap();
    let names: Vec<_> = script.options.iter().map(|option| option.name.value.as_str()).collect();
    assert_eq!(names, ["tolerance_usecs", "ip_version", "strict_segments"]);
    assert_eq!(script.init.unwrap().value, "./defaults.sh\nsysctl -q a=b");
    assert_eq!(script.events.len(), 2);
}

#[test]
fn errors_are_reported_with_their_position() {
    insta::assert_snapshot!(
        [
            "0 wirte(4, ..., 1) = 1",
            "0.2 close(3) = 0\n0.1 close(3) = 0",
            "+0.2~+0.1 > . 1:1(0)",
            "+0 < . 1:1(1) ack 1",
            "+0 < X 1:1(0) ack 1",
            "+0 < . 1:1(0) ack 1 <mss 1460,sackok>",
            "+0 < . 1:1(0) ack 99999999999",
            "+0 write(4, ..., 1000 = 1000",
            "+0 > . 1:1(0) ack 1 <nop",
            "--tolerance_usec=1\n0 close(3) = 0",
            "`sysctl",
            "+0 %{ assert 1",
            "/* no end",
            "+0 close(3) = 0 oops",
            "close(3) = 0",
            "+-1 close(3) = 0",
            "",
            "+0...0.1 > . 1:1(0)",
            "+0~+1 close(3) = 0",
            "+0 close([[[[[[[[[[[[[[[[[[[[[3]]]]]]]]]]]]]]]]]]]]]) = 0",
            "+0 write(4, \"abc, 3) = 3",
        ]
        .map(error)
        .join("\n")
    );
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected_at_a_position_in_it(text in "[-+<>.~*(){}\\[\\]0-9a-zA-Z,=`%\"|/ \n:]{0,120}") {
        if let Err(error) = parse(&text) {
            let line = text.split('\n').nth(error.line - 1).expect("the line is there");
            prop_assert!(error.column <= line.chars().count() + 1);
        }
    }
}
