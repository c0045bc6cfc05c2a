//! The command line from outside: the binary is driven, its output, files and exit status looked at.

mod bad_input;
mod diagnose;
mod documents;
mod files;
mod full;
mod import_ini;
mod logs;
mod outputs;
mod outside;
mod packet_scripts;
#[cfg(feature = "parquet")]
mod parquet;
mod place;
mod sharing;
mod sweeps;
mod theory;
mod wire;
