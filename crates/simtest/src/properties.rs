//! Properties of all parsers of foreign bytes and text, for any input: no panic, no position
//! outside the file, no unreported loss. The fuzz targets (`fuzz/`) check them, and so does
//! `tests/mutated.rs` without a fuzzer.

pub mod bblog;
pub mod capture;
pub mod captured_quic;
pub mod ini;
pub mod inputs;
pub mod keyed_capture;
pub mod packet_bytes;
pub mod packet_script;
pub mod pasted;
pub mod qlog;
pub mod scenario;
pub mod siftr;
pub mod ss;
pub mod tc_script;
pub mod tcp_probe;
pub mod tcpdump_text;
pub mod unpack;

/// The segment as it is written again: a SYN whose options no known system orders so gets another order, and none has
/// the options that are only read.
fn rewritten(segment: packet::Segment, again: &packet::Segment) -> packet::Segment {
    let mut segment = segment;
    if let (packet::Options::Syn(syn), packet::Options::Syn(other)) =
        (&mut segment.options, &again.options)
    {
        if syn.layout == packet::SynLayout::Other {
            syn.layout = other.layout;
        }
        assert_eq!(other.extras, packet::SynExtras::NONE);
        syn.extras = packet::SynExtras::NONE;
    }
    segment
}
