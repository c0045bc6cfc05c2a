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

#[test]
fn fields_of_the_ip_header_are_parsed_in_brackets_and_parentheses() {
    let fields = |text: &str| {
        let events = events(&format!("0 < {text} . 1:1(0) ack 1"));
        let Action::Packet(packet) = &events[0].action else { panic!("a packet") };
        let ip = packet.ip;
        let values = (ip.hops.map(|hops| hops.value), ip.tos.map(|tos| tos.value));
        (packet.ecn.map(|mark| mark.value), values, ip.label.map(|label| label.value))
    };
    assert_eq!(fields("(ttl 4)"), (None, (Some(4), None), None));
    assert_eq!(fields("(hlim 0)"), (None, (None, None), None));
    assert_eq!(fields("[tos 0x28, flowlabel 0x1]"), (None, (None, Some(0x28)), Some(1)));
    assert_eq!(fields("(ect1,ttl 9)"), (Some(EcnMark::Ect1), (Some(9), None), None));
    assert_eq!(fields("[ce] (hlim 9)"), (Some(EcnMark::Met), (Some(9), None), None));
    for wrong in ["(ttl 256)", "(tos)", "(ttl 1, ttl 2)", "[ect0] (tos 0x2)", "(hops 1)", "(ttl 1"]
    {
        assert!(parse(&format!("0 < {wrong} . 1:1(0) ack 1")).is_err(), "{wrong}");
    }
}

#[test]
fn accurate_ecn_is_a_flag_a_digit_and_an_option() {
    let segment = |text: &str| {
        let events = events(&format!("0 < {text}"));
        let Action::Packet(packet) = &events[0].action else { panic!("a packet") };
        let Body::Tcp(tcp) = &packet.body else { panic!("a segment") };
        tcp.clone()
    };
    let syn = segment("SEWA 0:0(0)");
    assert_eq!((syn.flags.value.to_string().as_str(), syn.ae), ("SEW", true));
    let digit = segment(".6 1:1(0) ack 1 <ECN e1b 1 ceb 2,ECN,ECN e0b 3>");
    assert_eq!((digit.flags.value.to_string().as_str(), digit.ae), (".W", true));
    let OptionList::ExactList(options) = &digit.options.value else { panic!("a list") };
    let counters = |n: usize| match &options[n].value {
        TcpOption::AccurateEcn { e0b_first, counters } => (*e0b_first, counters.clone()),
        _ => panic!("accurate ECN"),
    };
    assert_eq!(counters(0), (false, vec![1, 2]));
    assert_eq!(counters(1), (false, vec![]));
    assert_eq!(counters(2), (true, vec![3]));
    assert!(parse("0 < .8 1:1(0) ack 1").is_err());
    for wrong in [".12", "P5", ".5P", "F.E"] {
        assert!(parse(&format!("0 < {wrong} 1:1(0) ack 1")).is_err(), "{wrong}");
    }
}
