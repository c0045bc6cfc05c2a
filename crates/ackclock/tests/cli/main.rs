//! Black-box tests of the command line: output, files and exit status of the binary.

mod bad_input;
mod demo;
mod diagnose;
mod documents;
mod emulators;
mod fetches;
mod files;
mod first_minute;
mod flent;
mod folders;
mod formats;
mod full;
mod gates;
mod guide;
mod help;
mod image;
mod import_ini;
mod kernels;
mod key_logs;
mod live;
mod logs;
mod mcp;
mod negotiated;
mod outputs;
mod outside;
mod packet_scripts;
#[cfg(feature = "parquet")]
mod parquet;
mod sharing;
mod stacks;
mod sweeps;
mod test_directory;
mod theory;
mod watch;
mod wire;
mod wireshark;
