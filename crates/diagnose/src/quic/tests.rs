//! Tests of the analysis of QUIC logs.
