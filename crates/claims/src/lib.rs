//! What the readers of other people's bytes and text claim, whatever they are given: no panic, no place
//! outside the file, nothing lost without a word. The fuzz targets (`fuzz/`) throw inputs at these, and
//! so do the tests here, without a fuzzer.

pub mod bblog;
pub mod capture;
pub mod ini;
pub mod inputs;
pub mod packet_bytes;
pub mod packet_script;
pub mod qlog;
pub mod scenario;
pub mod siftr;
pub mod ss;
pub mod tcp_probe;
pub mod tcpdump_text;
pub mod unpack;
