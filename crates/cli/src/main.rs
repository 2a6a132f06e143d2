//! The `spillbench` command line.

fn main() {}
